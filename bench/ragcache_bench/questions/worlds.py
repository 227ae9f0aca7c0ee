"""Invented contexts: chunks of notes and questions about them, from one plain fact up to mixed sections."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from ragcache_bench.questions.level import Level
from ragcache_bench.questions.lexicon import PLAIN, Lexicon
from ragcache_bench.questions.names import VALUES
from ragcache_bench.questions.relations import BY_SUBJECT, RELATIONS, Relation

UNKNOWN = "The notes do not say."
_KINDS = ("project", "person", "company", "product", "site", "policy", "word", "thing")
_KIND_WEIGHTS = (4, 3, 2, 2, 2, 2, 1, 1)
_TITLES = ("# Staff notes", "# News", "# Partners", "## Minutes", "# Register", "Minutes of the meeting:", "News:")
_TITLE_LINES = ("{s}\n", "{s}\n\n", "# {s}\n\n", "## {s}\n", "Title: {s}\n", "[{s}] ", "{s} | ", "Page: {s}\n\n")
_BACK = ("Back to {s}.", "More on {s}.", "We return to {s}.")


@dataclass
class Question:
    """One question with its answer, its family (fact, section, twin, twohop, unknown) and the chunks it needs.

    A two-hop question has a `bridge`, the name in the middle, which the reader says before the answer: two look-ups one
    after the other are within its depth, two at once were not learnt.
    """

    text: str
    answer: str
    family: str
    bridge: str = ""
    gold: list[int] = field(default_factory=list)

    @property
    def reply(self) -> str:
        """What the reader is trained to say."""
        return f"{self.bridge}: {self.answer}" if self.bridge else self.answer


@dataclass
class Context:
    """Chunks, questions, and whether the chunks may be read on their own (no chunk needs another).

    `meant` says whose a value is: chunk, characters to the end of the words for the name, characters up to the value,
    and the name. `subjects` says whom each chunk is about, where a page would have that for a title; blank elsewhere.
    """

    chunks: list[str]
    questions: list[Question]
    separable: bool
    meant: list[tuple[int, int, int, str]] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)


@dataclass
class _Fact:
    relation: Relation
    subject: str
    value: str
    chunk: int = -1


def plain_of(form: str) -> str:
    """A phrasing for a noun phrase, which brings its own article."""
    return form.replace("the {s}", "{s}")


class World:
    """One invented context in the making.

    Parameters
    ----------
    rng : Random
        Source of randomness.
    level : Level
        Difficulty.
    held : bool
        Use held-out names and, for three facts in ten, unseen phrasings.
    lexicon : Lexicon
        The words it is told in.
    """

    def __init__(self, rng: Random, level: Level, held: bool = False, lexicon: Lexicon = PLAIN) -> None:
        self.rng, self.level, self.held, self.lexicon = rng, level, held, lexicon
        self.names = lexicon.names(rng, held, level.alike)
        self.linked = False  # some chunk needs another one
        self.asked: list[Question] = []
        self.units: list[list[list[str]]] = []  # streams of chunks, a chunk being a list of sentences
        self.titles: dict[tuple[int, int], str] = {}  # lines above chunks, by place
        self.subjects: dict[tuple[int, int], str] = {}  # whom a chunk is about, by place
        self.facts: list[_Fact] = []
        self._title_form = rng.choice(_TITLE_LINES) if level.titled and rng.random() < level.titled else ""
        self._where: dict[int, tuple[int, int]] = {}
        self._family: dict[int, str] = {}
        self._header: dict[int, tuple[int, int]] = {}
        self._places: dict[int, list[tuple[int, int]]] = {}  # question -> (stream, chunk within it)
        self._meant: list[tuple[tuple[int, int], str, str, str]] = []  # place, text before the value, words, name

    # -- what is true -------------------------------------------------------------------------------------------
    def table(self, kind: str, subjects: int, relations: int, known: dict[str, list[str]]) -> list[_Fact]:
        """Draw `subjects` names and the values of `relations` relations for each; values may be known entities."""
        rows = self.lexicon.some(self.rng, kind, relations)
        facts = []
        for _ in range(subjects):
            pool = known.get(kind, [])
            name = pool.pop() if pool and self.rng.random() < 0.7 else self.names.draw(kind)
            facts += [_Fact(r, name, self._value(r, known)) for r in rows]
        return facts

    def _value(self, relation: Relation, known: dict[str, list[str]]) -> str:
        name = self.names.draw(relation.value)
        if relation.value in ("person", "company", "project"):
            known.setdefault(relation.value, []).append(name)
        return name

    def figure(self, kind: str) -> str:
        """A value whose figure can be compared: in the one way that the plain lexicon writes it."""
        return self.names.draw(kind) if self.lexicon is PLAIN else VALUES[kind](self.rng)

    # -- how it is told -----------------------------------------------------------------------------------------
    def form(self, forms: tuple[str, ...]) -> str:
        """One of the phrasings in use; one draw however many there are, so that twins stay alike."""
        used = forms[: self.level.forms]
        return used[int(self.rng.random() * len(used))]

    def among(self, low: int, high: int) -> int:
        """How many subjects to tell apart."""
        drawn = self.rng.randint(low, high)
        return self.level.subjects or drawn

    def _titled(self, sentences: list[str]) -> list[str]:
        """Now and then a title above, or a list."""
        draw = self.rng.random() if self.level.forms > 1 else 1.0
        if draw < 0.1:
            return [f"- {s}" for s in sentences]
        return [self.rng.choice(_TITLES), *sentences] if draw < 0.2 else sentences

    def _join(self, sentences: list[str]) -> str:
        """One chunk's text; lists, titles and some paragraphs stand on lines of their own."""
        if sentences[0].startswith("- "):
            return "\n".join(sentences)
        if sentences[0] in _TITLES:
            return sentences[0] + "\n\n" + _run_on(sentences[1:])
        if self.level.forms > 1 and self.rng.random() < 0.15:
            return "\n\n".join(sentences)
        return _run_on(sentences)

    def _padded(self, sentence: str, filler: float) -> list[str]:
        before = [self.lexicon.idle(self.rng) for _ in range(3) if self.rng.random() < filler]
        after = [self.lexicon.idle(self.rng) for _ in range(3) if self.rng.random() < filler * 0.7]
        return [*before, sentence, *after]

    def tell_plainly(self, facts: list[_Fact]) -> None:
        """Every fact names its subject; a few facts may share a chunk."""
        facts = self.rng.sample(facts, len(facts))
        while facts:
            sentences: list[str] = []
            for _ in range(1 + (self.rng.random() < self.level.filler) + (self.rng.random() < self.level.filler)):
                if facts:
                    fact = facts.pop()
                    self._note(fact, "fact")
                    said = self.form(fact.relation.says)
                    self.means((len(self.units), 0), said, "", fact.subject)
                    sentences += self._padded(said.format(s=fact.subject, o=fact.value), self.level.filler * 0.6)
            self.units.append([self._titled(self._filled(sentences))])
            if self._title_form:
                self.titles[len(self.units) - 1, 0] = self._title_form.format(s=self.names.draw("project"))

    def tell_in_sections(self, facts: list[_Fact], twin: bool = False) -> None:
        """Only a section's first chunk names the subject (`twin`: every chunk does)."""
        parts: list[tuple[str, list[_Fact]]] = []
        for subject in dict.fromkeys(f.subject for f in facts):
            own = [f for f in facts if f.subject == subject]
            self.rng.shuffle(own)
            k = self.rng.randint(1, len(own) - 1) if len(own) > 1 and self.rng.random() < 0.15 else len(own)
            parts += [(subject, part) for part in (own[:k], own[k:]) if part]
        self.rng.shuffle(parts)
        stream: list[list[str]] = []
        seen: set[str] = set()
        idle = self.level.filler
        filler, looks = self.rng.uniform(0.0, min(0.9, 2 * idle)), self.lexicon.headers[: max(1, self.level.forms)]
        for subject, part in parts:
            header = self.rng.choice(_BACK if subject in seen and self.level.forms > 1 else looks).format(s=subject)
            seen.add(subject)
            top = (len(self.units), len(stream))
            stream.append([header, *(self.lexicon.idle(self.rng) for _ in range(4) if self.rng.random() < filler)])
            for fact in part:
                while self.rng.random() < filler * 0.2:
                    stream.append([self.lexicon.idle(self.rng), self.lexicon.idle(self.rng)])
                self._note(fact, "twin" if twin else "section", (len(self.units), len(stream)), None if twin else top)
                said = self.form(fact.relation.says if twin else fact.relation.it)
                self.means(self._where[id(fact)], said, "", fact.subject)
                stream.append(self._padded(said.format(s=fact.subject, o=fact.value), filler))
            if self._title_form:
                above = self._title_form.format(s=subject)
                self.titles |= {(len(self.units), at): above for at in range(top[1], len(stream))}
        self.units.append(stream)

    def _note(
        self, fact: _Fact, family: str, place: tuple[int, int] | None = None, header: tuple[int, int] | None = None
    ) -> None:
        self._where[id(fact)] = place or (len(self.units), 0)
        self._family[id(fact)] = family
        if header:
            self._header[id(fact)] = header
        self.facts.append(fact)

    def stream(self) -> int:
        """Open a stream of chunks which keep their order, and return its number."""
        self.units.append([])
        return len(self.units) - 1

    def tell(self, stream: int, sentence: str) -> tuple[int, int]:
        """Append a chunk with `sentence` among idle ones; return its place."""
        idle = self.level.filler
        self.units[stream].append(self._filled(self._padded(sentence[0].upper() + sentence[1:], idle)))
        return stream, len(self.units[stream]) - 1

    def means(self, place: tuple[int, int], form: str, words: str, name: str) -> None:
        """Note that `words`, in the sentence of that form in the chunk at `place`, stand for `name`."""
        told, value, _ = form.partition("{o}")
        before = told.rstrip().format(s=words or name)
        if not value or ("{s}" in form and "{s}" not in told) or len(before) < 2:
            return  # the value stands before any word for its subject
        self._meant.append((place, before, words, name))

    def _filled(self, sentences: list[str]) -> list[str]:
        """At least as many words as the level wants."""
        rng = Random(self.rng.random())  # of its own: a twin's sentences are longer
        while len(" ".join(sentences).split()) < self.level.least:
            sentences.insert(0 if rng.random() < 0.7 else len(sentences), self.lexicon.idle(rng))
        return sentences

    @property
    def size(self) -> int:
        """Chunks so far."""
        return sum(len(unit) for unit in self.units)

    # -- what is asked ------------------------------------------------------------------------------------------
    def ask(self, fact: _Fact) -> Question:
        """Ask for one fact."""
        gold = [self._where[id(fact)], *([self._header[id(fact)]] if id(fact) in self._header else [])]
        return self._question(self._asked(fact.relation, fact.subject), fact.value, self._family[id(fact)], gold)

    def inquire(self, relation: Relation, subject: str, value: str, family: str, places: list[tuple[int, int]]) -> None:
        """Ask for a relation's value when the context is finished."""
        self.pose(self._asked(relation, subject), value, family, places)

    def _asked(self, r: Relation, subject: str) -> str:
        unseen = self.held and r.unseen and self.rng.random() < 0.3
        return self.form(r.unseen if unseen else r.asks).format(s=subject)

    def ask_twice(self) -> list[Question]:
        """Questions whose answer takes two facts: where the lead of X lives."""
        facts = [f for f in self.facts if self._family[id(f)] == "fact"]
        pairs = [(a, b) for a in facts for b in facts if a.relation.phrase and a.value == b.subject]
        return [self._chained(first, second) for first, second in pairs]

    def _chained(self, first: _Fact, second: _Fact) -> Question:
        phrase = self.form(first.relation.phrase).format(s=first.subject)
        text = plain_of(self.form(second.relation.asks)).format(s=phrase)
        places = [self._where[id(first)], self._where[id(second)]]
        return self._question(text, second.value, "twohop", places, first.value)

    def ask_in_vain(self) -> Question | None:
        """Ask for what the notes do not hold."""
        told = {(f.subject, f.relation.name) for f in self.facts}
        fact = self.rng.choice(self.facts)
        rows = self.lexicon.relations.get(fact.relation.subject, ())
        free = [r for r in rows if (fact.subject, r.name) not in told]
        if not free:
            return None
        text = self.rng.choice(self.rng.choice(free).asks).format(s=fact.subject)
        return self._question(text, UNKNOWN, "unknown", [])

    def pose(self, text: str, answer: str, family: str, places: list[tuple[int, int]], bridge: str = "") -> None:
        """Ask something when the context is finished."""
        self.asked.append(self._question(text, answer, family, places, bridge))

    def _question(
        self, text: str, answer: str, family: str, places: list[tuple[int, int]], bridge: str = ""
    ) -> Question:
        question = Question(text[0].upper() + text[1:], answer, family, bridge)
        self._places[id(question)] = places
        return question

    # -- order --------------------------------------------------------------------------------------------------
    def finish(self, questions: list[Question]) -> Context:
        """Interleave the streams, each in its own order, and turn places into chunk numbers."""
        questions = [*self.asked, *questions]
        heads, chunks = [0] * len(self.units), list[str]()
        number: dict[tuple[int, int], int] = {}
        order = [i for i, unit in enumerate(self.units) for _ in unit]
        self.rng.shuffle(order)
        for i in order:
            number[i, heads[i]] = len(chunks)
            chunks.append(self.titles.get((i, heads[i]), "") + self._join(self.units[i][heads[i]]))
            heads[i] += 1
        for q in questions:
            q.gold = sorted({number[place] for place in self._places[id(q)]})
        self.rng.shuffle(questions)
        meant = []
        for place, before, words, name in self._meant:
            start = chunks[number[place]].index(before[1:]) - 1  # its first letter may be a capital by now
            said = start + (before.index(words) + len(words) if words else len(before))
            meant.append((number[place], said, start + len(before), name))
        subjects = [""] * len(chunks)
        for place, subject in self.subjects.items():
            subjects[number[place]] = subject
        return Context(chunks, questions, not (self._header or self.linked), meant, subjects)


def _run_on(sentences: Sequence[str]) -> str:
    """One sentence after the other; what has no end mark, a label or a row of a table, ends its line."""
    return "".join(one + (" " if one.endswith((".", "?", "!")) else "\n") for one in sentences).rstrip()


def _groups(world: World) -> list[str]:
    kinds = world.rng.choices(_KINDS, _KIND_WEIGHTS, k=world.rng.randint(1, world.level.groups))
    return list(dict.fromkeys(kinds))


def make_context(rng: Random, level: Level, held: bool = False) -> Context:
    """Return one context at `level`: several groups of facts, plain and in sections, with questions about them.

    Parameters
    ----------
    rng : Random
        Source of randomness.
    level : Level
        Difficulty.
    held : bool
        Held-out names and unseen phrasings.

    Returns
    -------
    Context
        Chunks in reading order and shuffled questions.
    """
    world = World(rng, level, held)
    known: dict[str, list[str]] = {}
    sections = rng.random() < level.sections
    if rng.random() < level.twohop:
        _chains(world)
    kinds = _groups(world) if not world.facts or rng.random() < 0.6 else []
    for i, kind in enumerate(kinds[: rng.randint(1, 2)] if sections else kinds):  # or sections drown among other notes
        named = kind not in ("word", "thing")
        headed = i == 0 and named and (sections or rng.random() < 0.4 * level.sections)
        longer = rng.randint(1, 2) if headed and level.forms > 1 else 0  # facts further from their header
        facts = world.table(kind, rng.randint(*level.entities), rng.randint(*level.relations) + longer, known)
        if headed:
            world.tell_in_sections(facts, twin=not sections)
        else:
            world.tell_plainly(facts)
    questions = [world.ask(f) for f in world.facts]
    twice = world.ask_twice() if level.twohop else []
    questions += rng.sample(twice, min(len(twice), 6))
    if rng.random() < level.unknown:
        vain = world.ask_in_vain()
        questions += [vain] if vain else []
    context = world.finish(questions)
    return _cut(rng, context) if rng.random() < level.cut else context


def _chains(world: World) -> None:
    """Plain facts which link up: projects with leads and sponsors, and where those live or have their office."""
    rng = world.rng
    firsts = [r for r in RELATIONS if r.phrase]
    first = rng.choice(firsts)
    seconds = rng.sample(BY_SUBJECT[first.value], rng.randint(1, 2))
    mates = [r for r in BY_SUBJECT[first.subject] if r is not first]
    mate = rng.sample(mates, rng.randint(0, min(2, len(mates))))
    facts = []
    for _ in range(rng.randint(2, max(2, world.level.entities[1]))):
        subject, value = world.names.draw(first.subject), world.names.draw(first.value)
        facts.append(_Fact(first, subject, value))
        facts += [_Fact(r, value, world.names.draw(r.value)) for r in seconds]
        facts += [_Fact(r, subject, world.names.draw(r.value)) for r in mate]
    world.tell_plainly(facts)


def _cut(rng: Random, context: Context) -> Context:
    """Join all text and cut it anew between words, anywhere."""
    words = " ".join(context.chunks).split(" ")
    chunks, i = [], 0
    while i < len(words):
        n = rng.randint(15, 90)
        chunks.append(" ".join(words[i : i + n]))
        i += n
    for q in context.questions:
        q.gold = []
    return Context(chunks, context.questions, False)
