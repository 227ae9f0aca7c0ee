"""A draft of the answer makes it cheaper, never another one."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

TEXTS = ["The Tide project is based in Oslo.", "The ferry crosses the sound every hour."]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, readers):  # type: ignore[no-untyped-def]
    with Index(tmp_path_factory.mktemp("drafts"), readers("llama")) as index:
        yield Engine(index.reader, index)


def said(engine: Engine, *drafts: Sequence[int], method: str = "cacheblend", **sampling: float) -> tuple[int, ...]:
    how = Sampling(**{"max_new_tokens": 8, "prompt_lookup_num_tokens": 0, **sampling})  # type: ignore[arg-type]
    stream = engine.stream("Where is the project?", TEXTS, method=method, sampling=how, drafts=drafts)
    return stream.answer.token_ids


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of each forward behind the prompt."""
    rows, original = list[int](), Reader.logits

    def counting(self, token_ids, *rest, every=False):  # type: ignore[no-untyped-def]
        rows.extend([len(token_ids)] * every)
        return original(self, token_ids, *rest, every=every)

    monkeypatch.setattr(Reader, "logits", counting)
    return rows


@given(cut=st.integers(0, 8), rest=st.lists(st.integers(5, 260), max_size=4))
@settings(max_examples=15, deadline=None)
def test_whatever_is_drafted_the_answer_is_the_same(engine: Engine, cut: int, rest: list[int]) -> None:
    answer = said(engine)
    assert len(answer) == 8
    assert said(engine, [*answer[:cut], *rest]) == answer


@pytest.mark.parametrize("strange", [-1, 100_000])
def test_a_draft_holds_up_to_what_is_no_token(engine: Engine, strange: int) -> None:
    answer = said(engine)
    assert said(engine, [*answer[:3], strange, *answer[4:]]) == answer


def test_a_draft_that_goes_on_behind_the_end_ends_there_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = said(engine)
    end = next(place for place in range(1, 8) if answer[place] not in answer[:place])
    monkeypatch.setitem(vars(engine.reader), "stop_ids", frozenset({answer[end]}))
    assert said(engine) == answer[:end]
    assert said(engine, answer) == answer[:end]


def test_a_right_draft_saves_forwards(engine: Engine, verified: list[int]) -> None:
    answer = said(engine)
    verified.clear()
    assert said(engine, [1, 2], answer) == answer
    assert verified == [7]  # the eighth token needs no forward
    verified.clear()
    assert said(engine, [*answer[:2], 5], [*answer[:4], 5], answer) == answer
    assert verified == [3, 3, 3]  # one draft after the other, each from where the one before it went wrong
    verified.clear()
    assert said(engine, answer[:3]) == answer
    assert verified == [3, 1, 1, 1, 1]


@pytest.mark.parametrize("method", ["naive", "cacheblend", "auto"])
def test_what_the_prompt_drafts_is_verified(engine: Engine, method: str, verified: list[int]) -> None:
    plain = said(engine, method=method, max_new_tokens=40)
    verified.clear()
    assert said(engine, method=method, max_new_tokens=40, prompt_lookup_num_tokens=5) == plain
    assert max(verified) > 1, "nothing was drafted"


def test_what_was_drafted_and_is_not_said_is_forgotten(engine: Engine) -> None:
    context = engine.prefill("Where is the project?", TEXTS, method="naive").context
    assert context is not None
    for tokens, count in (([5, 6, 7], 0), ([8], 1), ([9, 10], 0)):
        context.append(tokens, count)
        assert context.buffer.length == len(context.prompt) + count + len(tokens)


def test_full_prefill_and_sampling_take_every_step(engine: Engine) -> None:
    full, drawn = said(engine, method="full"), said(engine, temperature=1.0, seed=3)
    assert said(engine, full, method="full") == full
    assert said(engine, drawn, temperature=1.0, seed=3) == drawn
