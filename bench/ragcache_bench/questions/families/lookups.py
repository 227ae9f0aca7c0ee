"""Facts that name their subject, keys and numbers, and questions which the notes do not answer."""

from ragcache_bench.questions.worlds import UNKNOWN, World

_KINDS = ("project", "person", "company", "product", "site", "policy", "event", "vessel")


def facts(world: World) -> None:
    """Plain facts about subjects of one kind."""
    kind = world.rng.choice(world.lexicon.kinds or _KINDS)
    world.tell_plainly(world.table(kind, world.rng.randint(2, 5), world.rng.randint(1, 2), {}))


def bystander(world: World) -> None:
    """One chunk with one fact, which nobody asks for."""
    relation = world.lexicon.one(world.rng, world.rng.choice(world.lexicon.kinds or _KINDS))
    subject, value = world.names.draw(relation.subject), world.names.draw(relation.value)
    world.tell(world.stream(), world.form(relation.says).format(s=subject, o=value))


def needles(world: World) -> None:
    """Many keys, each with its own number."""
    kind = world.rng.choice(("word", "word", "thing"))
    world.tell_plainly(world.table(kind, world.rng.randint(3, 8), 1, {}))


def unknown(world: World) -> None:
    """Facts, and questions for what is not said: another relation, or a subject that does not occur."""
    rng, kind = world.rng, world.rng.choice(world.lexicon.kinds or _KINDS)
    told = world.table(kind, rng.randint(2, 4), rng.randint(1, 2), {})
    world.tell_plainly(told)
    for _ in range(rng.randint(1, 2)):
        world.pose(world.form(rng.choice(told).relation.asks).format(s=world.names.draw(kind)), UNKNOWN, "unknown", [])
    vain = world.ask_in_vain()
    if vain:
        world.asked.append(vain)
