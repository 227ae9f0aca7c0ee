"""Chunks which need an earlier one: whose section, which antecedent, which label, which state, which unit.

Each function tells one stream of chunks and asks about it. With `twin` layout, names and values are the
same, but every chunk says all that is needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from ragcache_bench.questions.relations import BY_SUBJECT, Relation
from ragcache_bench.questions.worlds import World

_KINDS = ("project", "product", "site", "policy", "company", "person", "event", "vessel")
_UNITS = ("euros", "dollars", "pounds", "francs", "crowns", "yen")
_TURNS = (
    "The next {kind} is {s}.", "Now to the {kind} {s}.", "We turn to the {kind} {s}.", "The {kind} {s} comes next.",
)  # fmt: skip
_MEANS = ("Below, {label} stands for {s}.", "From here on, {label} means {s}.", "{label} is short for {s} now.")
_ITEMS = ("{label} is {s}.", "{label} means {s}.", "{label} stands for {s}.")
_AMOUNTS = ("Amounts below are in {unit}.", "From here on, amounts are in {unit}.", "All that follows is in {unit}.")


def sections(world: World, twin: bool) -> None:
    """Only a section's first chunk names its subject."""
    kind = world.rng.choice(world.lexicon.kinds or _KINDS)
    facts = world.table(kind, world.among(2, 4), world.rng.randint(*world.level.relations), {})
    world.tell_in_sections(facts, twin)


def pronouns(world: World, twin: bool) -> None:
    """Say "the company" of the company named last; where kinds take turns, subjects of others come in between."""
    rng, stream = world.rng, world.stream()
    turns = []
    for kind in rng.sample(world.lexicon.kinds or _KINDS, rng.choice((2, 2, 3)) if _interleaved(world) else 1):
        rows = _some(world, kind)
        turns.append([_Turn(world, kind, world.names.draw(kind), rows) for _ in range(world.among(2, 3))])
    for turn, relation in _riffled(rng, turns):
        if relation is None:
            turn.start = world.tell(stream, world.form(_TURNS).format(kind=turn.kind, s=turn.subject))
        else:
            turn.fact(stream, relation, turn.subject if twin else "", "pronoun", twin)
    world.linked |= not twin


def labels(world: World, twin: bool) -> None:
    """Labels which are given a new meaning from time to time; facts name the label only."""
    rng, stream, kind = world.rng, world.stream(), world.rng.choice(world.lexicon.kinds or _KINDS)
    rows = _some(world, kind)
    turns = []
    for label in rng.sample(
        [f"{letter}{n}" for letter in "PQRTXZ" for n in range(1, 10)], 2 if _interleaved(world) else 1
    ):
        subjects = [world.names.draw(kind) for _ in range(world.among(2, 3))]
        turns.append([_Turn(world, label, subject, rows) for subject in subjects])
    for turn, relation in _riffled(rng, turns):
        if relation is None:
            turn.start = world.tell(stream, world.form(_MEANS).format(label=turn.kind, s=turn.subject))
        else:
            turn.fact(stream, relation, turn.subject if twin else turn.kind, "label", twin)
    world.linked |= not twin


def enumerations(world: World, twin: bool) -> None:
    """One chunk numbers all subjects; each fact names its subject by the number."""
    rng, stream, kind = world.rng, world.stream(), world.rng.choice(world.lexicon.kinds or _KINDS)
    rows, letter, form = _some(world, kind), rng.choice("PQRTXZ"), world.form(_ITEMS)
    turns = [_Turn(world, f"{letter}{n}", world.names.draw(kind), rows) for n in range(1, world.among(2, 4) + 1)]
    start = world.tell(stream, " ".join(form.format(label=turn.kind, s=turn.subject) for turn in turns))
    facts = [(turn, relation) for turn in turns for relation in turn.relations]
    for turn, relation in rng.sample(facts, len(facts)):
        turn.start = start
        turn.fact(stream, relation, turn.subject if twin else turn.kind, "enumeration", twin)
    world.linked |= not twin


def _some(world: World, kind: str) -> list[Relation]:
    """What is told of each subject: the more, the further the last of it is from its header."""
    return world.lexicon.some(world.rng, kind, world.rng.randint(*world.level.relations))


def _interleaved(world: World) -> bool:
    return world.rng.random() < world.level.interleaved


class _Turn:
    """One subject's time: where it is introduced, and what is said of it until the next one."""

    def __init__(self, world: World, kind: str, subject: str, relations: Sequence[Relation]) -> None:
        self.world, self.kind, self.subject, self.relations = world, kind, subject, relations
        self.start = (0, 0)

    def fact(self, stream: int, relation: Relation, name: str, family: str, twin: bool) -> None:
        value = self.world.names.draw(relation.value)
        said = self.world.form(relation.says)
        if not name:  # what it is, behind the article that the sentence may bring
            name = self.kind if "the {s}" in said.lower() else f"the {self.kind}"
        place = self.world.tell(stream, said.format(s=name, o=value))
        self.world.subjects |= {self.start: self.subject, place: self.subject}
        places = [place] if twin else [self.start, place]
        self.world.means(place, said, name, self.subject)
        self.world.inquire(relation, self.subject, value, family + "-twin" * twin, places)


def _riffled(rng: Random, turns: Iterable[Sequence[_Turn]]) -> list[tuple[_Turn, Relation | None]]:
    """Each kind's turns in order, introduction first, the kinds interleaved."""
    queues = [
        [(turn, r) for turn in own for r in (None, *rng.sample(turn.relations, len(turn.relations)))] for own in turns
    ]
    order = [i for i, queue in enumerate(queues) for _ in queue]
    rng.shuffle(order)
    heads = [iter(queue) for queue in queues]
    return [next(heads[i]) for i in order]


@dataclass(frozen=True)
class _Log:
    """A state that changes, events in it, and the question for the state at an event."""

    value: str
    event: str
    states: tuple[str, ...]
    events: tuple[str, ...]
    twins: tuple[str, ...]
    asks: tuple[str, ...]


_LOGS = (
    _Log("colour", "person", ("The alarm level is now {v}.", "The alarm level changes to {v}."), ("We let in {e}.",),
         ("We let in {e} at alarm level {v}.",), ("What was the alarm level for {e}?",)),
    _Log("room", "thing", ("The guard is in the {v}.", "The guard walks to the {v}."), ("The guard heard the {e}.",),
         ("The guard heard the {e} in the {v}.",), ("Where did the guard hear the {e}?",)),
    _Log("material", "company", ("The shop sells {v} now.", "The shop changes to {v}."), ("The shop served {e}.",),
         ("The shop served {e} with {v}.",), ("What did the shop sell to {e}?",)),
    _Log("person", "company", ("{v} is on duty.", "{v} takes over the desk."), ("A parcel came from {e}.",),
         ("A parcel from {e} went to {v}.",), ("Who took in the parcel from {e}?", "Who was on duty for {e}?")),
    _Log("amount", "company", ("The price is now {v}.", "The price changes to {v}."), ("An order came from {e}.",),
         ("An order from {e} came to {v}.",), ("What was the price for {e}?", "How much was the order from {e}?")),
    _Log("city", "person", ("The train stops in {v}.", "The train reaches {v}."), ("The train picked up {e}.",),
         ("The train picked up {e} in {v}.",),
         ("Where did the train pick up {e}?", "In which city did the train pick up {e}?")),
    _Log("site", "thing", ("The tour moves on to {v}.", "The tour reaches {v}."), ("The tour lost a {e}.",),
         ("The tour lost a {e} at {v}.",), ("Where did the tour lose the {e}?",)),
    _Log("date", "company", ("The calendar says {v}.", "The date is {v}."), ("We heard from {e}.",),
         ("We heard from {e} on {v}.",), ("When did we hear from {e}?", "On which date did we hear from {e}?")),
)  # fmt: skip
_SHORT = 3


def shifts(world: World, twin: bool) -> None:
    """A log: a state holds until the next one; an event is in the state it falls into."""
    rng, stream = world.rng, world.stream()
    log = rng.choice(_LOGS if world.level.forms > 1 else _LOGS[:_SHORT])  # one-token states first
    for _ in range(world.among(2, 4)):
        state = world.names.draw(log.value)
        start = world.tell(stream, world.form(log.states).format(v=state))
        for _ in range(rng.randint(*world.level.relations)):
            event = world.names.draw(log.event)
            place = world.tell(stream, world.form(log.twins if twin else log.events).format(e=event, v=state))
            ask = world.form(log.asks).format(e=event)
            world.pose(ask, state, "shift" + "-twin" * twin, [place] if twin else [start, place])
    world.linked |= not twin


def units(world: World, twin: bool) -> None:
    """Bare amounts, whose unit is the one announced last."""
    rng, stream = world.rng, world.stream()
    rows = [r for kind in _KINDS for r in BY_SUBJECT[kind] if r.value == "amount"]
    for unit in rng.sample(_UNITS, world.among(2, 4)):
        start = world.tell(stream, world.form(_AMOUNTS).format(unit=unit))
        for relation in rng.choices(rows, k=rng.randint(*world.level.relations)):
            subject, bare = world.names.draw(relation.subject), str(rng.randint(11, 999))
            value = f"{bare} {unit}"
            said = world.form(relation.says).format(s=subject, o=value if twin else bare)
            place = world.tell(stream, said)
            world.inquire(relation, subject, value, "unit" + "-twin" * twin, [place] if twin else [start, place])
    world.linked |= not twin
