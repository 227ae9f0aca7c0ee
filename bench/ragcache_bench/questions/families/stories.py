"""Short stories in the manner of the bAbI tasks (Weston et al., 1502.05698), written by rules of our own.

Each function returns sentences and questions with answers. The numbers are bAbI's.
"""

from collections.abc import Callable
from random import Random

from ragcache_bench.questions.worlds import World

Told = tuple[list[str], list[tuple[str, str]]]
_HE, _SHE = ("John", "Daniel", "Bill", "Fred", "Jeff", "Brian"), ("Mary", "Sandra", "Julie", "Emily", "Lily", "Winona")
_PLACES = ("kitchen", "garden", "bathroom", "bedroom", "hallway", "office", "cinema", "park", "school")
_THINGS = ("football", "milk", "apple", "lamp", "book", "key")
_GO = ("moved to", "went to", "journeyed to", "travelled to", "went back to")
_TAKE = ("got the {t} there", "picked up the {t} there", "took the {t} there", "grabbed the {t} there")
_DROP = ("dropped the {t}", "left the {t}", "put down the {t}", "discarded the {t}")
_SIDES = {"north": "south", "south": "north", "east": "west", "west": "east"}
_BEASTS = {"mouse": "mice", "wolf": "wolves", "cat": "cats", "sheep": "sheep", "dog": "dogs", "horse": "horses"}
_THEN = ("After that", "Afterwards", "Then", "Following that")


def where_is(rng: Random) -> Told:
    """1: one supporting fact."""
    return _walks(rng, lambda who, place: (f"Where is {who}?", place))


def where_is_thing(rng: Random) -> Told:
    """2: a thing is where its last holder went, or where it was dropped."""
    people, things = rng.sample(_HE + _SHE, 3), rng.sample(_THINGS, 2)
    at: dict[str, str] = {}
    held: dict[str, str] = {}
    seen: dict[str, str] = {}
    told = []
    for _ in range(rng.randint(6, 10)):
        who = rng.choice(people)
        here = [t for t in things if t not in held and seen.get(t) in (None, at.get(who))]
        mine = [t for t, owner in held.items() if owner == who]
        if who in at and here and rng.random() < 0.4:
            thing = rng.choice(here)
            held[thing], seen[thing] = who, at[who]
            told.append(f"{who} {rng.choice(_TAKE).format(t=thing)}.")
        elif mine and rng.random() < 0.25:
            thing = rng.choice(mine)
            del held[thing]
            told.append(f"{who} {rng.choice(_DROP).format(t=thing)}.")
        else:
            at[who] = rng.choice([p for p in _PLACES[:6] if p != at.get(who)])
            seen |= dict.fromkeys(mine, at[who])
            told.append(f"{who} {rng.choice(_GO)} the {at[who]}.")
    return told, [(f"Where is the {t}?", place) for t, place in seen.items()]


def beside(rng: Random) -> Told:
    """4: what is north of what."""
    a, b, c = rng.sample(_PLACES, 3)
    one = rng.choice(list(_SIDES))
    two = rng.choice([s for s in _SIDES if s != one])
    told = [f"The {a} is {one} of the {b}.", f"The {c} is {two} of the {b}."]
    asked = [(f"What is {one} of the {b}?", a), (f"What is the {a} {one} of?", b),
             (f"What is {two} of the {b}?", c), (f"What is the {b} {_SIDES[one]} of?", a)]  # fmt: skip
    rng.shuffle(told)
    return told, asked


def is_in(rng: Random) -> Told:
    """6: yes or no."""

    def ask(who: str, place: str) -> tuple[str, str]:
        claimed = place if rng.random() < 0.5 else rng.choice([p for p in _PLACES[:6] if p != place])
        return f"Is {who} in the {claimed}?", "yes" if claimed == place else "no"

    return _walks(rng, ask)


def _walks(rng: Random, ask: Callable[[str, str], tuple[str, str]]) -> Told:
    people, told = rng.sample(_HE + _SHE, 4), list[str]()
    at: dict[str, str] = {}
    for _ in range(rng.randint(4, 10)):
        who, place = rng.choice(people), rng.choice(_PLACES[:6])
        at[who] = place
        told.append(f"{who} {rng.choice(_GO)} the {place}.")
    return told, [ask(who, place) for who, place in at.items()]


def he_and_she(rng: Random) -> Told:
    """11: he or she is the one named just before."""
    told: list[str] = []
    at: dict[str, str] = {}
    for _ in range(rng.randint(2, 5)):
        who = rng.choice(_HE + _SHE)
        first, place = rng.sample(_PLACES[:6], 2)
        at[who] = place
        told += [f"{who} {rng.choice(_GO)} the {first}.",
                 f"{rng.choice(_THEN)} {'he' if who in _HE else 'she'} {rng.choice(_GO)} the {place}."]  # fmt: skip
    return told, [(f"Where is {who}?", place) for who, place in at.items()]


def both(rng: Random) -> Told:
    """12: two people at once."""
    return _pairs(rng, False)


def they(rng: Random) -> Told:
    """13: they are the two named just before."""
    return _pairs(rng, True)


def _pairs(rng: Random, again: bool) -> Told:
    people, told = rng.sample(_HE + _SHE, 4), list[str]()
    at: dict[str, str] = {}
    for _ in range(rng.randint(2, 6)):
        pair = rng.sample(people, 2)
        first, place = rng.sample(_PLACES[:6], 2)
        told.append(f"{pair[0]} and {pair[1]} {rng.choice(_GO)} the {first}.")
        if again:
            told.append(f"{rng.choice(_THEN)} they {rng.choice(_GO)} the {place}.")
        at |= dict.fromkeys(pair, place if again else first)
    return told, [(f"Where is {who}?", place) for who, place in at.items()]


def afraid(rng: Random) -> Told:
    """15: what holds for a kind holds for each of it."""
    kinds = rng.sample(list(_BEASTS), 4)
    fears = {kind: rng.choice([k for k in kinds if k != kind]) for kind in kinds}
    who = dict(zip(rng.sample((*_SHE, "Gertrude", "Jessica"), 4), rng.choices(kinds, k=4), strict=True))
    told = [f"{_BEASTS[kind].capitalize()} are afraid of {_BEASTS[fear]}." for kind, fear in fears.items()]
    told += [f"{name} is a {kind}." for name, kind in who.items()]
    rng.shuffle(told)
    return told, [(f"What is {name} afraid of?", fears[kind]) for name, kind in who.items()]


STORIES: dict[int, Callable[[Random], Told]] = {
    1: where_is, 2: where_is_thing, 4: beside, 6: is_in, 11: he_and_she, 12: both, 13: they, 15: afraid,
}  # fmt: skip


def stories(world: World) -> None:
    """One story, three to five sentences a chunk."""
    rng, stream = world.rng, world.stream()
    number = rng.choice(list(STORIES))
    told, asked = STORIES[number](rng)
    places, size = [], rng.randint(2, 5)
    for i in range(0, len(told), size):
        world.units[stream].append(told[i : i + size])
        places.append((stream, i // size))
    for text, answer in asked:
        world.pose(text, answer, f"story{number}", places)
    world.linked |= number in (2, 11, 13, 15)
