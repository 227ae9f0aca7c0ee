"""Every format in small, as its authors publish it."""

import json
from typing import Any

PLACES = {"Oslo": "fjord", "Lima": "coast", "Cairo": "river", "Quito": "volcano", "Perth": "desert", "Turin": "alps"}
WORDS = {name: f"{name} lies by the {thing}." for name, thing in PLACES.items()}


def squad() -> dict[str, Any]:
    def asked(name: str, thing: str, n: int) -> dict[str, Any]:
        answers = [{"text": thing, "answer_start": 0}] * 2
        return {"id": f"q{n}", "question": f"What lies by {name}?", "answers": answers}

    paragraphs = [
        {"context": WORDS[name], "qas": [asked(name, thing, n)]} for n, (name, thing) in enumerate(PLACES.items())
    ]
    impossible = {"id": "no", "question": "Who?", "answers": [], "is_impossible": True, "plausible_answers": []}
    paragraphs[0]["qas"].append(impossible)
    return {"version": "v2.0", "data": [{"title": "Towns", "paragraphs": paragraphs}]}


def hotpot() -> list[dict[str, Any]]:
    context = [[name, [f"{name} is a town.", f" {text}"]] for name, text in WORDS.items()]
    facts = [["Lima", 0], ["Turin", 1]]
    return [{"_id": "h1", "question": "Which is older?", "answer": "yes", "supporting_facts": facts,
             "context": context, "type": "comparison", "level": "hard"}]  # fmt: skip


def hotpot_columns() -> list[dict[str, Any]]:
    row = hotpot()[0]
    row["id"] = row.pop("_id")
    titles, sentences = zip(*row["context"], strict=True)
    row["context"] = {"title": list(titles), "sentences": list(sentences)}
    row["supporting_facts"] = {"title": ["Lima", "Turin"], "sent_id": [0, 1]}
    return [row]


def musique() -> list[dict[str, Any]]:
    paragraphs = [
        {"idx": n, "title": name, "paragraph_text": text, "is_supporting": name in ("Oslo", "Quito")}
        for n, (name, text) in enumerate(WORDS.items())
    ]
    row = {"id": "2hop__1_2", "paragraphs": paragraphs, "question": "What lies there?", "question_decomposition": [],
           "answer": "fjord", "answer_aliases": ["the fjord", "inlet"], "answerable": True}  # fmt: skip
    return [row, {**row, "answerable": False}]


def retrieved() -> list[dict[str, Any]]:
    return [
        {"question": f"what lies by {name.lower()}", "answers": [thing, f"a {thing}"],
         "ctxs": [{"title": name, "text": WORDS[name], "hasanswer": True, "isgold": True}]}
        for name, thing in PLACES.items()
    ]  # fmt: skip


def training() -> list[dict[str, Any]]:
    passages = [{"title": name, "text": text} for name, text in WORDS.items()]
    return [{"dataset": "nq", "question": "what lies by oslo", "answers": ["fjord"], "positive_ctxs": passages[:2],
             "hard_negative_ctxs": passages[2:3], "negative_ctxs": passages[3:]}]  # fmt: skip


def pairs(count: int = 12) -> list[dict[str, Any]]:
    records = [[f"key-{i:02d}", f"value-{i:02d}"] for i in range(count)]
    return [{"ordered_kv_records": records, "key": "key-07", "value": "value-07"}]


def longbench() -> list[dict[str, Any]]:
    passages = "\n".join(f"Passage {n}:\n{name}\n{text}" for n, (name, text) in enumerate(WORDS.items(), 1))
    prose = " ".join(f"Sentence number {n} tells nothing new." for n in range(60)) + " The code word is marigold."
    return [
        {"input": "What lies by Cairo?", "context": passages, "answers": ["river"], "length": 40, "dataset": "hotpotqa",
         "language": "en", "all_classes": None, "_id": "abc"},
        {"input": "What is the code word?", "context": prose, "answers": ["marigold"], "length": 400,
         "dataset": "narrativeqa", "language": "en", "all_classes": None, "_id": "def"},
    ]  # fmt: skip


def ruler() -> list[dict[str, Any]]:
    noise = " ".join(f"The grass is green on day {n}." for n in range(40))
    needles = " ".join(f"One of the special magic numbers for fern is: {n}." for n in (1234567, 7654321))
    example = "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\nVAR OLD = 1\n"
    documents = f"Document 1:\n{WORDS['Lima']}\n\nDocument 2:\n{WORDS['Oslo']}"
    told = "Answer the question based on the given documents. Only give me the answer, no other words."
    inputs = {
        "Some special magic numbers are hidden within the following text. Make sure to memorize it. "
        f"I will quiz you about the numbers afterwards.\n{noise} {needles} {noise}\n"
        "What are all the special magic numbers for fern mentioned in the provided text?": ["1234567", "7654321"],
        f"{example}Question: Find all variables that are assigned the value 1 in the text above. Answer: OLD\n"
        "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
        f"VAR ABC = 77. {noise} VAR DEF = VAR ABC. {noise}\n"
        "Question: Find all variables that are assigned the value 77 in the text above. Answer: As": ["ABC", "DEF"],
        f"{told}\n\nThe following are given documents.\n\n{documents}\n\n{told}\n\nQuestion: What lies by Oslo?": [
            "fjord",
            "the fjord",
        ],
    }
    return [{"index": n, "input": text, "outputs": wanted} for n, (text, wanted) in enumerate(inputs.items())]


IRCOT = "\n\n\n".join(
    f'# METADATA: {{"qid": "{n}"}}\n'
    + "\n\n".join(f"Wikipedia Title: {name}\n{text}" for name, text in WORDS.items())
    + f"\n\nQ: What lies by {asked}?\nA: {PLACES[asked]}"
    for n, asked in enumerate(("Perth", "Turin"))
)
BABI = (
    "1 Mary went to the kitchen.\n2 John went to the garden.\n3 Where is Mary? \tkitchen\t1\n4 Mary got the milk.\n"
    "5 Mary went to the hall.\n6 Where is the milk? \thall\t4 5\n"
    "1 Sandra went to the office.\n2 Where is Sandra? \toffice\t1\n"
)


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES: dict[str, tuple[str, str]] = {
    "train-v2.0.json": ("squad", json.dumps(squad())),
    "hotpot_dev.json": ("hotpotqa", json.dumps(hotpot())),
    "columns.jsonl": ("2wiki", _lines(hotpot_columns())),
    "musique_ans.jsonl": ("musique", _lines(musique())),
    "annotated.txt": ("musique", IRCOT),
    "retrieved.jsonl": ("nq-open", _lines(retrieved())),
    "training.json": ("triviaqa", json.dumps(training())),
    "pairs.jsonl": ("kv-retrieval", _lines(pairs())),
    "qa1_one_train.txt": ("babi-1", BABI),
    "hotpotqa.jsonl": ("longbench", _lines(longbench())),
    "niah.jsonl": ("ruler", _lines(ruler())),
}
"""Every format: the set that reads it, and a file's text."""
