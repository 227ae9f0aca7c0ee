"""What the question attends to, against stock eager attention over the same stitched cache."""

import pytest
import torch

from ragcache.errors import InvalidArgument
from ragcache.select import QuestionAttention
from ragcache.select.mass import layer_indices

MIDDLE = (22 / 32, 23 / 32, 24 / 32, 25 / 32)


def test_fusionrag_sums_the_last_layer(stage, attended) -> None:
    p = stage.passed()
    last = attended(stage.engine.reader, p.prompt, stitched=True)[5]
    check(p, QuestionAttention(), sum(row for head in last for row in head))


def test_prophetkv_is_the_mean_over_all_layers(stage, attended) -> None:
    p = stage.passed()
    layers = attended(stage.engine.reader, p.prompt, stitched=True)
    rows = [row for layer in layers for head in layer for row in head]
    check(p, QuestionAttention(layers="all", reduce="mean"), sum(rows) / len(rows))


def test_qcfuse_is_the_max_over_heads_and_rows_then_the_mean_over_some_layers(stage, attended) -> None:
    p = stage.passed()
    layers = attended(stage.engine.reader, p.prompt, stitched=True)
    best = [torch.stack([row for head in layers[i] for row in head]).max(0).values for i in (1, 4, 5)]
    check(p, QuestionAttention(layers=(4, 1, -1), reduce="max"), sum(best) / 3)


def test_infoflow_is_the_norm_over_rows_of_the_head_mean(stage, attended) -> None:
    p = stage.passed()
    layer = attended(stage.engine.reader, p.prompt, stitched=True)[4]  # 22 to 25 of 32 all fall into layer 4 of 6
    means = [sum(layer[:, row]) / layer.shape[0] for row in range(layer.shape[1])]
    check(p, QuestionAttention(layers=MIDDLE, reduce="norm"), sum(mean**2 for mean in means) ** 0.5)


def check(p, selector: QuestionAttention, expected) -> None:
    found = selector.scores(p)
    torch.testing.assert_close(found[: len(expected)], expected, atol=1e-4, rtol=1e-4)
    assert (found[len(expected) :] <= 0).all()
    assert expected[p.selectable[: len(expected)]].std() > 1e-4, "attention is not uniform"


def test_infoflows_layers_are_fractions_of_the_depth() -> None:
    assert layer_indices(MIDDLE, 32) == [22, 23, 24, 25]
    assert layer_indices(MIDDLE, 6) == [4]
    assert layer_indices((0.0, 1.0, -1), 6) == [0, 5]


@pytest.mark.parametrize("layers", [(6,), (-7,), (1.5,), (-0.5,)])
def test_a_layer_that_is_not_there_is_refused(stage, layers) -> None:
    with pytest.raises(InvalidArgument, match=r"model with 6 layers"):
        QuestionAttention(layers=layers).scores(stage.passed())


def test_no_layer_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="names no layer of 6"):
        layer_indices((), 6)
