"""The demo corpus: documents of a fictional institute and questions about them, the same bytes on every run.

Every fact is told exactly once. Pages about projects, products, sites and policies name their subject at the top only
("It has a budget of …"); notes, news and partner sheets name the subject in every sentence. What is said of a person or
company often mentions in passing what it was in the news for, as real notes do: one embedding search can then find both
halves of a two-hop question, though neither half gives the answer away.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ragcache_bench.questions.idle import idle_sentence
from ragcache_bench.questions.names import MONTH, Names
from ragcache_bench.questions.relations import BY_SUBJECT, Relation

from ragcache.bundled import CorpusQuestion

_PAGES = {"project": 24, "product": 16, "site": 14, "policy": 14}
_ON_PAGE = {"project": ("budget", "code", "start"), "product": ("price", "colour"),
            "site": ("capacity", "opened"), "policy": ("limit", "review")}  # fmt: skip
_IN_NEWS = {"project": ("lead", "base", "sponsor", "material"), "product": ("maker", "designer"), "site": ("manager",),
            "policy": ("owner",)}  # fmt: skip
_PERSON = ("town", "role", "badge", "room", "mentor", "employer")
_COMPANY = ("office", "founder", "phone")
_COMPANIES = 20
_HEADERS = ("This page is about {s}.", "These notes are about {s}.", "Here are the facts on {s}.")
_ASKED = {"one-hop": 150, "two-hop": 90, "section": 90}
_UNSEEN = 0.3
_PASSING = ("Somebody asked about {p} again.", "There was a word about {p} too.", "The talk was about {p} first.")
_MENTIONED = 0.7
_WORDS = 36


@dataclass(frozen=True)
class _Fact:
    relation: Relation
    subject: str
    value: str
    document: str
    evidence: tuple[str, ...]


class _Writer:
    """Invents the institute, writes its documents, remembers every fact."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = Names(self.rng, held=True)
        self.documents: dict[str, str] = {}
        self.facts: list[_Fact] = []
        self.subjects = {kind: [self.names.draw(kind) for _ in range(n)] for kind, n in _PAGES.items()}
        self.companies = [self.names.draw("company") for _ in range(_COMPANIES)]
        self.people: list[str] = []

    def write(self) -> None:
        for kind, names in self.subjects.items():
            for name in names:
                self._page(kind, name)
        self._sheets("news", "News of {month}", self._news(), 4, "md")
        self._sheets("partners", "Partners", self._about("company", self.companies, _COMPANY, 3), 4, "md")
        self._sheets("staff", "Staff notes", self._about("person", list(self.people), _PERSON, 3), 5, "txt")

    def _value(self, relation: Relation) -> str:
        if relation.value == "company":
            return self.rng.choice(self.companies)
        value = self.names.draw(relation.value)
        if relation.value == "person" and relation.name not in ("mentor", "founder"):
            self.people.append(value)
        return value

    # -- pages: sections whose subject stands at the top only
    def _page(self, kind: str, name: str) -> None:
        document = f"{kind}s/{name.lower().replace(' ', '-')}.md".replace("policys", "policies")
        header = self.rng.choice(_HEADERS).format(s=name)
        paragraphs = [f"# {name}", self._paragraph([header])]
        for key in self.rng.sample(_ON_PAGE[kind], len(_ON_PAGE[kind])):
            relation = _relation(kind, key)
            value = self._value(relation)
            said = self.rng.choice(relation.it).format(o=value)
            paragraphs.append(self._paragraph([*self._idle(self.rng.randint(2, 3)), said]))
            self.facts.append(_Fact(relation, name, value, document, (header, said)))
        self.documents[document] = "\n\n".join(paragraphs) + "\n"

    def _paragraph(self, sentences: list[str]) -> str:
        """Fill up to a length of which no two fit one chunk of 80 reader tokens."""
        while len(" ".join(sentences).split()) < _WORDS:
            sentences += self._idle(1)
        return " ".join(sentences)

    def _idle(self, n: int) -> list[str]:
        return [idle_sentence(self.rng) for _ in range(n)]

    # -- sheets: sentences which name their subject
    def _news(self) -> list[tuple[Relation, str, str]]:
        facts = [(_relation(kind, key), name) for kind, keys in _IN_NEWS.items() for key in keys
                 for name in self.subjects[kind]]  # fmt: skip
        return [(r, s, self._value(r)) for r, s in self.rng.sample(facts, len(facts))]

    def _about(self, kind: str, names: list[str], keys: tuple[str, ...], most: int) -> list[tuple[Relation, str, str]]:
        chosen = [(name, key) for name in names for key in self.rng.sample(keys, min(most, len(keys)))]
        return [(r, name, self._value(r)) for name, key in chosen for r in [_relation(kind, key)]]

    def _sheets(self, folder: str, title: str, facts: list[tuple[Relation, str, str]], size: int, suffix: str) -> None:
        for number, start in enumerate(range(0, len(facts), size)):
            document = f"{folder}/{folder}-{number + 1:02d}.{suffix}"
            heading = title.format(month=f"{MONTH[number % 12]} {2024 + number // 12}")
            paragraphs = [f"# {heading}" if suffix == "md" else heading]
            for relation, subject, value in facts[start : start + size]:
                said = self.rng.choice(relation.says).format(s=subject, o=value)
                before, after = self._idle(self.rng.randint(0, 1)), self._idle(self.rng.randint(1, 2))
                before += self._passing(subject)
                paragraphs.append(" ".join([*before, said, *after]))
                self.facts.append(_Fact(relation, subject, value, document, (said,)))
            self.documents[document] = "\n\n".join(paragraphs) + "\n"

    def _passing(self, subject: str) -> list[str]:
        """Mention what the subject was in the news for, without saying how."""
        known = [fact.subject for fact in self.facts if fact.value == subject]
        if not known or self.rng.random() > _MENTIONED:
            return []
        return [self.rng.choice(_PASSING).format(p=self.rng.choice(known))]

    # -- questions
    def questions(self) -> list[CorpusQuestion]:
        told = [f for f in self.facts if not _on_page(f)]
        one = [self._ask("one-hop", f.subject, f) for f in told]
        section = [self._ask("section", f.subject, f) for f in self.facts if _on_page(f)]
        made = {"one-hop": one, "two-hop": list(self._chains(told)), "section": section}
        out: list[CorpusQuestion] = []
        for kind, count in _ASKED.items():
            out += self.rng.sample(made[kind], min(count, len(made[kind])))
        return [_numbered(q, i) for i, q in enumerate(out)]

    def _ask(self, kind: str, subject: str, fact: _Fact, *before: _Fact) -> CorpusQuestion:
        """Ask for `fact`, calling its subject `subject`; `before` holds the facts which that phrase takes."""
        unseen = self.rng.random() < _UNSEEN
        form = self.rng.choice(fact.relation.unseen if unseen else fact.relation.asks)
        text = (form.replace("the {s}", "{s}") if before else form).format(s=subject)
        hops = (*before, fact)
        bridge = fact.subject if before else ""
        return CorpusQuestion("", text[0].upper() + text[1:], fact.value, kind, tuple(f.document for f in hops), unseen,
                              tuple(s for f in hops for s in f.evidence), bridge)  # fmt: skip

    def _chains(self, told: list[_Fact]) -> Iterator[CorpusQuestion]:
        for first in told:
            for second in told if first.relation.phrase else ():
                if second.subject == first.value:
                    phrase = self.rng.choice(first.relation.phrase).format(s=first.subject)
                    yield self._ask("two-hop", phrase, second, first)


def _relation(kind: str, key: str) -> Relation:
    return next(r for r in BY_SUBJECT[kind] if r.name == key)


def _on_page(fact: _Fact) -> bool:
    return fact.relation.name in _ON_PAGE.get(fact.relation.subject, ())


def _numbered(q: CorpusQuestion, i: int) -> CorpusQuestion:
    return replace(q, id=f"q{i + 1:03d}")


def make_corpus(seed: int = 7) -> tuple[dict[str, str], list[CorpusQuestion]]:
    """Return the documents by relative path, and the questions.

    Parameters
    ----------
    seed : int
        The bundled corpus is seed 7.

    Returns
    -------
    tuple
        `{path: text}` and the list of questions, each with its answer and sources.
    """
    writer = _Writer(seed)
    writer.write()
    return writer.documents, writer.questions()


def write_documents(folder: Path, seed: int = 7) -> list[CorpusQuestion]:
    """Write the documents into a folder; return the questions."""
    documents, questions = make_corpus(seed)
    for path, text in documents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return questions


def write_corpus(folder: Path, seed: int = 7) -> None:
    """Write `folder/corpus/` and `folder/questions.jsonl`."""
    questions = write_documents(folder / "corpus", seed)
    lines = [json.dumps(asdict(q), ensure_ascii=False) for q in questions]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_corpus(Path(__file__).resolve().parent.parent / "bundled")
