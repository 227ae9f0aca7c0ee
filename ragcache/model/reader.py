"""Reader: a decoder and its tokenizer, probed once, forwarding one prompt at a time."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from ragcache.errors import UnsupportedModel
from ragcache.model import attention, compatibility, kernels, rope, windows
from ragcache.model.adapter import digest_weights, load_adapter
from ragcache.model.architecture import AttentionSwitch, cache_argument, caches_latents, find_kv_owners, find_layers
from ragcache.model.batching import BatchBuffer, BatchScheduler, ForwardRequest, rows_with_logits, split_logits
from ragcache.model.behaviour import check_behaviour, compare_whole
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.chunked_mlp import chunked_mlp
from ragcache.model.cost import ModelDims
from ragcache.model.fingerprint import describe_model, fingerprint, weights_in_memory
from ragcache.model.layer_hooks import checked_layers, layer_hooks
from ragcache.model.linear_attention import find_mixers, find_state_layers, state_hooks
from ragcache.model.links import LinkTokens, load_links
from ragcache.model.lock import FairLock
from ragcache.model.memory import explain_out_of_memory
from ragcache.model.packing import list_rows, pack_sequences
from ragcache.model.plan import HIDDEN, ForwardPlan, Positions, Slots, StopForward, Window
from ragcache.model.pretrained import load_pretrained
from ragcache.model.rope import KeyRotator, RopeLayout
from ragcache.model.tuning import Tuning, read_tuning
from ragcache.model.upload import upload
from ragcache.model.weight_files import weights_of_checkpoint

_Answer = TypeVar("_Answer")


class Reader:
    """A causal language model that reads prompts from cached chunk KV.

    Parameters
    ----------
    model : PreTrainedModel
        Any Hugging Face decoder with rotary positions.
    tokenizer : PreTrainedTokenizerBase
        Its tokenizer.
    name : str
        What reports and errors call it.
    weights : str, optional
        Digest of the weights; hashed from memory where none is given.

    Attributes
    ----------
    device : torch.device
        Where the model computes.
    adapter : str
        Folder of the adapter that `load` merged into the weights; empty where there is none.
    tuning : Tuning or None
        How the model was tuned to read from chunk KV, if it was.
    links : LinkTokens or None
        The link tokens that it was tuned with.
    layers : int
        Decoder layers.
    kv_layers : int
        Those of them that make K and V; others, the last ones, read theirs, or carry a state.
    states : tuple of int
        Those of them that carry a state instead: linear attention, short convolutions.
    last_kept : int or None
        The layer whose K and V end a forward that keeps them and no more; None where a state is kept above them.
    rotator : KeyRotator
        Moves keys in the layouts that the probe found.
    limit : int
        Most tokens of a prompt and its answer together.
    refused : str
        Why the model's KV cannot be reused; empty but for a `FallbackReader`.

    Raises
    ------
    UnsupportedModel
        If the model's KV cannot be moved; the message names the layer or feature.
    """

    refused = ""
    adapter = ""
    tuning: Tuning | None = None
    links: LinkTokens | None = None
    _windows: tuple[Window, ...] = ()

    def __init__(self, model: Any, tokenizer: Any, *, name: str = "", weights: str | None = None) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self._weights, self._lock = weights, FairLock()
        self.device: torch.device = model.device
        kernels.avoid_cudnn(self.device)
        self._attention, self._stack = AttentionSwitch(model), torch.nn.ModuleList()
        self._kept: int | None = None
        self._given: dict[str, Any] = {"use_cache": True}
        self._owners = find_kv_owners(model.config.get_text_config())
        self.layers, self.kv_layers = len(self._owners), len(set(self._owners))
        self._expanded = caches_latents(model.config)  # our attention is given other keys than the buffer gave
        self.states = find_state_layers(model.config.get_text_config())
        self.last_kept = None if max(self.states, default=-1) > max(self._owners) else max(self._owners)
        self._mixers: Mapping[int, torch.nn.Module] = {}
        self.limit = compatibility.length_limit(model)
        self._probe_tokens = compatibility.probe_tokens(model, tokenizer)
        self.rotator = self._admit()

    @classmethod
    def load(
        cls,
        name: str,
        *,
        dtype: str = "auto",
        device: str | None = None,
        revision: str | None = None,
        adapter: str | Path | None = None,
    ) -> Self:
        """Load a checkpoint by hub id or path.

        Parameters
        ----------
        name : str
            Hub id, a folder with config, safetensors and tokenizer, or a GGUF file.
        dtype : str
            "auto" for the checkpoint's own, or a torch dtype's name.
        device : str, optional
            Defaults to CUDA where there is one, else CPU.
        revision : str, optional
            Hub revision.
        adapter : str or Path, optional
            Folder of a LoRA adapter as PEFT writes it, merged into the weights (see `Adapter.merge_into`). What
            `ragcache finetune` wrote beside it is taken up too, and so it is from a checkpoint's own folder.

        Raises
        ------
        InvalidArgument
            If nothing by that name can be loaded, or there is no such dtype or device.
        MissingExtra
            If a package is not installed that the model needs.
        UnsupportedModel
            If the model's KV cannot be moved.
        UnusableAdapter
            If the adapter is damaged, no plain LoRA, or of another model.
        """
        added = load_adapter(adapter) if adapter is not None else None
        model, tokenizer = load_pretrained(name, dtype=dtype, device=device, revision=revision, adapter=added)
        weights = weights_of_checkpoint(name) or getattr(model.config, "_commit_hash", None)
        reader = cls(model, tokenizer, name=name, weights=digest_weights(weights, added))
        reader.adapter = str(Path(adapter).absolute()) if adapter is not None else ""
        reader.take_up_tuning(name if adapter is None else adapter)
        return reader

    def take_up_tuning(self, folder: str | Path) -> None:
        """Take up what `ragcache finetune` wrote beside an adapter: how the model was tuned, and its link tokens.

        `load` does so. Whoever has merged an adapter by other means, say by PEFT, calls it with the adapter's folder.

        Raises
        ------
        UnusableAdapter
            If the record is damaged, or the link tokens are, or they are those of another model.
        """
        self.tuning = read_tuning(folder)
        self.links = load_links(folder, self.tuning, self.model) if self.tuning else None

    @property
    def label(self) -> str:
        """The name, and the adapter that was merged."""
        return f"{self.name} with the adapter {self.adapter}" if self.adapter else self.name

    @cached_property
    def fingerprint(self) -> str:
        """Digest over weights, config, tokenizer, dtype and rotary layout: a KV loads only for what made it."""
        return fingerprint(self.model, self.tokenizer, self.rotator.layouts, self._weights or self._weights_in_memory)

    def describe(self) -> dict[str, Any]:
        """What the fingerprint is made of, for whoever has the same model in another program."""
        return describe_model(
            self.model, self.tokenizer, self.rotator.layouts, self._weights or self._weights_in_memory
        )

    @property
    def identity(self) -> str:
        """What decides an answer: the fingerprint, and link tokens, on which no chunk's KV depends."""
        return f"{self.fingerprint}+{self.links.digest}" if self.links else self.fingerprint

    @cached_property
    def fingerprint_in_memory(self) -> str:
        """The same of what memory holds, wherever it came from: every weight is hashed."""
        ignored = ("architectures",)  # which a model has once it was saved
        return fingerprint(self.model, self.tokenizer, self.rotator.layouts, self._weights_in_memory, ignored=ignored)

    @cached_property
    def _weights_in_memory(self) -> str:
        return weights_in_memory(self.model)

    @cached_property
    def stop_ids(self) -> frozenset[int]:
        """Token ids that end an answer."""
        declared = self.model.generation_config.eos_token_id
        ids = declared if isinstance(declared, list) else [declared]
        return frozenset(i for i in (*ids, self.tokenizer.eos_token_id) if i is not None)

    @cached_property
    def dims(self) -> ModelDims:
        """The sizes that decide the model's FLOPs."""
        return ModelDims.of(self.model, self._windows)

    @cached_property
    def bytes_per_token(self) -> int:
        """Bytes of K and V of one token over all layers, as stored uncompressed."""
        return sum(tensor.nbytes for tensor in self.encode(self._probe_tokens[:1]).layers)

    @cached_property
    def bytes_per_chunk(self) -> int:
        """Bytes that a chunk takes besides, whatever its length: what it does to states, where layers carry one."""
        return self.encode(self._probe_tokens[:1]).state_nbytes

    def buffer(self, capacity: int) -> KVBuffer:
        """An empty buffer with room for `capacity` slots."""
        return KVBuffer(self.kv_layers + len(self.states), capacity, self.states)

    def readers_of(self, layer: int) -> list[int]:
        """The layers that read a layer's K and V: itself, and those that share them. States count with the next one."""
        return [one for one, owner in enumerate(self._owners) if owner == layer]

    @property
    def restartable(self) -> int:
        """Layers that a forward may begin at: below none of them are K and V made that others read further up."""
        return min((owner for layer, owner in enumerate(self._owners) if owner != layer), default=self.layers - 1) + 1

    @torch.no_grad()
    def forward(self, token_ids: Sequence[int], positions: Positions, buffer: KVBuffer, plan: ForwardPlan) -> None:
        """Run the plan's rows against the buffer, writing their K and V.

        Parameters
        ----------
        token_ids : sequence of int
            One per row.
        positions : Positions
            (rows,) RoPE positions.
        buffer : KVBuffer
            Holds every slot that the rows may see.
        plan : ForwardPlan
            Where the rows stand and what is watched; it may end the forward early.
        """
        if not self._run_in_batch(ForwardRequest(token_ids, positions, buffer, plan, None)):
            with self._ready(buffer, plan), suppress(StopForward):
                self.model.base_model(**self._inputs(token_ids, positions, buffer))

    @torch.no_grad()
    def logits(
        self,
        token_ids: Sequence[int],
        positions: Positions,
        buffer: KVBuffer,
        plan: ForwardPlan,
        *,
        every: bool = False,
    ) -> Tensor:
        """The same, to the end: (vocabulary,) fp32 logits of the last row; (rows, vocabulary), of `every` row."""
        request = ForwardRequest(token_ids, positions, buffer, plan, 0 if every else 1)
        if self._run_in_batch(request) and request.logits is not None:
            logits = request.logits
        else:
            inputs, kept = self._inputs(token_ids, positions, buffer), self._kept_rows(request)
            with self._ready(buffer, plan):
                output = self.model(**inputs, logits_to_keep=kept)
            logits = output.logits[0].float()
        return logits if every else logits[-1]

    def _kept_rows(self, request: ForwardRequest) -> int | Tensor | None:
        """Rows that logits are wanted of; told a number, models whose layers share KV drop the others on the way."""
        if self.kv_layers + len(self.states) == self.layers or not request.keep:
            return request.keep
        return upload(range(len(request.token_ids) - request.keep, len(request.token_ids)), self.device)

    def checked(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `check` called in front of every layer that this thread runs; it may raise, to break a forward off."""
        return checked_layers(self._stack, check)

    def run_batch(self, requests: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
        """Run requests at once: each in its own thread, their forwards joined where all of them wait for the model.

        A weight is then read once for all of them, which is what a single row, or few, spend their time on. Each gives
        what it gives alone, up to the rounding of products over more rows.

        Parameters
        ----------
        requests : sequence of callable
            Each makes one answer, say `lambda: engine.answer(question, chunks)`.
        """
        return BatchScheduler(self._forward_batch).run(requests)

    def _run_in_batch(self, call: ForwardRequest) -> bool:
        """Whether a forward was run with others', because this thread's request is one of several."""
        scheduler = BatchScheduler.here(self._forward_batch)
        if scheduler is None or call.kind is None or self.states:
            return False
        scheduler.wait(call)
        return True

    @torch.no_grad()
    def _forward_batch(self, calls: Sequence[ForwardRequest]) -> list[Tensor | None]:
        """Calls of one kind as one forward."""
        ids = [token for call in calls for token in call.token_ids]
        positions = Positions(torch.cat([call.positions for call in calls]))
        inputs = self._inputs(ids, positions, BatchBuffer(calls, expanded=self._expanded))
        with self._running(len(ids)), ExitStack() as stack:
            for call in calls:
                stack.enter_context(call.buffer.writing(call.plan))
            if calls[0].keep is None:
                with suppress(StopForward):
                    self.model.base_model(**inputs)
                return [None] * len(calls)
            output = self.model(**inputs, logits_to_keep=upload(rows_with_logits(calls), self.device))
        return [*split_logits(output.logits[0].float(), calls)]

    @torch.no_grad()
    def stock(
        self, token_ids: Sequence[int], cache: Any = None, *, attention: str | None = None, rows: int | None = None
    ) -> tuple[Tensor, Any]:
        """Full prefill, or the next tokens on its cache, with transformers' own attention and cache.

        Parameters
        ----------
        token_ids : sequence of int
            What to forward.
        cache : Cache, optional
            From an earlier call.
        attention : str, optional
            One of transformers' implementations; the one that the model came with otherwise.
        rows : int, optional
            Of how many of the last tokens logits are wanted.

        Returns
        -------
        tuple of (Tensor, Cache)
            (vocabulary,) fp32 logits of the last token, or (rows, vocabulary), and the cache to pass on.
        """
        if cache is None:
            cache = DynamicCache(config=self.model.config if self.states else None)
        enough = explain_out_of_memory(self.device, f"full prefill of {len(token_ids):,} tokens")
        with enough, self._lock, self._attention.use(attention or self.model.config._attn_implementation):
            given = self._tokens(token_ids) | cache_argument(self.model, cache)
            output = self.model(use_cache=True, logits_to_keep=rows or 1, **given)
        logits = output.logits[0].float()
        return logits[-1] if rows is None else logits[-rows:], cache

    def encode(self, token_ids: Sequence[int], left: Sequence[ChunkKV] = ()) -> ChunkKV:
        """Prefill tokens behind a left context, and keep their KV.

        Parameters
        ----------
        token_ids : sequence of int
            The chunk.
        left : sequence of ChunkKV
            What stands before it, in order; moved to contiguous positions from 0.
        """
        return self.encode_all([(token_ids, left)])[0]

    def keeping(self, layer: int) -> Self:
        """The same reader, but the KVs it encodes keep the states that enter a layer, (tokens, width): `hidden`."""
        other = copy.copy(self)
        other._kept = layer
        return other

    def encode_all(self, todo: Sequence[tuple[Sequence[int], Sequence[ChunkKV]]]) -> list[ChunkKV]:
        """The same for several at once, in one forward over all of their tokens; none of them sees another.

        Parameters
        ----------
        todo : sequence of (sequence of int, sequence of ChunkKV)
            Tokens and left context of each.
        """
        if self.states and len(todo) > 1:  # a state passes from row to row
            return [kv for one in todo for kv in self.encode_all([one])]
        sequences = pack_sequences(todo)
        buffer = self.buffer(end := sequences[-1].slots.stop)
        self.place_all(buffer, (one for sequence in sequences for one in sequence.placements))
        tokens, slots, positions = list_rows(sequences)
        states: list[Tensor] = []
        plan = ForwardPlan.on(
            self.device, Slots(torch.tensor(slots)), end, last=self.last_kept, measure_states=bool(self.states),
            cu_seqlens=[*(one.start for one in sequences), end],
        )  # fmt: skip
        if self._kept is not None:
            plan.on_enter = lambda layer, entering: states.append(entering) if layer == self._kept else None
        self.forward(tokens, Positions(upload(positions, self.device)), buffer, plan)
        kept = torch.split(states[0], [len(one.ids) for one in sequences]) if states else ()  # (tokens, width) each
        extras = [{HIDDEN: part.clone()} for part in kept] or [{} for _ in sequences]
        return [
            ChunkKV(buffer.read(one.slots.start, one.slots.stop), one.behind, one.ids, extra | states)
            for one, extra in zip(sequences, extras, strict=True)
            for states in [buffer.read_changes(one.slots.start)]
        ]

    def place(self, buffer: KVBuffer, kv: ChunkKV, slot: int, position: int) -> None:
        """Put a KV into the slots from `slot` on, its keys moved to the positions from `position` on."""
        self.place_all(buffer, [(kv, slot, position)])

    def place_all(self, buffer: KVBuffer, placements: Iterable[tuple[ChunkKV, int, int]]) -> None:
        """The same for several, each with its slot and position, their keys moved together.

        Each is copied and let go before the next is asked for, so whoever loads them one by one holds one at a time.
        """
        moved: list[tuple[range, int]] = []  # slots, and how far their keys move
        with explain_out_of_memory(self.device, f"the KV of {buffer.capacity:,} tokens"):
            for kv, slot, position in placements:
                buffer.place_from(slot, kv.layers, self.device)
                buffer.place_changes(slot, len(kv), kv.extras, self.device)
                moved.append((range(slot, slot + len(kv)), position - kv.start))
                del kv
            self.rotator.rotate_spans(buffer.keys, moved)

    def _inputs(self, token_ids: Sequence[int], positions: Positions, buffer: Cache) -> dict[str, Any]:
        given = cache_argument(self.model, buffer) | self._given | ({"kv_buffer": buffer} if self._expanded else {})
        return {**self._tokens(token_ids), "position_ids": positions[None], **given}

    def _tokens(self, token_ids: Sequence[int]) -> dict[str, Tensor]:
        """Tokens as the model takes them: ids, or embeddings where link tokens are among them."""
        ids = torch.tensor([list(token_ids)])  # (1, rows)
        if self.links is None or max(token_ids, default=0) < self.links.first:
            return {"input_ids": upload(ids, self.device)}
        return {"inputs_embeds": self.links.embed(self.model.get_input_embeddings(), ids)}

    @contextmanager
    def _ready(self, buffer: KVBuffer, plan: ForwardPlan) -> Iterator[None]:
        with (
            self._running(len(plan.slots)),
            buffer.writing(plan),
            layer_hooks(self._stack, plan),
            state_hooks(self._mixers, buffer.states, plan),
        ):
            yield

    @contextmanager
    def _running(self, rows: int) -> Iterator[None]:
        """The model with our attention, on a CPU with chunked feed-forward parts, for one forward of so many rows."""
        stack = self._stack if self.device.type == "cpu" else ()
        enough = explain_out_of_memory(self.device, f"a forward of {rows:,} tokens")
        with enough, self._lock, self._attention.use(attention.NAME), chunked_mlp(stack, rows):
            yield

    def _admit(self) -> KeyRotator:
        """What moves the model's keys, if they can be moved; else a refusal that names the model."""
        try:
            return self._examine()
        except UnsupportedModel as error:
            raise compatibility.refusal(self.model, error.reason, self.name) from error

    def _examine(self) -> KeyRotator:
        try:
            compatibility.check_config(self.model)
            self._stack = find_layers(self.model)
            self._mixers = find_mixers(self._stack, self.states)
            rotator = self.rotator = KeyRotator(self._probe())
            self._check_behaviour()
        except (UnsupportedModel, MemoryError):
            raise
        except Exception as error:  # a model's code may fail in any way on a cache or a mask that it does not expect
            said = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise UnsupportedModel(f"its own code fails with ragcache's cache and attention ({said})") from error
        if self.device.type == "cuda":  # what kernels there are is compiled and tried now, not while somebody waits
            slots = torch.tensor([0, 2], device=self.device)
            self.forward(self._probe_tokens, Positions(slots), self.buffer(3), ForwardPlan(Slots(slots), 3))
        return rotator

    def _check_behaviour(self) -> None:
        check_behaviour(self, lambda copy: ReducedReader(copy, self.tokenizer))

    def _probe(self) -> list[RopeLayout]:
        frequencies = compatibility.rotary_frequencies(self.model)
        self._windows, handed = windows.find_windows(self.model, self._attention.use, self.limit)
        self._given |= handed
        tolerance = compatibility.tolerance(self.model.dtype)
        return rope.probe(self._record, frequencies, limit=self.limit, tolerance=tolerance)

    def _record(self, position: int) -> list[tuple[Tensor, Tensor]]:
        """K and V per layer of two tokens at `position`; also checks that every layer calls our attention."""
        seen: set[int] = set()
        sinks = {layer: (lambda _, layer=layer: seen.add(layer)) for layer in range(self.layers)}
        slots = torch.arange(2, device=self.device)
        buffer, plan = self.buffer(2), ForwardPlan(Slots(slots), 2, scores=sinks)  # type: ignore[arg-type]
        self.forward(self._probe_tokens, Positions(slots + position), buffer, plan)
        if missing := sorted(set(range(self.layers)) - seen - set(self.states)):
            raise UnsupportedModel(f"layers {missing} do not run attention through transformers' attention interface")
        return [(layer[0], layer[1:]) for layer in buffer.read(0, 2)]


class ReducedReader(Reader):
    """A reduced copy's, which stands for a model: it asks no further copy, and its refusal is the model's."""

    def _admit(self) -> KeyRotator:
        return self._examine()

    def _check_behaviour(self) -> None:
        compare_whole(self)
