"""The published JSON formats: what one record of each asks, over which passages, and which of them are needed."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragcache.retrieve.split import Limit, Splitter
from ragcache_bench.datasets.files import Node, document, records
from ragcache_bench.datasets.item import PARTS, Item, closed, containing, titled

_LETTERS = 6  # per word, with the space; counts words in scripts without spaces
_PASSAGE = re.compile(r"^(?=(?:Passage|Document|Paragraph) \d+:)", re.MULTILINE)
_HAS_ANSWER = ("hasanswer", "has_answer")
_IS_GOLD = "isgold"
# RULER's instruction ends here; after its last occurrence, for some tasks show an example first.
_INSTRUCTION = re.compile(
    r"I will quiz you about the .*? afterwards\.|hidden in the following text\.|The following are given documents\."
    r"|Memorize the ones that appear most often\.|Find the three most frequently appeared coded words\."
)
_QA = "Answer the question based on the given documents."
_ASKED = re.compile(r"(?s)(.*)\n(?:Question:)?\s*(\S[^\n]*?)\s*")
_PREFIX = re.compile(r"\s+(?:Answer:|The special magic ).*")  # older versions leave the answer's beginning in the input


def squad(path: Path) -> Iterator[Item]:
    """SQuAD 1.1 and 2.0, XQuAD: articles of paragraphs, each with questions (1606.05250, 1806.03822, 1910.11856).

    An article is one document. Questions marked impossible are left out.
    """
    for article in document(path)["data"]:
        title = article["title"].text().replace("_", " ") if "title" in article else ""
        paragraphs = list(article["paragraphs"])
        texts = tuple(paragraph["context"].filled() for paragraph in paragraphs)
        titles = (title,) * len(texts) if title else ()
        for place, paragraph in enumerate(paragraphs):
            for asked in paragraph["qas"]:
                if not asked.flag("is_impossible"):
                    found = Node([answer["text"].text() for answer in asked["answers"]], asked["answers"].where)
                    question = asked["question"].filled()
                    yield Item(asked["id"].label(), question, found.texts(), texts, (place,), titles, (0,))


def hotpot(row: Node) -> Item:
    """HotpotQA and 2WikiMultihopQA: titled paragraphs of sentences, some supporting (1809.09600, 2011.01060).

    Both in the official form, and in the columns that dataset hubs make of it.
    """
    pairs = _pairs(row["context"], "sentences")
    context = [(title.text(), " ".join(filter(None, (one.text() for one in sentences)))) for title, sentences in pairs]
    _some(context, row["context"])
    needed = {title.text() for title, _ in _pairs(row["supporting_facts"], "sent_id")}
    return Item(
        row["id" if "id" in row else "_id"].label(),
        row["question"].filled(),
        (row["answer"].filled(),),
        tuple(titled(title, text) for title, text in context),
        tuple(i for i, (title, _) in enumerate(context) if title in needed),
        tuple(title for title, _ in context),
    )


def _pairs(table: Node, second: str) -> Iterator[tuple[Node, Node]]:
    if "title" not in table:
        return iter([row.pair() for row in table])
    titles, values = list(table["title"]), list(table[second])
    if len(titles) != len(values):
        raise table.wrong(f"as many entries under 'title' as under {second!r}")
    return zip(titles, values, strict=True)


def musique(row: Node) -> Item | None:
    """MuSiQue: twenty titled paragraphs, two to four supporting (2108.00573); None where marked unanswerable."""
    if not row.flag("answerable", default=True):
        return None
    paragraphs = list(row["paragraphs"])
    _some(paragraphs, row["paragraphs"])
    aliases = [alias.text() for alias in row["answer_aliases"]] if "answer_aliases" in row else []
    return Item(
        row["id"].label(),
        row["question"].filled(),
        tuple(dict.fromkeys(filter(None, [row["answer"].filled(), *aliases]))),
        tuple(titled(one["title"].text(), one["paragraph_text"].text()) for one in paragraphs),
        tuple(i for i, one in enumerate(paragraphs) if one.flag("is_supporting")),
        tuple(one["title"].text() for one in paragraphs),
    )


def retrieved(row: Node) -> Item | None:
    """Retrieved passages: DPR's files (2004.04906), those of Lost in the Middle (2307.03172), CacheBlend's.

    One passage is the evidence: the one marked gold, else the first marked as having the answer. Others that have the
    answer too are left out, so that it is known which one is needed. Nothing marked, nothing known: all stay. None
    where the marks say that no passage has the answer, or where there is no positive one, as DPR's own loader does.
    """
    found = _training(row) if "positive_ctxs" in row else _marked(row["ctxs"])
    return _asked(row, *found) if found else None


def helmet(path: Path) -> Iterator[Item]:
    """HELMET's retrieved passages: NQ, TriviaQA, PopQA and HotpotQA (2410.02694), each question once.

    Its files ask a question several times, with the evidence at other depths; chunks are shuffled here anyway. Which
    two passages a question of HotpotQA needs is not marked: it keeps them all.
    """
    seen: set[str] = set()
    for row in records(path):
        question = row["question"].filled()
        if question not in seen:
            seen.add(question)
            found = _asked(row, list(row["ctxs"]), ()) if path.name.startswith("hotpotqa") else retrieved(row)
            if found:
                yield found


def _asked(row: Node, passages: Sequence[Node], gold: tuple[int, ...]) -> Item:
    question, given = row["question"].filled(), row["answer" if "answer" in row else "answers"]
    answers = (given.filled(),) if isinstance(given.value, str) else given.texts()
    _some(passages, row)
    titles = tuple(one["title"].text() if "title" in one else "" for one in passages)
    texts = tuple(titled(title, one["text"].filled()) for title, one in zip(titles, passages, strict=True))
    return Item(row["id"].label() if "id" in row else "", question, answers, texts, gold, titles)


def _marked(contexts: Node) -> tuple[list[Node], tuple[int, ...]] | None:
    found = list(contexts)
    _some(found, contexts)
    having = [one for one in found if any(one.flag(key) for key in _HAS_ANSWER)]
    needed = next((one for one in found if one.flag(_IS_GOLD)), having[0] if having else None)
    if needed is None:
        marked = any(key in one for one in found for key in (*_HAS_ANSWER, _IS_GOLD))
        return None if marked else (found, ())
    kept = [one for one in found if one is needed or one not in having]
    return kept, (kept.index(needed),)


def _training(row: Node) -> tuple[list[Node], tuple[int, ...]] | None:
    positive = list(row["positive_ctxs"])
    if not positive:
        return None
    others = [one for key in ("hard_negative_ctxs", "negative_ctxs") if key in row for one in row[key]]
    return [positive[0], *others], (0,)


def _some(found: Sequence[object], where: Node) -> None:
    if not found:
        raise where.wrong("at least one passage")


def pairs(row: Node, size: int) -> Item:
    """Key-value retrieval of Lost in the Middle: one of many random identifiers to look up (2307.03172).

    `size` pairs a chunk; lines as in the JSON that the original prompt shows.
    """
    key, value = row["key"].filled(), row["value"].filled()
    found = [(one.text(), other.text()) for one, other in (entry.pair() for entry in row["ordered_kv_records"])]
    if (key, value) not in found:
        raise row.wrong(f"the pair of {key!r} and {value!r} among 'ordered_kv_records'")
    lines = [f'"{one}": "{other}"' for one, other in found]
    chunks = tuple(",\n".join(lines[i : i + size]) for i in range(0, len(lines), size))
    return Item("", f'What is the value of the key "{key}"?', (value,), chunks, (found.index((key, value)) // size,))


def longbench(row: Node, words: int) -> Item:
    """LongBench's question answering: one long context a question (2308.14508), in pieces of so many words at most.

    Gold are the pieces which contain an answer: where an answer takes several steps, only the last is found. Summaries
    and code completion ask nothing and are refused.
    """
    question, answers = row["input"].filled(), row["answers"].texts()
    passages = pieces(row["context"].filled(), words)
    gold = () if closed(answers) else containing(passages, answers)
    return Item(row["_id"].label() if "_id" in row else "", question, answers, passages, gold)


def ruler(row: Node, words: int) -> Item:
    """RULER: instruction, context and question in one text, as prepared with its `base` template (2404.06654).

    Several outputs are parts of one answer, all of them wanted; in its `qa` tasks they are alternatives. Gold are the
    pieces which contain an output: the needles, every step of a variable's chain.
    """
    text, outputs = row["input"].filled(), row["outputs"].texts()
    parts = _ASKED.fullmatch(text)
    if not parts:
        raise row["input"].wrong("a context, and a question in the last line")
    qa, context = _QA in text, _INSTRUCTION.split(parts[1])[-1]
    passages = pieces(context.rpartition(_QA)[0] if qa and _QA in context else context, words)
    answers = outputs if qa else (PARTS.join(outputs),)
    name = row["index"].label() if "index" in row else ""
    return Item(name, _PREFIX.sub("", parts[2]), answers, passages, containing(passages, outputs))


def pieces(text: str, words: int) -> tuple[str, ...]:
    """Cut a context at its numbered passages ("Passage 3:"), else into whole sentences of so many words at most."""
    passages = [part.strip() for part in _PASSAGE.split(text) if part.strip()]
    if len(passages) > 1:
        return tuple(passages)
    splitter = Splitter([Limit(lambda part: max(len(part.split()), len(part) // _LETTERS), words, "a piece")])
    return tuple(piece.text for piece in splitter.split(text))
