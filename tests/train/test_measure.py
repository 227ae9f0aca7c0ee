import torch

from ragcache.train.measure import _mask, lay_out
from ragcache.train.model import new_reader

PIECES = [[1, 3, 40, 41, 42], [50, 51, 52, 53, 54, 55], [60, 61, 62, 63], [70, 71, 72, 73, 74]]
FLAT = [t for piece in PIECES for t in piece]
TAIL = [80, 81, 82]


def _logits(model, mode):
    canvas, slots = lay_out(PIECES, TAIL, mode)
    with torch.no_grad():
        out = model(input_ids=torch.tensor([canvas.ids]), attention_mask=_mask(canvas),
                    position_ids=torch.tensor([canvas.positions]), use_cache=False).logits[0]  # fmt: skip
    return out[slots]


def _model():
    return new_reader(100, hidden=64, layers=3, inner=96)


def test_full_is_plain_prefill_and_recomputing_every_token_too():
    model = _model()
    with torch.no_grad():
        plain = model(input_ids=torch.tensor([[*FLAT, *TAIL]])).logits[0, -len(TAIL) :]
    assert (_logits(model, None) - plain).abs().max() < 1e-4
    assert (_logits(model, (False, 99)) - plain).abs().max() < 1e-4
    assert (_logits(model, (True, 0)) - plain).abs().max() > 1e-3


def test_naive_equals_keys_made_alone_and_rotated_to_their_place():
    # rope is relative: a chunk read alone at its place has the keys of one read at 0 and rotated
    canvas, _ = lay_out(PIECES, TAIL, (True, 0))
    start = canvas.ids.index(60)
    ghosts = [i for i, t in enumerate(canvas.ids) if t == 60]
    assert ghosts == [start]
    assert canvas.positions[start] == len(PIECES[0]) + len(PIECES[1])
    seen = [canvas.ids[i] for i in canvas.sees[start]]
    assert seen == [*PIECES[0], 60]


def test_recomputed_tokens_see_everything_before_and_the_others_only_their_ghosts():
    canvas, slots = lay_out(PIECES, TAIL, (False, 2))
    at = canvas.ids.index(61, canvas.ids.index(61) + 1)  # the recomputed copy
    assert [canvas.ids[i] for i in canvas.sees[at]] == [*PIECES[0], *PIECES[1], 60, 61]
    third = canvas.ids.index(62)
    assert [canvas.ids[i] for i in canvas.sees[third]] == [60, 61, 62]
    assert [canvas.ids[i] for i in canvas.sees[slots[0]]] == [*FLAT, 80]
