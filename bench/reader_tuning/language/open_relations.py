"""Relations made up of ordinary nouns, so that a model learns to match whatever words a question uses."""

import zlib
from random import Random

from ragcache_bench.questions.relations import Relation

from reader_tuning.language import words as w
from reader_tuning.language.made import NAMES
from reader_tuning.language.names import KINDS
from reader_tuning.language.reading import PEOPLE, PROPER

_SAYS = """
The {n} of {s} is {o}.
{s}'s {n} is {o}.
{N} of {s}: {o}
{o} is the {n} of {s}.
{o} is {s}'s {n}.
| {s} | {n} | {o} |
| {n} | {s} | {o} |
{s}: {n} {o}
{s} ({n}: {o})
{s} – {n}: {o}
{s}, {n}: {o}
{o}: {n} of {s}
{s}, whose {n} is {o}, is well known.
{s}, with {o} as its {n}, is on the list.
As {n}, {s} has {o}.
As the {n} of {s}, they chose {o}.
For {s}, the {n} is {o}.
In the case of {s} the {n} is {o}.
The {n} given for {s} is {o}.
The {n} that belongs to {s} is {o}.
The {n} listed for {s} is {o}.
The {n} which {s} has is {o}.
{s} has {o} as its {n}.
{s} has a {n}: {o}.
With {s}, the {n} is {o}.
Under "{n}" the file on {s} says {o}.
The file on {s} gives {o} as the {n}.
The {n} recorded for {s} was {o}.
The register shows {o} as the {n} of {s}.
We noted {o} as the {n} for {s}.
Note that the {n} of {s} is now {o}.
When it comes to {s}, the {n} is {o}.
Everyone knows that {o} is the {n} of {s}.
At the moment the {n} of {s} is {o}.
According to the notes, {s} has the {n} {o}.
{s} goes with the {n} {o}.
Speaking of {s}: its {n} is {o}.
Of all things, {o} is the {n} of {s}.
{s} was assigned {o} as {n}.
[{s}] {n} = {o}
{s} > {n} > {o}
- {n} of {s}: {o}
""".strip().splitlines()
_IT = """
The {n} is {o}.
Its {n} is {o}.
{N}: {o}
{o} is the {n}.
{o} is its {n}.
- {n}: {o}
| {n} | {o} |
{N} – {o}
The {n} is given as {o}.
As the {n}, they chose {o}.
The {n}, by the way, is {o}.
It has {o} as its {n}.
Its {n} was recorded as {o}.
According to the notes, the {n} is {o}.
Under "{n}" it says {o}.
At the moment the {n} is {o}.
The {n} here is {o}.
{n} = {o}
We noted {o} as the {n}.
With it goes the {n} {o}.
""".strip().splitlines()
_ASKS = """
{What} is the {n} of {s}?
{What} is {s}'s {n}?
{What} is the {n} for {s}?
What {n} does {s} have?
Which {n} does {s} have?
Which {n} belongs to {s}?
What {n} is given for {s}?
Which {n} is listed for {s}?
Give the {n} of {s}.
Tell me the {n} of {s}.
Name the {n} of {s}.
State {s}'s {n}.
I need the {n} of {s}.
Can you tell me the {n} of {s}?
Can you find the {n} for {s}?
Do you know the {n} of {s}?
Please look up the {n} of {s}.
{N} of {s}?
{s}: {n}?
For {s}, {what} is the {n}?
In the case of {s}, {what} is the {n}?
What do the notes say about the {n} of {s}?
What does the file give as the {n} of {s}?
What was noted as the {n} of {s}?
What has {s} got as its {n}?
{What} was the {n} of {s} again?
When it comes to {s}, {what} is the {n}?
What is known about the {n} of {s}?
Under "{n}", what does it say for {s}?
I am looking for {s}'s {n}.
""".strip().splitlines()
_UNSEEN = """
Could you remind me of the {n} of {s}?
What would you enter as the {n} of {s}?
What stands under {n} in the entry on {s}?
How does the {n} of {s} read?
What did they put down as {s}'s {n}?
Show me the {n} that {s} has.
""".strip().splitlines()
_ROLES = """
keeper, guardian, witness, rival, ally, partner, deputy, successor, predecessor, delegate, envoy, guide, patron,
donor, guarantor, trustee, spokesman, advocate, critic, neighbour, tenant, guest, referee, warden, godparent,
custodian, contact, champion, opponent, benefactor, inspector, advisor, interpreter, treasurer, registrar,
bookkeeper, signatory, nominee
"""
_VALUES = tuple(kind for kind in KINDS if kind not in ("restaurant", "dish", "recipe", "species", "thing"))
_PERSON_NOUNS = tuple(part.strip() for part in _ROLES.replace("\n", " ").split(",") if part.strip())
_SUBJECTS = tuple(kind for kind in NAMES if kind not in ("thing", "dish", "recipe", "species"))
_FEW = ("number", "amount", "date", "code", "person", "company", "city", "word", "noun", "material", "colour", "animal")


def _noun(rng: Random, value: str) -> str:
    """A noun, mostly with something in front: "crest motif", "closing figure", "spare lantern"."""
    last = rng.choice(_PERSON_NOUNS) if value in PEOPLE and rng.random() < 0.6 else rng.choice(w.NOUNS)
    draw = rng.random()
    if draw < 0.2:
        return last
    if draw < 0.65:
        return f"{rng.choice(w.ADJECTIVES)} {last}"
    first = rng.choice(w.NOUNS)
    return f"{first} {last}" if first != last else last


def _some(rng: Random, frames: list[str], count: int, value: str) -> list[str]:
    """The first frame, the plainest, and some others."""
    usable = [f for f in frames[1:] if value in PROPER or not f.startswith("{o}")]
    return [frames[0], *rng.sample(usable, count - 1)]


def open_relation(rng: Random, value: str = "", subject: str = "") -> Relation:
    """A relation between a subject and a value, named by random ordinary nouns.

    Parameters
    ----------
    rng : random.Random
        Source of randomness.
    value, subject : str, optional
        Kinds, if they are not to be drawn.

    Returns
    -------
    Relation
        Of a random subject kind whose names take no article, with eight statements, six that leave the subject out,
        ten questions and two unseen ones. Statements may begin with the value, and with a subject in small letters.
    """
    value = value or (rng.choice(_FEW) if rng.random() < 0.5 else rng.choice(_VALUES))
    subject = subject or rng.choice(_SUBJECTS)
    noun = _noun(rng, value)
    what = "who" if value in PEOPLE else "what"
    slots = {"{n}": noun, "{N}": noun[0].upper() + noun[1:], "{what}": what, "{What}": what[0].upper() + what[1:]}

    def filled(frames: list[str], count: int) -> tuple[str, ...]:
        forms = []
        for form in _some(rng, frames, count, value):
            for slot, word in slots.items():
                form = form.replace(slot, word)
            if subject in PEOPLE:
                form = form.replace(" its ", " their ").replace("Its ", "Their ").replace("It has", "They have")
            if noun[0] in "aeiou":
                form = form.replace(f" a {noun}", f" an {noun}")
            forms.append(form[0].upper() + form[1:] if form[0] != "{" else form)
        return tuple(forms)

    name = f"open {zlib.crc32(f'{noun} {subject} {value}'.encode()):08x}"
    phrase = (f"the {noun} of {{s}}",) if value in PEOPLE or value in ("company", "city") else ()
    return Relation(
        name, subject, value, filled(_SAYS, 8), filled(_IT, 6), filled(_ASKS, 10), filled(_UNSEEN, 2), phrase
    )  # fmt: skip
