"""A dense forward written out layer by layer: every layer's own set of rows, and attention weights as a formula says.

Nothing of `ragcache.model` runs here but the model's own matrices: no buffer, no plan, no hooks. K and V of all slots
start as given; each layer computes the rows that it is told, and puts theirs in.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from twin import stale_kv

from ragcache.model.reader import Reader
from ragcache.prompt import Prompt

#: From a layer, its masked logits (heads, rows, keys) and V (heads, keys, head_dim): outputs (heads, rows, head_dim).
Attend = Callable[[int, Tensor, Tensor], Tensor]
#: From a layer, the states of all slots and its fresh K of all slots: called before anything is replaced.
Look = Callable[[int, Tensor, Tensor], None]


def plain(layer: int, logits: Tensor, values: Tensor) -> Tensor:
    """Softmax attention."""
    return logits.softmax(-1) @ values


def stale(reader: Reader, prompt: Prompt, lefts: dict[int, Sequence[int]]) -> list[tuple[Tensor, Tensor]]:
    """Per layer K and V of every slot, (kv_heads, slots, head_dim): made behind `lefts`, zero where none is reused."""
    config = reader.model.config
    shape = (config.num_key_value_heads, len(prompt), config.head_dim)
    layers = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(reader.layers)]
    for segment, left in lefts.items():
        ids, slot, position = prompt.segments[segment].token_ids, prompt.slots[segment], prompt.starts[segment]
        made = stale_kv(reader, ids, left, position)
        for (keys, values), (key, value) in zip(layers, made, strict=True):
            keys[:, slot : slot + len(ids)] = key[0]
            values[:, slot : slot + len(ids)] = value[0]
    return layers


@torch.no_grad()
def dense(
    reader: Reader,
    prompt: Prompt,
    kv: list[tuple[Tensor, Tensor]],
    rows: Callable[[int], Tensor],
    attend: Attend = plain,
    states: dict[int, Tensor] | None = None,
    look: Look | None = None,
) -> Tensor:
    """Logits of the last slot, (vocabulary,), of a Llama.

    Parameters
    ----------
    kv : list of (Tensor, Tensor)
        Per layer, changed in place.
    rows : callable
        The slots that a layer computes, ascending.
    attend : callable
        Turns logits into outputs.
    states : dict of int to Tensor, optional
        Hidden states, (slots, width), that replace those entering a layer in rows that the layer below didn't compute.
    look : callable, optional
        Sees each layer's states and the keys it would make of them.
    """
    model = reader.model.model
    starts = zip(prompt.starts, prompt.segments, strict=True)
    positions = torch.cat([torch.arange(start, start + len(segment)) for start, segment in starts])
    hidden = model.embed_tokens(torch.tensor(prompt.token_ids))  # (slots, width)
    cos, sin = model.rotary_emb(hidden[None], positions[None])
    slots = torch.arange(len(prompt))
    below = slots
    for number, layer in enumerate(model.layers):
        if states and number in states:
            missing = [slot for slot in range(len(prompt)) if slot not in set(below.tolist())]
            hidden[missing] = states[number][missing]
        here = rows(number)
        attention = layer.self_attn
        entered = layer.input_layernorm(hidden)
        split = [
            project(entered).view(len(prompt), -1, attention.head_dim).transpose(0, 1)[None]
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        ]
        query, key = apply_rotary_pos_emb(split[0], split[1], cos, sin)
        if look is not None:
            look(number, hidden.clone(), key[0].clone())
        keys, values = kv[number]
        keys[:, here], values[:, here] = key[0][:, here], split[2][0][:, here]
        group = query.shape[1] // keys.shape[0]
        all_keys, all_values = keys.repeat_interleave(group, 0), values.repeat_interleave(group, 0)
        logits = query[0][:, here] @ all_keys.transpose(1, 2) * attention.scaling  # (heads, rows, slots)
        logits = logits.masked_fill(slots[None, :] > here[:, None], float("-inf"))
        mixed = attend(number, logits, all_values).transpose(0, 1).reshape(len(here), -1)
        after = hidden[here] + attention.o_proj(mixed)
        hidden = hidden.clone()
        hidden[here] = after + layer.mlp(layer.post_attention_layernorm(after))
        below = here
    return reader.model.lm_head(model.norm(hidden[-1])).float()
