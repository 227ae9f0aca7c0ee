"""Made-up words that sound like several languages."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class _Sound:
    """Which syllables a language has, and how its words may end."""

    onsets: tuple[str, ...]
    nuclei: tuple[str, ...]
    codas: tuple[str, ...]
    ends: tuple[str, ...]


def _sound(onsets: str, nuclei: str, codas: str, ends: str) -> _Sound:
    return _Sound(
        tuple(onsets.split()), tuple(nuclei.split()), tuple("" if c == "." else c for c in codas.split()),
        tuple("" if e == "." else e for e in ends.split()),
    )  # fmt: skip


_SOUNDS = (
    # northern
    _sound("b br d dr f fj fl fr g gr h hj hv j k kl kn kr l m n r s sk sl sm sn sp st str sv t tr v",
           "a e i o u y ei au", "l n r s k g d t nd rk st ld rg . . .",
           "sen strand vik berg dal holm gard mo nes . . . heim"),
    # romance
    _sound("b c ch d f g gl l m n p pr qu r s t tr v z br cr fl",
           "a e i o u ia io ue", "l n r s . . . . m", "o a ino etta elli ona ario ente aro . . este"),
    # slavic
    _sound("b bl br d dr g gr k kr l m ml n p pr r s st sv t tr v vl z zd zv ch sh",
           "a e i o u y", "k l n r s v . . . sk m", "ov ova sky ka ic ice in ets . . na grad"),
    # english
    _sound("b bl br c ch cl cr d f fl g gr h j k l m n p pr qu r s sc sh sl st sw t th tr w wh",
           "a e i o u ea ee oo ou ai", "ck d l ll m n nd ng r rd rn s st t x . . .",
           "ton ley er by well worth den ham low wick . . ."),
    # japanese-like
    _sound("k s t n h m y r g z d b p ky sh ch ry j",
           "a i u e o a o", ". . . . n", "ko shi ta ra mi no ku . ."),
    # arabic-like
    _sound("b d f h j k kh l m n q r s sh t th w y z gh",
           "a i u aa ai", "b d f h l m n r s . . . q", "i a un ah . . eb at"),
    # celtic
    _sound("b br c caer d dr f g gl gw l ll m n p r s t tr w rh",
           "a e i o u y w ae wy", "dd l n r rn th nt . . . s", "wyn an och aig ell . . wen fa"),
    # african-like
    _sound("b d f g j k kw l m mb n nd ng ny p r s t w y z ch",
           "a e i o u a o", ". . . . .", "la le ni ba ka mu . . nda we"),
    # malay-like
    _sound("b c d g h j k l m n p r s t w y ng ny",
           "a e i o u ai", "n ng k r s t . . . m", "an ang uk ita . . ung"),
    # greek-like
    _sound("b d f g k kl kr l m n p ph pr r s sp st str t th x z ps",
           "a e i o u ia eo", "l n r s . . . x k", "os is as ides on eia ios . . . ika"),
    # turkic-like
    _sound("b c ch d g k l m n p r s sh t v y z kh",
           "a e i o u a", "k l n r sh t z . . . m", "ar bay an lar men tan . . kul"),
    # brand-like
    _sound("v z x q n l m r t k d s f j b",
           "a e i o u ea io eo", "x n r l v . . . z m q", "ex on ix a ova ara ent is ium . . yx"),
)  # fmt: skip


def syllables(rng: Random, least: int = 1, most: int = 2) -> str:
    """A made-up word with a capital, of `least` to `most` syllables and perhaps an ending.

    Parameters
    ----------
    rng : random.Random
        Source of randomness.
    least, most : int
        Syllables before the ending.

    Returns
    -------
    str
        The word, at least four letters long.
    """
    sound = rng.choice(_SOUNDS)
    count = least if rng.random() < 0.5 else rng.randint(least, most)
    word = ""
    for _ in range(count):
        if not (rng.random() < 0.12 and not word):
            word += rng.choice(sound.onsets)
        word += rng.choice(sound.nuclei) + rng.choice(sound.codas)
    word += rng.choice(sound.ends)
    if len(word) > 9:
        word = word[: rng.randint(6, 9)]
    while len(word) < 4:
        word += rng.choice(sound.onsets) + rng.choice(sound.nuclei)
    return word.capitalize()
