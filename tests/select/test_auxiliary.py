"""The auxiliary: the primary itself, another model, another tokenizer, and the thread it reads in."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from conftest import tiny_reader
from staged import QUESTION, TEXTS

from ragcache.bundled import reader_path
from ragcache.encode import Prefixed
from ragcache.engine.request import RequestOptions
from ragcache.errors import InvalidArgument, PromptTooLong, UnsupportedModel
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.prompt import CHUNK_END, Segment, Template
from ragcache.select import Auxiliary, Grouped, Product, QuestionAttention
from ragcache.select.companion import (
    SIBLING,
    SIBLING_TOKENS,
    SIBLING_TUNED,
    about_sibling,
    check_auxiliary,
    reader_of,
)
from ragcache.select.rendering import rendering

TIMEOUT = 300


def mean(attention: torch.Tensor) -> torch.Tensor:
    """Over heads and rows, (keys,)."""
    heads, rows, _ = attention.shape
    return sum(attention[h, q] for h in range(heads) for q in range(rows)) / (heads * rows)


def in_chunks(p, values: torch.Tensor) -> torch.Tensor:
    """Values of the chunks' slots, one chunk behind the other."""
    return torch.cat([values[p.span(i)] for i in p.prompt.chunks()])


def join_auxiliaries() -> None:
    """Wait for all auxiliaries' threads."""
    for thread in threading.enumerate():
        if thread.name.startswith("ragcache-auxiliary"):
            thread.join(timeout=TIMEOUT)
            assert not thread.is_alive()


def test_the_primary_itself_gives_its_attention_over_a_full_prefill(stage, attended) -> None:
    p = stage.passed()
    expected = mean(attended(stage.engine.reader, p.prompt)[5])
    found = Auxiliary(model=stage.engine.reader).scores(p)
    torch.testing.assert_close(in_chunks(p, found), in_chunks(p, expected), atol=1e-4, rtol=1e-4)
    stale = QuestionAttention(reduce="mean").scores(p)
    assert (in_chunks(p, stale) - in_chunks(p, expected)).abs().max() > 1e-3, "the stitched cache says something else"


def test_other_layers_and_reductions_are_those_of_question_attention(stage, attended) -> None:
    p = stage.passed()
    layers = attended(stage.engine.reader, p.prompt)
    expected = sum(torch.stack([row for head in layers[i] for row in head]).max(0).values for i in (1, 3)) / 2
    found = Auxiliary(stage.engine.reader, layers=(3, 1), reduce="max").scores(p)
    torch.testing.assert_close(in_chunks(p, found), in_chunks(p, expected), atol=1e-4, rtol=1e-4)


def test_over_one_exact_chunk_it_equals_question_attention(stage) -> None:
    p = stage.passed(Method("one", Prefixed(), None), stage.chunks[:1])
    assert p.exact == {0, 1}
    found = Auxiliary(model=stage.engine.reader).scores(p)
    torch.testing.assert_close(
        in_chunks(p, found), in_chunks(p, QuestionAttention(reduce="mean").scores(p)), atol=1e-5, rtol=1e-4
    )


def test_over_one_chunk_made_behind_nothing_it_does_not(stage) -> None:
    p = stage.passed("naive", stage.chunks[:1])
    apart = Auxiliary(model=stage.engine.reader).scores(p) - QuestionAttention(reduce="mean").scores(p)
    assert in_chunks(p, apart).abs().max() > 1e-3


def test_another_tokenizer_reads_by_its_own_template_and_is_mapped_by_characters(stage, foreign, attended) -> None:
    p = stage.passed()
    template = Template(foreign.tokenizer)
    own = template.prompt([template.chunk(chunk.text, chunk.id) for chunk in stage.chunks], QUESTION)
    mass = mean(attended(foreign, own)[5])
    expected = []
    for i, text in zip(own.chunks(), TEXTS, strict=True):
        segment = own.segments[i]
        lengths = [len(token) for token in foreign.tokenizer.convert_ids_to_tokens(list(segment.token_ids))]
        assert sum(lengths) == len(text + CHUNK_END)
        assert max(lengths) > 1
        expected += [mass[own.slots[i] + n] / length for n, length in enumerate(lengths) for _ in range(length)]
    found = Auxiliary(model=foreign).scores(p)  # the primary's tokens are bytes, and the text is ASCII
    torch.testing.assert_close(in_chunks(p, found), torch.stack(expected), atol=1e-4, rtol=1e-4)
    assert (found[~torch.isin(torch.arange(len(p.prompt)), p.selectable.nonzero())] == float("-inf")).all()


def test_text_between_chunks_and_positions_of_a_layout_are_read_in_order(stage, foreign, attended) -> None:
    """Fresh text is read too; positions that overlap are a layout's business, and a full prefill has none."""
    p = stage.passed()
    tokenizer = stage.engine.reader.tokenizer
    fresh = Segment(Template(tokenizer).plain(" and then "), " and then ")
    prefix, one, two, *rest = p.prompt.segments
    prompt = replace(p.prompt, segments=(prefix, one, fresh, two, *rest), question=p.prompt.question + 1)
    spaced = replace(p, prompt=replace(prompt, positions=(0,) * len(prompt.segments)), placed={})
    expected = mean(attended(stage.engine.reader, prompt)[5])
    found = Auxiliary(model=stage.engine.reader).scores(spaced)
    torch.testing.assert_close(in_chunks(spaced, found), in_chunks(spaced, expected), atol=1e-4, rtol=1e-4)

    reading = Auxiliary(model=foreign).read(prompt)
    template = Template(foreign.tokenizer)
    parts = [s if s.chunk else Segment(template.plain(s.text), s.text) for s in prompt.segments[1 : prompt.question]]
    own = template.prompt([template.chunk(s.text, s.chunk) if s.chunk else s for s in parts], QUESTION)
    mass = mean(attended(foreign, own)[5])
    for i, masses in zip(own.chunks(), reading.masses, strict=True):
        torch.testing.assert_close(masses, mass[own.slots[i] : own.slots[i + 1]], atol=1e-4, rtol=1e-4)


def test_what_it_computes_is_charged_as_flops_and_not_as_tokens(stage, foreign) -> None:
    for reader in (stage.engine.reader, foreign):
        p = stage.passed()
        flops, tokens = p.flop_counter.flops, p.flop_counter.token_layers
        begun = Auxiliary(model=reader).begin(p.prompt)
        read = Template(reader.tokenizer).prompt(
            [Template(reader.tokenizer).chunk(chunk.text, chunk.id) for chunk in stage.chunks], QUESTION
        )
        begun.scores(p)
        expected = reader.dims.forward(torch.arange(len(read) - len(read.segments[-1])), range(6), logits=False)
        assert p.flop_counter.flops - flops == pytest.approx(expected)
        assert p.flop_counter.token_layers == tokens
    before = p.flop_counter.flops
    Auxiliary(model=foreign, layers=(2,)).scores(p)
    assert p.flop_counter.flops - before == pytest.approx(expected / 2), "three of six layers"


def test_a_row_with_it_answers_and_charges_what_it_recomputes(stage, foreign) -> None:
    row = Method("cacheclip", Prefixed(), Grouped(Auxiliary(model=foreign)), 0.25)
    report = stage.engine.prefill(QUESTION, stage.chunks, method=row).report
    selectable = sum(chunk.tokens for chunk in report.chunks[1:])
    assert report.tokens.recomputed == round(0.25 * selectable)
    assert report.charged == pytest.approx(report.tokens.recomputed / selectable)
    plain = stage.engine.prefill(QUESTION, stage.chunks, method=replace(row, select=METHODS["random"].select)).report
    assert report.charged_flops > plain.charged_flops + 0.2


def test_reading_begins_at_once_and_beside_everything_else(stage) -> None:
    p = stage.passed()
    reader = stage.engine.reader
    with reader._lock:  # the primary is busy
        begun = Auxiliary(model=reader).begin(p.prompt)
        assert not begun.reading.done()
    begun.reading.result(timeout=TIMEOUT)  # nobody has asked for scores yet
    assert torch.equal(begun.scores(p), Auxiliary(model=reader).scores(p))


def test_an_auxiliary_reads_no_further_once_its_request_is_broken_off(stage, foreign) -> None:
    class Left(Exception):
        pass

    def leave() -> None:
        raise Left

    read: list[int] = []
    layers = foreign.model.model.layers
    hooks = [layer.mlp.register_forward_hook(lambda *_, n=n: read.append(n)) for n, layer in enumerate(layers)]
    row = METHODS["cacheclip"].with_auxiliary(foreign)
    request = stage.engine.requests.from_question(QUESTION, stage.chunks, RequestOptions(row))
    request.clock.check = leave
    with foreign._lock, pytest.raises(Left):
        stage.engine.start(request)
    join_auxiliaries()
    assert read == []
    stage.engine.start(request.repeated())
    join_auxiliaries()
    assert read, "a request that goes on is read for"
    for hook in hooks:
        hook.remove()


def test_threads_that_share_the_primary_with_their_auxiliary_give_the_same_scores(stage, foreign) -> None:
    work = [(Auxiliary(model=reader), stage.chunks[i:] + stage.chunks[:i])
            for i in range(4) for reader in (stage.engine.reader, foreign)]  # fmt: skip

    def ask(selector: Auxiliary, chunks) -> torch.Tensor:
        row = Method("aux", METHODS["naive"].encode, selector, 0.2)
        return stage.engine.prefill(QUESTION, chunks, method=row).logits

    expected = [ask(*item) for item in work]
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(ask, *item) for item in work]
        for one, two in zip(found, expected, strict=True):
            assert torch.equal(one.result(timeout=TIMEOUT), two)


def test_what_goes_wrong_in_the_thread_is_raised_by_scores(stage, tmp_path) -> None:
    p = stage.passed()
    begun = Auxiliary(model=str(tmp_path / "nothing")).begin(p.prompt)
    with pytest.raises(InvalidArgument, match="cannot load the model"):
        begun.scores(p)
    before = p.flop_counter.flops
    short = tiny_reader("llama", max_position_embeddings=64)
    with pytest.raises(PromptTooLong, match=rf"{len(p.prompt)} tokens.*tiny-llama.*takes 64"):
        Auxiliary(model=short).begin(p.prompt).scores(p)
    assert p.flop_counter.flops == before


def test_a_tokenizer_without_offsets_is_refused_where_tokens_must_be_matched(stage, foreign, monkeypatch) -> None:
    p = stage.passed()
    monkeypatch.setattr(type(stage.engine.reader.tokenizer), "is_fast", False)
    Auxiliary(model=stage.engine.reader).scores(p)  # its ids are the primary's: nothing to match
    with pytest.raises(UnsupportedModel, match="not a fast tokenizer"):
        Auxiliary(model=foreign).scores(p)


def test_the_sibling_is_loaded_once_and_reads_the_bundled_readers_tokens() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = [task.result(timeout=TIMEOUT) for task in [pool.submit(reader_of, "sibling") for _ in range(4)]]
    assert all(one is found[0] for one in found)
    assert found[0].device.type == "cpu"
    from transformers import AutoTokenizer

    template = Template(AutoTokenizer.from_pretrained(reader_path()))
    prompt = template.prompt([template.chunk(text, str(n)) for n, text in enumerate(TEXTS)], QUESTION)
    reading = Auxiliary().read(prompt)
    assert reading.spans is None
    assert [len(mass) for mass in reading.masses] == [len(prompt.segments[i]) for i in prompt.chunks()]
    assert 0 < float(torch.cat(reading.masses).sum()) < 1


def test_the_tuned_sibling_looks_elsewhere_and_is_told_of_like_the_other(stage) -> None:
    p = stage.passed()
    own, tuned = (Auxiliary(model=model).scores(p) for model in (SIBLING, SIBLING_TUNED))
    assert torch.equal(own.isinf(), tuned.isinf())
    assert (own - tuned)[p.selectable].abs().max() > 0
    assert reader_of(SIBLING_TUNED).fingerprint != reader_of(SIBLING).fingerprint
    check_auxiliary(SIBLING_TUNED)
    row = METHODS["cacheclip"].with_auxiliary(SIBLING_TUNED)
    [said] = stage.engine.prefill(QUESTION, stage.chunks, method=row).report.notes
    assert "sibling chose tokens for tiny-llama" in said


def test_a_prompt_without_chunks_scores_nothing(stage) -> None:
    p = stage.engine.prefill(QUESTION, [], method="naive").context
    assert (Auxiliary(model=stage.engine.reader).scores(p) == float("-inf")).all()


def test_an_idle_auxiliary_leaves_no_thread(stage) -> None:
    Auxiliary(model=stage.engine.reader).scores(stage.passed())
    join_auxiliaries()


def test_reading_leaves_the_primarys_tokenizer_alone(stage) -> None:
    """Special tokens in text are switched on and off on a tokenizer, which other threads may be using."""
    tokenizer = stage.engine.reader.tokenizer
    tokenizer.backend_tokenizer.encode_special_tokens = True
    reader = Reader(stage.engine.reader.model, tokenizer, name="fresh")
    Auxiliary(model=reader).read(stage.passed().prompt)
    assert tokenizer.backend_tokenizer.encode_special_tokens
    assert rendering(reader) is rendering(reader)


def test_a_reader_that_is_gone_leaves_nothing_behind() -> None:
    reader = tiny_reader("llama")
    kept = weakref.ref(rendering(reader))
    del reader
    gc.collect()
    assert kept() is None


def test_the_report_says_how_long_the_auxiliary_read_beside_all_else(stage, foreign) -> None:
    row = METHODS["cacheclip"].with_auxiliary(foreign)
    ms = stage.engine.prefill(QUESTION, stage.chunks, method=row).report.ms
    assert 0 < ms.auxiliary < ms.first_token + 1
    assert stage.engine.prefill(QUESTION, stage.chunks, method=row, recompute=0.0).report.ms.auxiliary == 0
    assert stage.engine.prefill(QUESTION, stage.chunks, method="prophetkv").report.ms.auxiliary == 0


def test_the_sibling_beside_another_model_is_told_in_the_report(stage, foreign) -> None:
    row = METHODS["cacheclip"]
    [said] = stage.engine.prefill(QUESTION, stage.chunks, method=row).report.notes
    assert "sibling chose tokens for tiny-llama" in said
    assert "--auxiliary NAME or Auxiliary(NAME), such as smollm2" in said
    for quiet, share in ((row.with_auxiliary(foreign), None), (row, 0.0), (row, 1.0)):
        assert stage.engine.prefill(QUESTION, stage.chunks, method=quiet, recompute=share).report.notes == ()


def test_the_sibling_beside_its_own_model_is_told_of_prompts_longer_than_its_training(stage) -> None:
    primary = Reader(stage.engine.reader.model, stage.engine.reader.tokenizer, name="bundled")
    assert about_sibling(primary, SIBLING_TOKENS) == []
    [said] = about_sibling(primary, SIBLING_TOKENS + 1)
    assert "up to 2,100 tokens, and read 2,101" in said
    assert len(about_sibling(stage.engine.reader, SIBLING_TOKENS + 1)) == 2


def test_an_auxiliary_is_named_wherever_it_stands_in_a_row(foreign) -> None:
    row = METHODS["cacheclip"]
    named = row.with_auxiliary("smollm2")
    assert named.select == Grouped(Auxiliary("smollm2"), window=8, stride=4)
    assert replace(named, select=row.select) == row
    both = replace(row, select=Product(QuestionAttention(), Grouped(Auxiliary())))
    assert both.with_auxiliary(foreign).select == Product(QuestionAttention(), Grouped(Auxiliary(foreign)))
    for other in ("prophetkv", "naive"):
        with pytest.raises(InvalidArgument, match=rf"'{other}' has no auxiliary model to be 'x'.*--method cacheclip"):
            METHODS[other].with_auxiliary("x")


def test_a_name_that_nothing_is_loaded_by_is_refused_with_the_option(tmp_path) -> None:
    check_auxiliary("sibling")
    check_auxiliary("smollm2")
    with pytest.raises(InvalidArgument, match=r"cannot load the auxiliary model.*no config.json.*with --auxiliary"):
        check_auxiliary(str(tmp_path))
    with pytest.raises(InvalidArgument, match=r"such as Qwen/Qwen2.5-0.5B-Instruct, with --auxiliary"):
        check_auxiliary(str(tmp_path / "nothing"))
