"""Controls choose as they say, and the question's attention is the question's alone, over fresh text as over chunks."""

from collections.abc import Callable
from dataclasses import replace

import torch
from stages import Spaced
from torch import Tensor

from ragcache.methods import METHODS
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import FirstTokens, QuestionAttention, RandomTokens


def test_no_chunk_gets_more_than_its_first_tokens(bare: Callable[..., PrefillContext]) -> None:
    scores = FirstTokens(tokens=2).scores(bare([4, 1, 3]))
    assert scores.isfinite().nonzero().squeeze(1).tolist() == [2, 3, 6, 7, 8]


def test_random_tokens_follow_their_seed_and_the_prompt(bare: Callable[..., PrefillContext]) -> None:
    p, other = bare([4, 3]), bare([3, 4])
    assert torch.equal(RandomTokens(seed=1).scores(p), RandomTokens(seed=1).scores(p))
    assert not torch.equal(RandomTokens(seed=1).scores(p), RandomTokens(seed=2).scores(p))
    assert not torch.equal(
        RandomTokens(seed=1).scores(bare([5, 3])), RandomTokens(seed=1).scores(other)[: len(p.prompt)]
    )


def test_fresh_text_in_front_of_the_question_is_read_before_and_not_asked(stage) -> None:  # type: ignore[no-untyped-def]
    p = stage.passed(replace(METHODS["naive"], layout=Spaced(" Read on. ")))
    fresh = Slots((p.fresh & (torch.arange(len(p.prompt)) < int(p.question[0]))).nonzero().squeeze(1))
    assert len(fresh) > 4
    seen: list[Tensor] = []
    p.forward(p.question, scores={5: seen.append}, stop_after_scores=True)  # what stands in front is computed already
    wanted = torch.cat(seen, dim=1).mean((0, 1))  # (keys,)
    empty = torch.zeros(2, len(fresh), 16)
    for layer in range(6):
        p.buffer.write(layer, fresh, empty, empty)
    scores = QuestionAttention(layers="last", reduce="mean").scores(p)
    assert torch.allclose(scores[: len(wanted)], wanted, atol=1e-6)
