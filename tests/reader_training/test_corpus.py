from collections import Counter

from ragcache_bench.questions.names import held_out
from reader_training.corpus import write_corpus

from ragcache.bundled import corpus_path, questions


def test_the_bundled_corpus_is_what_its_generator_writes(tmp_path):
    write_corpus(tmp_path)
    fresh = {p.relative_to(tmp_path / "corpus"): p.read_bytes() for p in (tmp_path / "corpus").rglob("*.*")}
    stored = {p.relative_to(corpus_path()): p.read_bytes() for p in corpus_path().rglob("*.*")}
    assert fresh == stored
    assert (tmp_path / "questions.jsonl").read_bytes() == (corpus_path().parent / "questions.jsonl").read_bytes()


def test_the_corpus_is_as_large_as_promised():
    files = [p for p in corpus_path().rglob("*") if p.is_file()]
    assert len(files) >= 120
    assert {p.suffix for p in files} == {".md", ".txt"}
    asked = questions()
    kinds = Counter(q.kind for q in asked)
    assert len(asked) >= 300
    assert kinds["section"] >= 60
    assert sum(q.unseen_phrasing for q in asked) >= 0.2 * len(asked)


def test_every_answer_and_its_evidence_stand_in_the_sources():
    for q in questions():
        text = "".join((corpus_path() / s).read_text(encoding="utf-8") for s in q.sources)
        assert q.answer in text
        assert all(e in text for e in q.evidence)


def test_no_question_is_asked_twice_and_no_fact_told_twice():
    asked = questions()
    assert len({q.question for q in asked}) == len(asked)
    everything = "\n".join(p.read_text(encoding="utf-8") for p in sorted(corpus_path().rglob("*.*")))
    for q in asked:
        if q.kind == "one-hop":
            assert everything.count(q.evidence[0]) == 1


def test_section_facts_do_not_name_their_subject_and_the_pages_subject_is_held_out():
    for q in questions():
        if q.kind == "section":
            text = (corpus_path() / q.sources[0]).read_text(encoding="utf-8")
            subject = text.splitlines()[0].removeprefix("# ")
            assert held_out(subject)
            assert subject in q.question
            assert subject not in q.evidence[1]
            assert text.count(subject) == 2
