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


def longbench_v2() -> list[dict[str, Any]]:
    prose = " ".join(f"Sentence number {n} tells nothing new." for n in range(60)) + " The code word is marigold."
    choices = {"choice_A": "rose", "choice_B": "fern", "choice_C": "marigold", "choice_D": "oak"}
    row = {"_id": "v1", "domain": "Single-Document QA", "difficulty": "easy", "length": "short",
           "question": "What is the code word?", **choices, "answer": "C", "context": prose}  # fmt: skip
    return [row, {**row, "_id": "v2", "length": "long", "answer": "A"}]


def qasper() -> dict[str, Any]:
    def given(**more: Any) -> dict[str, Any]:
        answer = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": "", "evidence": []}
        return {"answer": {**answer, "highlighted_evidence": [], **more}, "annotation_id": "a", "worker_id": "w"}

    def asked(name: str, *answers: dict[str, Any]) -> dict[str, Any]:
        return {"question": f"What of {name}?", "question_id": name, "nlp_background": "two", "answers": list(answers)}

    oslo, lima = WORDS["Oslo"], WORDS["Lima"]
    table = given(free_form_answer="7", evidence=["FLOAT SELECTED: Table 1: Results."])
    nothing = given(unanswerable=True)
    questions = [
        asked("spans", given(extractive_spans=["Oslo", "fjord"], evidence=[oslo]),
              given(free_form_answer="a fjord", evidence=[oslo, lima])),
        asked("yes", given(yes_no=True, evidence=[lima])),
        asked("unclear", given(free_form_answer="coast", evidence=[lima]), nothing),
        asked("none", nothing),
        asked("table", table),
    ]  # fmt: skip
    sections = [{"section_name": "Introduction", "paragraphs": [f"{WORDS['Cairo']}\n", "", oslo]},
                {"section_name": None, "paragraphs": [WORDS["Quito"], lima]}]  # fmt: skip
    paper = {"title": "On towns", "abstract": "We study towns.", "full_text": sections, "qas": questions,
             "figures_and_tables": []}  # fmt: skip
    return {"1909.00694": paper}


def locomo() -> list[dict[str, Any]]:
    def turn(session: int, number: int, text: str, **more: Any) -> dict[str, Any]:
        return {"speaker": "Ann" if number % 2 else "Bo", "dia_id": f"D{session}:{number}", "text": text, **more}

    questions = [
        {"question": "When did Ann see the fjord?", "answer": 2022, "evidence": ["D2:3"], "category": 2},
        {"question": "Would Bo swim?", "answer": "Likely no; he is cold", "evidence": ["D1:2; D2:2"], "category": 3},
        {"question": "What did Bo show?", "answer": "a photo", "evidence": [], "category": 4},
        {"question": "What did Cy say?", "evidence": ["D1:1"], "category": 5, "adversarial_answer": "hello"},
    ]
    photo = {"img_url": ["x"], "blip_caption": "a photo of a boat", "query": "boat"}
    talk = {
        "speaker_a": "Ann", "speaker_b": "Bo",
        "session_2_date_time": "1:14 pm on 25 May, 2023",
        "session_2": [turn(2, 1, "Hello again."), turn(2, 2, "It is cold."), turn(2, 3, "I saw the fjord last year.")],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [turn(1, 1, "Hello."), turn(1, 2, "Look.", **photo)],
        "session_3_date_time": "9:00 am on 9 June, 2023",
    }  # fmt: skip
    return [{"sample_id": "conv-1", "conversation": talk, "qa": questions, "observation": {}, "event_summary": {}}]


def multihop_rag() -> list[dict[str, Any]]:
    def evidence(name: str) -> dict[str, str]:
        return {"title": f"On {name}", "author": "X", "url": "u", "source": "The Herald", "category": "travel",
                "published_at": "2023-10-07T10:00:00+00:00", "fact": WORDS[name]}  # fmt: skip

    towns = [evidence("Oslo"), evidence("Lima")]
    return [
        {"query": "Do Oslo and Lima both lie by a fjord?", "answer": "no", "question_type": "comparison_query",
         "evidence_list": towns},
        {"query": "What of Rome?", "answer": "Insufficient information.", "question_type": "null_query",
         "evidence_list": []},
    ]  # fmt: skip


def corpus() -> list[dict[str, Any]]:
    def article(name: str, text: str) -> dict[str, Any]:
        noise = " ".join(f"{name} was quiet on day {n}." for n in range(30))
        return {"title": f"On {name}", "author": None, "source": "The Herald", "category": "travel", "url": "u",
                "published_at": "2023-10-07T10:00:00+00:00", "body": f"{noise}\n\n{text}\n\n{noise}"}  # fmt: skip

    return [article(name, text) for name, text in WORDS.items()]


def helmet() -> list[dict[str, Any]]:
    def passage(name: str, has: bool) -> dict[str, Any]:
        return {"id": name, "title": name, "text": WORDS[name], "has_answer": has}

    rows = [
        {"question": f"what lies by {town.lower()}", "answers": [PLACES[town]],
         "ctxs": [passage(name, name == town) for name in WORDS]}
        for town in ("Oslo", "Perth")
    ]  # fmt: skip
    return [*rows, {**rows[0], "ctxs": rows[0]["ctxs"][::-1]}]  # the same question, its evidence at another depth


def conteb() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    towns = list(WORDS)
    chunks = [
        {"chunk_id": f"{town}_{n}", "chunk": text, "og_chunk": text}
        for town in towns
        for n, text in [(10, f"It has {len(town)} gates."), (2, f"The mayor of {town} is new."), (1, WORDS[town])]
    ]
    queries = [
        {"query": f"How many gates has {town}?", "chunk_id": f"{town}_10", "answer": f"{len(town)} gates"}
        for town in towns
    ]
    return chunks, [*queries, {"query": "What is new in Oslo?", "chunk_ids": ["Oslo_1", "Oslo_2"], "answer": "mayor"}]


def kvpress() -> list[dict[str, Any]]:
    first, second, third = ruler()
    rows = zip(("niah_multivalue", "vt", "qa_1"), (first, second, third), strict=True)
    found = []
    for task, row in rows:
        context, _, question = row["input"].rpartition("\n")
        found.append({"context": context, "question": question, "answer_prefix": "Answer:", "answer": row["outputs"],
                      "task": task, "max_new_tokens": 128})  # fmt: skip
    return [*found, {"context": WORDS["Lima"], "question": "By what?", "answer_prefix": "", "answer": "coast",
                     "max_new_tokens": 8}]  # fmt: skip


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
    "data.json": ("longbench-v2", json.dumps(longbench_v2())),
    "short/data.json": ("longbench-v2-short", json.dumps(longbench_v2())),
    "qasper-dev-v0.3.json": ("qasper", json.dumps(qasper())),
    "locomo10.json": ("locomo", json.dumps(locomo())),
    "multihop/MultiHopRAG.json": ("multihop-rag", json.dumps(multihop_rag())),
    "nq-dev-multikilt_1000_k50_dep6.jsonl": ("helmet-rag", _lines(helmet())),
    "gates/queries/test.jsonl": ("conteb-gates", _lines(conteb()[1])),
    "ruler/4096/test.jsonl": ("kvpress-4096", _lines(kvpress())),
}
"""Every format: the set that reads it, and a file's text."""
BESIDE: dict[str, dict[str, str]] = {
    "multihop/MultiHopRAG.json": {"multihop/corpus.json": json.dumps(corpus())},
    "gates/queries/test.jsonl": {"gates/documents/test.jsonl": _lines(conteb()[0])},
}
"""What must lie beside some of the files."""
