from collections.abc import Callable

import pytest
import torch
from ragcache_bench.reference_attention import Reading, View, answer, lay_out
from transformers import DynamicCache

from ragcache.encode import Prefixed
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.architecture import cache_argument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Template

TEXTS = ("Tide is led by Mara Voss.", "It is based in Oslo.", "Otter crosses the sound.")
ASKED = "Where is Tide based?"
KINDS = ["llama", "qwen3", "gemma3", "mistral-sliding", "qwen2-hybrid"]


def laid_out(reader: Reader) -> Prompt:
    template = Template(reader.tokenizer)
    return template.prompt([template.chunk(text, str(i)) for i, text in enumerate(TEXTS)], ASKED)


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_that_hides_nothing_is_full_prefill(kind: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(kind)
    prompt = laid_out(reader)
    logits, cache = reader.stock(prompt.token_ids)
    reading = Reading(reader, prompt, View())
    assert torch.allclose(reading.logits, logits, atol=1e-4)
    assert torch.allclose(reading.step(9), reader.stock([9], cache)[0], atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_alone_are_the_engines_naive_reuse(kind: str, readers: Callable[[str], Reader], tmp_path) -> None:  # type: ignore[no-untyped-def]
    reader = readers(kind)
    with Index(tmp_path, reader) as index:
        chunks = [index.uncached_chunk(text) for text in TEXTS]
        naive = Engine(reader, index).prefill(ASKED, chunks, method="naive", max_new_tokens=2)
    reading = Reading(reader, laid_out(reader), View(alone=True))
    assert naive.prompt.token_ids == laid_out(reader).token_ids
    assert torch.allclose(reading.logits, naive.logits, atol=1e-4)
    assert torch.allclose(reading.step(9), naive.step(9), atol=1e-4)
    assert not torch.allclose(reading.logits, reader.stock(naive.prompt.token_ids)[0], atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_that_saw_the_prefix_are_the_engines_too(kind: str, readers: Callable[[str], Reader], tmp_path) -> None:  # type: ignore[no-untyped-def]
    reader, method = readers(kind), Method("prefixed", Prefixed())
    with Index(tmp_path, reader) as index:
        chunks = [index.uncached_chunk(text) for text in TEXTS]
        behind = Engine(reader, index).prefill(ASKED, chunks, method=method, max_new_tokens=2)
    reading = Reading(reader, laid_out(reader), View(alone=True, prefixed=True))
    assert torch.allclose(reading.logits, behind.logits, atol=1e-4)
    assert torch.allclose(reading.step(9), behind.step(9), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_recomputed_to_the_last_token_are_full_prefill(kind: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(kind)
    prompt = laid_out(reader)
    logits, cache = reader.stock(prompt.token_ids)
    reading = Reading(reader, prompt, View(alone=True, prefixed=True, again=99))
    assert torch.allclose(reading.logits, logits, atol=1e-4)
    assert torch.allclose(reading.step(9), reader.stock([9], cache)[0], atol=1e-4)


def test_recomputed_tokens_see_everything_before_and_the_others_only_their_ghosts(reader: Reader) -> None:
    prompt = laid_out(reader)
    canvas, seen = lay_out(prompt, View(alone=True, again=2))
    first, second = (prompt.segments[i].token_ids for i in prompt.chunks()[:2])
    mask, prefix, at = canvas.mask(), prompt.segments[0].token_ids, prompt.slots[2]
    ghost, again = (slots.start for slots, _ in canvas.sees if canvas.positions[slots.start] == at)

    def sees(slot: int) -> list[int]:
        return [canvas.ids[i] for i in mask[slot].nonzero().flatten().tolist()]

    assert sorted(sees(again + 1)) == sorted([*prefix, *first, *second[:2]])
    assert sees(ghost + 2) == list(second[:3])
    assert sorted(canvas.ids[slot] for slot in seen) == sorted(prompt.token_ids)
    assert sorted(canvas.positions[slot] for slot in seen) == list(range(len(prompt)))


@torch.no_grad()
def without_first_tokens(reader: Reader, prompt: Prompt) -> torch.Tensor:
    """Stock prefill of the context, the chunks' first tokens cut out of the cache, then the question."""
    firsts = {prompt.slots[i] for i in prompt.chunks()}
    end = prompt.slots[prompt.chunks()[-1] + 1]
    _, cache = reader.stock(prompt.token_ids[:end])
    kept = [slot for slot in range(end) if slot not in firsts]
    cut = DynamicCache()
    for number, layer in enumerate(cache.layers):
        cut.update(layer.keys[:, :, kept], layer.values[:, :, kept], number)
    positions = torch.arange(end, len(prompt))[None]
    ids = torch.tensor([prompt.token_ids[end:]])
    given = cache_argument(reader.model, cut)
    return reader.model(input_ids=ids, position_ids=positions, **given).logits[0, -1].float()


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_blind_questions_answer_as_if_first_tokens_were_cut_out(kind: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(kind)
    prompt = laid_out(reader)
    reading = Reading(reader, prompt, View(blind=True))
    assert torch.allclose(reading.logits, without_first_tokens(reader, prompt), atol=1e-4)
    assert not torch.allclose(reading.logits, reader.stock(prompt.token_ids)[0], atol=1e-3)


def test_the_answer_stays_blind_while_it_is_written(reader: Reader) -> None:
    prompt = laid_out(reader)
    blind = Reading(reader, prompt, View(blind=True))
    full = Reading(reader, prompt, View())
    for token in (9, 11):
        assert not torch.allclose(blind.step(token), full.step(token), atol=1e-3)


def test_chunks_see_what_they_saw_when_only_the_question_is_blind(reader: Reader) -> None:
    prompt = laid_out(reader)
    hidden = lay_out(prompt, View())[0].mask() & ~lay_out(prompt, View(blind=True))[0].mask()
    rows, columns = hidden.nonzero().unbind(1)
    assert set(columns.tolist()) == {prompt.slots[i] for i in prompt.chunks()}
    assert int(rows.min()) == prompt.slots[prompt.question]


def test_the_answer_is_the_engines(reader: Reader, engine: Engine) -> None:
    sampling = Sampling(max_new_tokens=6)
    for method, view in (("full", View()), ("naive", View(alone=True))):
        ours = engine.answer(ASKED, TEXTS, method=method, sampling=sampling).text
        assert answer(reader, laid_out(reader), view, sampling) == ours
