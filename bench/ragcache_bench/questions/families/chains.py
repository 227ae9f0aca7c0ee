"""Questions over several facts, answered step by step: the reader says every name on the way."""

from itertools import pairwise

from ragcache_bench.questions.relations import BY_SUBJECT, RELATIONS, Relation
from ragcache_bench.questions.worlds import World, plain_of

_SAME = ("{a} has the same {noun} as {b}.", "The {noun} of {a} is that of {b}.")
_SAME_KINDS = (
    ("project", "code"), ("project", "budget"), ("person", "badge"), ("company", "phone"), ("site", "opened"),
)  # fmt: skip


def twohop(world: World) -> None:
    """Where the lead of a project lives: two facts."""
    _hops(world, 2, "twohop")


def threehop(world: World) -> None:
    """Where the founder of the company that makes a product lives: three facts."""
    _hops(world, 3, "threehop")


def _path(world: World, hops: int) -> list[Relation]:
    """Relations of which each starts where the one before ends."""
    while True:
        path = [world.rng.choice([r for r in RELATIONS if r.phrase])]
        while len(path) < hops:
            following = BY_SUBJECT[path[-1].value]
            fitting = [r for r in following if r not in path and (r.phrase or len(path) == hops - 1)]
            if not fitting:
                break
            path.append(world.rng.choice(fitting))
        if len(path) == hops:
            return path


def _hops(world: World, hops: int, family: str) -> None:
    rng, path = world.rng, _path(world, hops)
    for _ in range(rng.randint(2, 3)):
        names = [world.names.draw(path[0].subject), *(world.names.draw(r.value) for r in path)]
        places = [
            world.tell(world.stream(), world.form(r.says).format(s=s, o=o))
            for r, s, o in zip(path, names, names[1:], strict=False)
        ]
        phrase = world.form(path[0].phrase).format(s=names[0])
        for r in path[1:-1]:
            phrase = plain_of(world.form(r.phrase)).format(s=phrase)
        text = plain_of(world.form(path[-1].asks)).format(s=phrase)
        world.pose(text, names[-1], family, places, ": ".join(names[1:-1]))


def tracking(world: World) -> None:
    """A value handed on: X has the same code as Y, Y the same as Z, and Z has the code 4711."""
    rng = world.rng
    kind, name = rng.choice(_SAME_KINDS)
    relation = next(r for r in BY_SUBJECT[kind] if r.name == name)
    noun = relation.says[0].removeprefix("The ").split(" of ")[0]
    for _ in range(rng.randint(2, 3)):
        names = [world.names.draw(kind) for _ in range(rng.randint(2, 4))]  # the first holds the value
        value = world.names.draw(relation.value)
        places = [world.tell(world.stream(), world.form(relation.says).format(s=names[0], o=value))]
        for b, a in pairwise(names):
            places.append(world.tell(world.stream(), world.form(_SAME).format(a=a, b=b, noun=noun)))
        for k in range(len(names) - 1, 0, -1):
            text = world.form(relation.asks).format(s=names[k])
            world.pose(text, value, "tracking", places[: k + 1], ": ".join(reversed(names[:k])))


def exceptions(world: World) -> None:
    """A rule in one chunk, its exception for somebody in another one."""
    rng = world.rng
    relation = rng.choice([r for r in BY_SUBJECT["policy"] if r.name in ("limit", "review", "owner")])
    projects = [world.names.draw("project") for _ in range(rng.randint(3, 4))]
    for _ in range(rng.randint(1, 2)):
        policy, rule = world.names.draw("policy"), world.names.draw(relation.value)
        said = world.form(relation.says)
        place = world.tell(world.stream(), said.format(s=policy, o=rule))
        special = rng.sample(projects, rng.randint(1, len(projects) - 1))
        for project in projects:
            ask = world.form(relation.asks).format(s=policy)[:-1] + f" for {project}?"
            if project not in special:
                world.pose(ask, rule, "exception", [place])
                continue
            value = world.names.draw(relation.value)
            other = f"For {project}, {said[0].lower()}{said[1:]}".format(s=policy, o=value)
            world.pose(ask, value, "exception", [place, world.tell(world.stream(), other)])
