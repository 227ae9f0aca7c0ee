"""Questions and passages to tune on, and those that are kept apart to examine by: split by article, never by question.

Public files are named by their folder and read, never copied. Nothing of an examined article is trained on: neither its
questions nor its passages, whichever file they stand in.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from ragcache_bench.datasets.files import content, records
from ragcache_bench.datasets.formats import squad
from ragcache_bench.datasets.texts import ircot

XQUAD = Path("xquad/xquad.en.json")
NQ_OPEN = Path("nq-open-oracle/nq-open-oracle.jsonl.gz")
WIKI = Path("2wiki-corpus/2wikimultihopqa_corpus.json.gz")
IRCOT = tuple(Path("ircot") / f"{name}.txt" for name in ("2wikimultihopqa", "hotpotqa", "musique"))
WRITTEN = Path(__file__).with_name("written.jsonl")
"""More questions about NQ-open's passages, which language models wrote for this project: digest, question, answer."""
EXAMINED = {"xquad": 12, "nq-open": 400}
"""Articles of XQuAD, and questions of NQ-open, that are kept for examination."""
VALIDATION = {"xquad": 3, "nq-open": 90}
"""The same of what is left, for the learning curve."""


@dataclass(frozen=True)
class Passage:
    """A passage, its article's title, and questions about it, each with its accepted answers."""

    title: str
    text: str
    asked: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass
class Part:
    """Articles of XQuAD, each as its passages in order, and passages that stand alone."""

    articles: list[list[Passage]] = field(default_factory=list)
    single: list[Passage] = field(default_factory=list)


@dataclass(frozen=True)
class Material:
    """What is trained on, what the curve is drawn from, and what is examined."""

    training: Part
    validation: Part
    examined: Part
    wiki: tuple[Passage, ...]


def load(folder: Path, seed: int = 0) -> Material:
    """Read the public files below a folder, and split them.

    Raises
    ------
    InvalidArgument
        If a file is missing or has another format.
    """
    rng = random.Random(seed)
    articles = sorted(_xquad(folder / XQUAD), key=lambda article: article[0].title)
    single = sorted(_nq_open(folder / NQ_OPEN), key=lambda passage: (passage.title, passage.text))
    rng.shuffle(articles)
    examined, validation, training = Part(), Part(), Part()
    examined.articles, rest = articles[: EXAMINED["xquad"]], articles[EXAMINED["xquad"] :]
    validation.articles, training.articles = rest[: VALIDATION["xquad"]], rest[VALIDATION["xquad"] :]
    titles = list(dict.fromkeys(passage.title for passage in single))
    rng.shuffle(titles)
    _share(titles, single, ((examined, EXAMINED["nq-open"]), (validation, VALIDATION["nq-open"]), (training, None)))
    apart = {article[0].title for article in examined.articles} | {passage.title for passage in examined.single}
    apart |= {text.partition("\n")[0] for path in IRCOT for item in ircot(folder / path) for text in item.passages}
    training.articles = [article for article in training.articles if article[0].title not in apart]
    written = _written(WRITTEN)
    training.single = [_asked_more(one, written) for one in training.single if one.title not in apart]
    wiki = tuple(passage for passage in _wiki(folder / WIKI) if passage.title not in apart)
    return Material(training, validation, examined, wiki)


def _share(titles: Sequence[str], single: Sequence[Passage], parts: Sequence[tuple[Part, int | None]]) -> None:
    """All passages of a title to one part, until it has so many questions."""
    by_title: dict[str, list[Passage]] = {}
    for passage in single:
        by_title.setdefault(passage.title, []).append(passage)
    rest = iter(titles)
    for part, most in parts:
        for title in rest:
            part.single += by_title[title]
            if most is not None and sum(len(passage.asked) for passage in part.single) >= most:
                break


def _xquad(path: Path) -> Iterator[list[Passage]]:
    """Each article as its passages in order, all under its title."""
    for _, group in groupby(squad(path), lambda item: id(item.passages)):
        items = list(group)
        first = items[0]
        yield [
            Passage(title, text, tuple((one.question, one.answers) for one in items if one.gold == (place,)))
            for place, (title, text) in enumerate(zip(first.titles, first.passages, strict=True))
        ]


def _nq_open(path: Path) -> Iterator[Passage]:
    """Each passage once, with all questions about it whose answer stands in it."""
    asked: dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]] = {}
    for row in records(path):
        (gold,) = row["ctxs"]
        title, text = gold["title"].text(), gold["text"].filled()
        answers = tuple(answer for answer in row["answers"].texts() if answer.lower() in text.lower())
        if answers:
            asked.setdefault((title, text), []).append((row["question"].filled(), answers))
    for (title, text), questions in asked.items():
        yield Passage(title, text, tuple(questions))


def _written(path: Path) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Questions and answers by their passage's digest."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for row in records(path):
        found.setdefault(row["id"].label(), []).append((row["question"].filled(), (row["answer"].filled(),)))
    return found


def _asked_more(passage: Passage, written: Mapping[str, list[tuple[str, tuple[str, ...]]]]) -> Passage:
    digest = hashlib.sha256(passage.text.encode()).hexdigest()[:16]
    return replace(passage, asked=(*passage.asked, *written.get(digest, ())))


_DATE = r"(?:\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2}, \d{4})"
_NAME = r"[A-Z](?:[\w'\u2019-]+|\.)(?: (?:[A-Z](?:[\w'\u2019-]+|\.)|de|von|van|da))+"
_ASKED: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), asks)
    for pattern, asks in (
        (rf"\( ?born ({_DATE})", ("When was {s} born?", "What is the date of birth of {s}?", "{s} was born when?")),
        (rf"\( ?({_DATE}) ?–", ("When was {s} born?", "On what date was {s} born?")),
        (rf"– ({_DATE})\)", ("When did {s} die?", "What is the date of death of {s}?", "On which day did {s} die?")),
        (rf"directed by ({_NAME})", ("Who directed {s}?", "Who is the director of {s}?", "By whom was {s} directed?")),
        (rf"written by ({_NAME})", ("Who wrote {s}?", "Who is the writer of {s}?")),
        (rf"starring ({_NAME})", ("Who starred in {s}?", "Who has the first role in {s}?")),
        (rf"produced by ({_NAME})", ("Who produced {s}?", "Who is the producer of {s}?")),
        (rf"released on ({_DATE})", ("When was {s} released?", "On which date did {s} come out?")),
        (r"is a (\d{4}) ", ("From which year is {s}?", "In which year did {s} appear?")),
        (rf"(?:son|daughter) of ({_NAME})", ("Who was a parent of {s}?", "Whose child was {s}?")),
        (rf"married ({_NAME})", ("Whom did {s} marry?", "Who was the spouse of {s}?")),
        (r"is a (?:village|town|city|commune|municipality) in (?:the )?([A-Z]\w+(?: [A-Z]\w+)*)",
         ("Where is {s}?", "In which area does {s} lie?")),
    )
)  # fmt: skip
_SHORT = 80  # words


def _wiki(path: Path) -> Iterator[Passage]:
    """Titled passages, with the questions that rules find in them."""
    for row in json.loads(content(path)):
        title, text = row["title"], " ".join(row["text"].split()[:_SHORT])
        subject = title.partition(" (")[0]
        asked = []
        for number, (pattern, asks) in enumerate(_ASKED):
            found = pattern.search(text)
            if found:
                choice = (len(title) + number) % len(asks)
                asked.append((asks[choice].format(s=subject), (found[1],)))
        if asked:
            yield Passage(title, text, tuple(asked))


def write_part(part: Part, folder: Path) -> None:
    """Write a part's questions as files of the formats they came in, for `ragcache bench quality --data`.

    The files are called after their folder: `examined/xquad-examined.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    articles = [
        {"title": article[0].title, "paragraphs": [_squad(passage, f"{i}-{j}") for j, passage in enumerate(article)]}
        for i, article in enumerate(part.articles)
    ]
    squad_file = json.dumps({"data": articles}, ensure_ascii=False)
    (folder / f"xquad-{folder.name}.json").write_text(squad_file, encoding="utf-8")
    lines = [
        json.dumps(
            {
                "question": question,
                "answers": list(answers),
                "ctxs": [{"title": passage.title, "text": passage.text, "hasanswer": True, "isgold": True}],
            },
            ensure_ascii=False,
        )
        for passage in part.single
        for question, answers in passage.asked
    ]
    (folder / f"nq-open-{folder.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _squad(passage: Passage, name: str) -> dict[str, object]:
    asked = [
        {
            "id": f"{name}-{k}",
            "question": question,
            "answers": [{"text": answer, "answer_start": passage.text.find(answer)} for answer in answers],
        }
        for k, (question, answers) in enumerate(passage.asked)
    ]
    return {"context": passage.text, "qas": asked}
