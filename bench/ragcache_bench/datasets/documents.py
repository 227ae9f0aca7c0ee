"""The published sets that ask about whole documents: papers, conversations, news, long contexts."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from ragcache_bench.datasets.files import Node, document, records
from ragcache_bench.datasets.formats import pieces
from ragcache_bench.datasets.item import PARTS, Item, choice, titled
from ragcache_bench.datasets.overlap import Overlap

_LETTERS = "ABCD"
_ADVERSARIAL, _INFERENCE, _TEMPORAL = 5, 3, 2  # categories of LoCoMo
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D(\d+):(\d+)")
_CORPUS = "corpus.json"


def longbench_v2(row: Node, words: int, length: str | None = None) -> Item | None:
    """LongBench v2: one long context a question, and four choices (2412.15204); None where it is of another length.

    The choices belong to the question; the letter is as good an answer as the choice's text. Evidence is not marked.

    Parameters
    ----------
    row : Node
        A record.
    words : int
        Most words of a piece of the context.
    length : str, optional
        "short", "medium" or "long", as the file marks a context; without it all are read.
    """
    if length is not None and row["length"].text() != length:
        return None
    choices = {letter: row[f"choice_{letter}"].label().strip() for letter in _LETTERS}
    right = row["answer"].text()
    if right not in choices:
        raise row["answer"].wrong("A, B, C or D")
    lines = [row["question"].filled(), *(f"({letter}) {text}" for letter, text in choices.items())]
    question = "\n".join([*lines, "Answer with the letter of the right choice only."])
    passages = pieces(row["context"].filled(), words)
    return Item(
        row["_id"].label() if "_id" in row else "", question, choice(right, choices[right]), passages, starts=(0,)
    )


def qasper(path: Path) -> Iterator[Item]:
    """QASPER: questions about one paper, several annotators' answers, and their evidence (2105.03011).

    A paper is one document: its abstract, then its paragraphs. Left out are questions that an annotator found
    unanswerable, and those without a paragraph as evidence, such as those about a table or a figure.
    """
    for _, paper in document(path).items():
        titles, texts = _paper(paper)
        for asked in paper["qas"]:
            given = [one["answer"] for one in asked["answers"]]
            evidence = [text for one in given for span in one["evidence"] if (text := _line(span.text()))]
            gold = tuple(i for i, text in enumerate(texts) if any(span in text for span in evidence))
            answers = tuple(dict.fromkeys(filter(None, map(_given, given))))
            if gold and answers and not any(one.flag("unanswerable") for one in given):
                name, question = asked["question_id"].label(), asked["question"].filled()
                yield Item(name, question, answers, texts, gold, titles, (0,))


def _paper(paper: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Title and text of each passage: the abstract under the paper's title, paragraphs under their section's."""
    passages = [(paper["title"].text(), _line(paper["abstract"].text()))]
    for section in paper["full_text"]:
        name = next(iter(section["section_name"].some()), "")
        passages += [(name, _line(paragraph.text())) for paragraph in section["paragraphs"]]
    passages = [(title, text) for title, text in passages if text]
    if not passages:
        raise paper["full_text"].wrong("at least one paragraph")
    return tuple(title for title, _ in passages), tuple(text for _, text in passages)


def _given(answer: Node) -> str:
    """One annotator's answer, as the authors' reader takes it: yes or no, else the spans, else the free form."""
    if answer["yes_no"].value is not None:
        return "yes" if answer.flag("yes_no") else "no"
    spans = answer["extractive_spans"].some()
    return PARTS.join(spans) if spans else answer["free_form_answer"].text()


def _line(text: str) -> str:
    return text.replace("\n", " ").strip()  # as the authors compare evidence with paragraphs


def locomo(path: Path, turns: int) -> Iterator[Item]:
    """LoCoMo: questions about ten long conversations of many sessions (2402.17753), `turns` turns a chunk.

    A session is one document; its first chunk begins with its date, which questions about time need. Adversarial
    questions, which nothing answers, are left out. Of an answer in doubt, what stands before the first semicolon is
    taken, as the authors' scorer does. Images are told by their captions.
    """
    for number, sample in enumerate(records(path), 1):
        talk = _conversation(sample["conversation"], turns)
        name = sample["sample_id"].label() if "sample_id" in sample else str(number)
        for count, asked in enumerate(sample["qa"], 1):
            if asked["category"].value != _ADVERSARIAL:
                question, gold = asked["question"].filled(), talk.evidence(asked)
                answers = _settled(asked["answer"], asked["category"].value == _INFERENCE)
                yield Item(f"{name}-{count}", question, answers, talk.chunks, gold, talk.titles, talk.starts)


def _settled(answer: Node, inference: bool) -> tuple[str, ...]:
    text = answer.label().strip()
    text = text.split(";")[0].strip() if inference else text
    if not text:
        raise answer.wrong("something that is not blank")
    return (text,)


@dataclass(frozen=True)
class _Conversation:
    """Chunks of a conversation, their sessions' dates, where sessions begin, and each turn's chunk."""

    chunks: tuple[str, ...]
    titles: tuple[str, ...]
    starts: tuple[int, ...]
    places: Mapping[tuple[int, int], int]

    def evidence(self, asked: Node) -> tuple[int, ...]:
        """The chunks that a question needs; what names no turn, as some evidence does, is passed over."""
        listed = list(asked["evidence"]) if "evidence" in asked else []
        named = [turn for one in listed for turn in _turns(one)]
        gold = {self.places[turn] for turn in named if turn in self.places}
        if asked["category"].value == _TEMPORAL:
            gold |= {max(start for start in self.starts if start <= place) for place in gold}
        return tuple(sorted(gold))


def _turns(name: Node) -> list[tuple[int, int]]:
    """Session and number of the turns in "D1:3"; some evidence names several, "D8:6; D9:17"."""
    return [(int(session), int(turn)) for session, turn in _TURN.findall(name.text())]


def _conversation(talk: Node, turns: int) -> _Conversation:
    chunks: list[str] = []
    titles: list[str] = []
    starts: list[int] = []
    places: dict[tuple[int, int], int] = {}
    for number in sorted(int(named[1]) for key, _ in talk.items() if (named := _SESSION.fullmatch(key))):
        said = list(talk[f"session_{number}"])
        date = talk[f"session_{number}_date_time"].filled()
        starts += [len(chunks)] * bool(said)
        for first in range(0, len(said), turns):
            part = said[first : first + turns]
            places |= {turn: len(chunks) for one in part for turn in _turns(one["dia_id"])}
            chunks.append("\n".join([*[date] * (first == 0), *map(_said, part)]))
            titles.append(date)
    if not chunks:
        raise talk.wrong("sessions: 'session_1', 'session_1_date_time', …")
    return _Conversation(tuple(chunks), tuple(titles), tuple(starts), places)


def _said(turn: Node) -> str:
    caption = turn["blip_caption"].text() if "blip_caption" in turn else ""
    shown = f" [shows {caption}]" if caption else ""
    return f"{turn['speaker'].filled()}: {turn['text'].text()}{shown}"


def multihop_rag(path: Path, words: int) -> Iterator[Item]:
    """MultiHop-RAG: questions about two to four news articles, which lie beside in corpus.json (2401.15391).

    An article is one document, cut into pieces of so many words at most, each under title, source and day: questions
    name them, and the authors' own retrieval has them in every chunk. Needed is, for each fact of the evidence, the
    piece that shares the most words with it. Questions without evidence ("null queries") are left out.
    """
    corpus = cache(partial(_corpus, path.parent / _CORPUS, words))
    for number, row in enumerate(records(path), 1):
        question, answers = row["query"].filled(), (row["answer"].filled(),)
        evidence = list(row["evidence_list"])
        if evidence:
            passages, titles, starts, gold = _joined(evidence, corpus)
            yield Item(str(number), question, answers, passages, gold, titles, starts)


def _joined(
    evidence: Sequence[Node], corpus: Callable[[], dict[str, tuple[str, tuple[str, ...]]]]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Passages of the articles that an evidence names, their titles, where articles begin, and the pieces needed."""
    passages: list[str] = []
    titles: list[str] = []
    starts: dict[str, int] = {}
    gold: set[int] = set()
    for one in evidence:
        name, fact = one["title"].filled(), one["fact"].filled()
        if name not in corpus():
            raise one["title"].wrong(f"the title of an article in {_CORPUS}")
        title, texts = corpus()[name]
        if name not in starts:
            starts[name] = len(passages)
            passages += texts
            titles += [title] * len(texts)
        gold.add(starts[name] + Overlap(texts).nearest(fact, 1)[0])
    return tuple(passages), tuple(titles), tuple(starts.values()), tuple(sorted(gold))


def _corpus(path: Path, words: int) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each article's line of title, source and day, and its pieces under it, by its title."""
    found = {}
    for row in records(path):
        name = row["title"].filled()
        line = f"{name} ({row['source'].filled()}, {row['published_at'].filled()[:10]})"
        found[name] = line, tuple(titled(line, piece) for piece in pieces(row["body"].filled(), words))
    return found
