"""Answers from several chunks: all values, how many, which is more, whether it is so, where something has been."""

from dataclasses import dataclass

from ragcache_bench.questions.relations import BY_SUBJECT
from ragcache_bench.questions.worlds import World


@dataclass(frozen=True)
class _Many:
    """A relation with several values per subject."""

    subject: str
    value: str
    says: tuple[str, ...]
    asks: tuple[str, ...]
    counts: str


_MANY = (
    _Many("site", "person", ("{s} was visited by {o}.",), ("Who visited {s}?", "Who were the visitors of {s}?"),
          "How many people visited {s}?"),
    _Many("product", "company", ("The {s} is sold by {o}.",), ("Which companies sell the {s}?", "Who sells the {s}?"),
          "How many companies sell the {s}?"),
    _Many("policy", "person", ("The {s} was signed by {o}.",), ("Who signed the {s}?",),
          "How many people signed the {s}?"),
    _Many("project", "person", ("{s} was joined by {o}.", "A member of {s} is {o}."),
          ("Who joined {s}?", "Who are the members of {s}?"), "How many members does {s} have?"),
    _Many("project", "material", ("{s} ordered {o}.",), ("What did {s} order?",), "How many materials did {s} order?"),
    _Many("person", "city", ("{s} travelled to {o}.",), ("Where did {s} travel?", "To which cities did {s} travel?"),
          "How many cities did {s} travel to?"),
)  # fmt: skip
_MORE = {
    "capacity": ("Which has more desks, {a} or {b}?", max), "opened": ("Which was opened first, {a} or {b}?", min),
    "price": ("Which costs more, the {a} or the {b}?", max),
    "budget": ("Which has the larger budget, {a} or {b}?", max),
}  # fmt: skip

_LIES, _MOVED = ("The {t} is in the {r}.",), ("The {t} was moved to the {r}.", "Somebody put the {t} into the {r}.")


def multivalue(world: World) -> None:
    """All values of a subject, in reading order."""
    for subject, many, values, places in _many(world):
        world.pose(world.form(many.asks).format(s=subject), ", ".join(values), "multivalue", places)


def counting(world: World) -> None:
    """How many values a subject has; the reader lists them first."""
    for subject, many, values, places in _many(world):
        world.pose(many.counts.format(s=subject), str(len(values)), "counting", places, ", ".join(values))


def _many(world: World) -> list[tuple[str, _Many, list[str], list[tuple[int, int]]]]:
    rng, many, stream = world.rng, world.rng.choice(_MANY), world.stream()
    subjects = [world.names.draw(many.subject) for _ in range(rng.randint(2, 4))]
    told: dict[str, list[tuple[str, tuple[int, int]]]] = {s: [] for s in subjects}
    order = [s for s in subjects for _ in range(rng.randint(1, 3))]
    rng.shuffle(order)
    for s in order:
        value = world.names.draw(many.value)
        told[s].append((value, world.tell(stream, world.form(many.says).format(s=s, o=value))))
    return [(s, many, [v for v, _ in own], [p for _, p in own]) for s, own in told.items()]


def comparing(world: World) -> None:
    """Which of two has more; the reader says both figures first."""
    rng, name = world.rng, world.rng.choice(list(_MORE))
    relation = next(r for rows in BY_SUBJECT.values() for r in rows if r.name == name)
    ask, best = _MORE[name]
    told = []
    for _ in range(rng.randint(3, 5)):
        subject, value = world.names.draw(relation.subject), world.figure(relation.value)
        said = world.form(relation.says).format(s=subject, o=value)
        told.append((subject, value, world.tell(world.stream(), said)))
    for _ in range(4):
        (a, x, p), (b, y, q) = rng.sample(told, 2)
        if _number(x) == _number(y):
            continue
        winner = a if best(_number(x), _number(y)) == _number(x) else b
        world.pose(ask.format(a=a, b=b), winner, "comparing", [p, q], f"{x}, {y}")


def _number(value: str) -> int:
    return int(value.split()[0].replace(",", ""))


def yesno(world: World) -> None:
    """Whether a value is the one told; the reader says the one told first."""
    rng, kind = world.rng, world.rng.choice(("project", "person", "company", "product", "site", "policy"))
    relation = rng.choice(BY_SUBJECT[kind])
    told = []
    for _ in range(rng.randint(2, 4)):
        subject, value = world.names.draw(kind), world.names.draw(relation.value)
        said = world.form(relation.says).format(s=subject, o=value)
        told.append((subject, value, world.tell(world.stream(), said)))
    values = [value for _, value, _ in told]
    for subject, value, place in told:
        claimed = value if rng.random() < 0.5 else rng.choice(values)
        noun = relation.says[0].removeprefix("The ").removesuffix(" is {o}.").removesuffix(" is in {o}.")
        text = f"Is the {noun.format(s=subject)} {claimed}?"
        world.pose(text, "yes" if claimed == value else "no", "yesno", [place], value)


def moves(world: World) -> None:
    """Things that change their place: where each is now, was first, and was before."""
    rng, stream = world.rng, world.stream()
    things = [world.names.draw("thing") for _ in range(rng.randint(2, 3))]
    path: dict[str, list[tuple[str, tuple[int, int]]]] = {t: [] for t in things}
    order = [t for t in things for _ in range(rng.randint(1, 4))]
    rng.shuffle(order)
    for thing in order:
        been = [room for room, _ in path[thing]]
        room = world.names.draw("room")
        said = world.form(_MOVED if been else _LIES).format(t=thing, r=room)
        path[thing].append((room, world.tell(stream, said)))
    for thing, steps in path.items():
        rooms, places = [room for room, _ in steps], [place for _, place in steps]
        world.pose(f"Where is the {thing} now?", rooms[-1], "moves", places)
        if len(rooms) > 1:
            world.pose(f"Where was the {thing} first?", rooms[0], "moves", places)
            k = rng.randint(1, len(rooms) - 1)
            trail = ", ".join(rooms[: k + 1])
            world.pose(f"Where was the {thing} before the {rooms[k]}?", rooms[k - 1], "moves", places, trail)
