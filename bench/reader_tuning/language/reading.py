"""Relations are written down as text, a few lines each; this module reads them and adds the wordings any noun allows.

A relation begins with `subject name: value kind`, then come lines of wordings, separated by ` / `:

    museum director: person < led
      noun director / head
      says {o} took over {s} last spring.
      it   {o} took it over last spring.
      ask  Who took over {s}?
      new  Who has been at the top of {s} lately?
      call the person at the top of {s}

`< led` takes the wordings of the sense `led` in `senses.py` as well. A longer line goes on in the next one, two spaces
deeper. In wordings, `{s}` is the subject with its article ("the {s}" for the kinds in `ARTICLE`), `{S}` its bare name,
`{o}` the value, `{n}` the first noun, `{t}` the word for the subject kind and `{k}` that for the value kind. A noun may
bring its own preposition: `number of beds@in`.
"""

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ragcache_bench.questions.relations import Relation

#: Subject kinds whose names take an article in running text.
ARTICLE = frozenset(
    """
    product policy thing museum river bridge machine aircraft vehicle robot species law treaty battle club
    committee orchestra choir festival expedition garden market tower statue telescope agency newspaper glacier library
    theatre factory farm mine charity recipe prize building dam power-plant election concert fund tree hotel meeting
    """.split()
)
#: Subject kinds spoken of as "they".
PEOPLE = frozenset("person athlete monarch student patient musician".split())
#: Value kinds that may begin a sentence, as they have a capital or a digit.
PROPER = frozenset(
    """
    person athlete monarch student patient musician city company project product site event vessel number year weekday
    month nation tongue percentage amount date code badge country book film song painting wine team club village river
    mountain island museum hospital university school station title phone version score weight length speed duration
    distance area volume power size dose frequency temperature language lake star castle satellite play game
    committee orchestra newspaper agency airline library theatre volcano planet mine software laboratory hotel aircraft
    vehicle machine medicine law treaty battle festival match course port airport farm factory contract order prize
    """.split()
)
#: Value kinds which relations are told about, so that a noun phrase leads on to a second question.
ENTITIES = frozenset(
    "person company city project product site event vessel museum hospital university school club team book film "
    "river mountain island species country language".split()
)
#: Value kinds of ordinary words that take "a"; none begins with a vowel.
_COUNTED = ("animal", "noun")
_KEYS = ("noun", "says", "it", "ask", "new", "call")
_WORD = {
    "badge": "number",
    "room number": "room",
    "tongue": "language",
    "nation": "country",
    "role": "job",
    "email": "e-mail address",
    "phone": "phone number",
    "path": "path",
    "score": "score",
    "food": "ingredient",
    "court case": "case",
    "ore": "mineral",
    "amount": "amount",
    "noun": "word",
    "subject": "subject",
    "power plant": "plant",
    "train line": "line",
}

_SAYS = (
    "The {n} of {s} is {o}.",
    "{s}'s {n} is {o}.",
    "{N} of {s}: {o}",
    "{o} is the {n} of {s}.",
    "| {S} | {n} | {o} |",
    "{s}, whose {n} is {o}, {tail}.",
    "As the {n} of {s}, the records name {o}.",
    "For {s}, the {n} is {o}.",
    "{S} ({n}: {o})",
    "{S} – {n}: {o}",
    "The {n} given for {s} is {o}.",
    "{s} has {o} as {its} {n}.",
    "With {o} as {its} {n}, {s} {tail}.",
    "{s} {tail}; {its} {n} is {o}.",
    "{o}: {n} of {s}",
    "We were told that the {n} of {s} is {o}.",
    "{S}, {n}: {o}",
    "Note that {o} is the {n} of {s}.",
    "According to the files, the {n} of {s} is {o}.",
    "{s} – the {n} is {o} – {tail}.",
)
_IT = (
    "The {n} is {o}.",
    "{Its} {n} is {o}.",
    "{N}: {o}",
    "{o} is the {n}.",
    "- {n}: {o}",
    "As the {n}, the records name {o}.",
    "The {n}, by the way, is {o}.",
    "{N} – {o}",
    "{o} is {its} {n}.",
    "The {n} is given as {o}.",
    "| {n} | {o} |",
    "According to the files, the {n} is {o}.",
    "The {n} of the {t} is {o}.",
    "The {t} has {o} as {its} {n}.",
    "The {t}'s {n} is {o}.",
)
_ASK = (
    "{What} is the {n} of {s}?",
    "{What} is {s}'s {n}?",
    "{What} is given as the {n} of {s}?",
    "Give the {n} of {s}.",
    "Can you name the {n} of {s}?",
    "I need the {n} of {s}.",
    "Tell me the {n} of {s}.",
    "{N} of {s}?",
    "Do you know the {n} of {s}?",
    "Which {k} is the {n} of {s}?",
    "For {s}, {what} is the {n}?",
    "Look up the {n} of {s}.",
    "What do the notes give as the {n} of {s}?",
    "{s}: {n}?",
    "Please state the {n} of {s}.",
    "{What} was the {n} of {s} again?",
)
_TAILS = (
    "is on the list",
    "came up again",
    "is described below",
    "was mentioned twice",
    "appears in the files",
    "is well known here",
    "was discussed at length",
    "is in the news",
    "has its own page",
    "needs no introduction",
)


@dataclass
class Wordings:
    """What one block of text holds."""

    subject: str
    name: str
    value: str
    sense: str = ""
    forms: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, key: str) -> tuple[str, ...]:
        return self.forms.get(key, ())


def blocks(text: str) -> list[Wordings]:
    """Read blocks of wordings as they stand.

    Parameters
    ----------
    text : str
        Lines as the module describes them.

    Returns
    -------
    list of Wordings
        One a block.
    """
    found: list[Wordings] = []
    key = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        head, _, rest = line.strip().partition(" ")
        if not line.startswith(" "):
            found.append(_headed(line))
        elif not line.startswith("   ") and head in _KEYS:
            key = head
            found[-1].forms[key] = found[-1][key] + _split(rest)
        else:
            found[-1].forms[key] += _split(line)
    return found


def _headed(line: str) -> Wordings:
    match = re.fullmatch(r"(.+) (\S+): ([^<]+?)(?: < (\S+))?", line)
    if match is None:
        raise ValueError(f"not the beginning of a relation: {line!r}")
    subject, name, value, sense = match.groups()
    return Wordings(subject, name, value, sense or "")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in (p.strip() for p in text.split(" / ")) if part)


def read(text: str, senses: Mapping[str, Wordings] | None = None) -> tuple[Relation, ...]:
    """Read relations, with the wordings of their senses and those any noun allows.

    Parameters
    ----------
    text : str
        Lines as the module describes them.
    senses : mapping of str to Wordings, optional
        Wordings shared by several relations, by name.

    Returns
    -------
    tuple of Relation
        One a block, in order.
    """
    return tuple(_relation(block, (senses or {}).get(block.sense)) for block in blocks(text))


def _relation(block: Wordings, sense: Wordings | None) -> Relation:
    if block.sense and sense is None:
        raise ValueError(f"no sense {block.sense!r}")
    nouns = block["noun"] or (sense["noun"] if sense else ())
    own = {key: block[key] + (sense[key] if sense else ()) for key in _KEYS[1:]}
    seed = zlib.crc32(f"{block.subject} {block.name}".encode())
    fill = _Filler(block, nouns[0] if nouns else block.name)
    new = fill.all(own["new"], [])
    says = fill.all(own["says"], _framed(_SAYS, nouns, 4, seed, block.value))
    its = fill.all(own["it"], _framed(_IT, nouns, 3, seed, block.value))
    asks = fill.all(own["ask"], _framed(_ASK, nouns, 3, seed, block.value))
    call = fill.all(own["call"], [("the {n} of {s}", nouns[0])] if nouns and block.value in ENTITIES else [])
    return Relation(
        block.name,
        block.subject,
        block.value,
        says,
        its,
        tuple(a for a in asks if a not in new),
        new,
        call if block.value in ENTITIES else (),
    )


def _framed(frames: tuple[str, ...], nouns: Iterable[str], each: int, seed: int, value: str) -> list[tuple[str, str]]:
    """Pairs of a frame and a noun: the plain frame for the first noun, then some others in turn."""
    usable = [_determined(f, value) for f in frames if value in PROPER or not f.startswith("{o}")]
    pairs: list[tuple[str, str]] = []
    at = seed % (len(usable) - 1)
    for i, noun in enumerate(nouns):
        if not i:
            pairs.append((usable[0], noun))
        for _ in range(each):
            pairs.append((usable[1 + at % (len(usable) - 1)], noun))
            at += 1
    return pairs


def _determined(frame: str, value: str) -> str:
    """The frame with an article before the value, if its kind takes one and this is no label."""
    if frame[-1] != "." or not (value in ARTICLE or value in ("room", *_COUNTED)):
        return frame
    frame = frame.replace("{o}", "a {o}" if value in _COUNTED else "the {o}")
    return frame[0].upper() + frame[1:]


class _Filler:
    """Fills in all but subject and value."""

    def __init__(self, block: Wordings, noun: str) -> None:
        self._block, self._noun = block, noun
        self._article = block.subject.replace(" ", "-") in ARTICLE
        self._people = block.subject in PEOPLE
        self._tail = zlib.crc32(f"{block.subject}.{block.name}".encode())

    def all(self, forms: Iterable[str], framed: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The wordings written down and those of nouns, the plainest of these first."""
        from_nouns = [self._one(form, noun) for form, noun in framed]
        written = [self._one(form, self._noun) for form in forms]
        return tuple(dict.fromkeys([*from_nouns[:1], *written, *from_nouns[1:]]))

    def _one(self, form: str, noun: str) -> str:
        noun, _, preposition = noun.partition("@")
        self._tail += 1
        value = self._block.value
        what = "who" if value in PEOPLE else f"which {value}" if value in ("company", "city") else "what"
        if preposition:
            form = form.replace("{n} of {s}", f"{{n}} {preposition} {{s}}")
            form = form.replace("{n} of the {t}", f"{{n}} {preposition} the {{t}}")
        words = {
            "{n}": noun,
            "{N}": noun[0].upper() + noun[1:],
            "{t}": _WORD.get(self._block.subject, self._block.subject),
            "{k}": _WORD.get(value, value),
            "{what}": what,
            "{What}": what[0].upper() + what[1:],
            "{its}": "their" if self._people else "its",
            "{Its}": "Their" if self._people else "Its",
            "{tail}": _TAILS[self._tail % len(_TAILS)].replace("its", "their" if self._people else "its"),
        }
        for slot, word in words.items():
            form = form.replace(slot, word)
        if self._people:
            form = re.sub(r"^It (?=can )", "They ", form)
        if self._article:
            form = re.sub(r"^the \{s\}(?! ?:)", "The {s}", form.replace("{s}", "the {s}")).replace(
                ". the {s}", ". The {s}"
            )
            form = form if form[-1] in ".|" or not form.startswith("The {s}") else form.replace("The", "the", 1)
        return form.replace("{S}", "{s}")


def fill(form: str, subject: str, value: str = "") -> str:
    """A statement or question with its subject and value, beginning with a capital.

    Parameters
    ----------
    form : str
        A wording with `{s}` and perhaps `{o}`.
    subject, value : str
        What to put there.

    Returns
    -------
    str
        The sentence. A web address, a path or an e-mail address keeps its first letter.
    """
    text = form.format(s=subject, o=value)
    return text if text.startswith(subject) and "." in subject else text[0].upper() + text[1:]
