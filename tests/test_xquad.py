"""A real corpus, through the command line: 30 paragraphs, a PDF and a DOCX, asked again after a restart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model

DATA = Path(os.environ.get("RAGCACHE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "xquad" / "xquad.en.json"
FIELDS = "answer question model method recompute chunks tokens charged charged_flops ms compare".split()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="XQuAD is not on this machine; set RAGCACHE_DATA"),
]


def ragcache(*arguments: str, cwd: Path) -> str:
    command = [str(Path(sys.executable).with_name("ragcache")), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from docx import Document
    from reportlab.pdfgen.canvas import Canvas

    folder = tmp_path_factory.mktemp("xquad")
    articles = json.loads(DATA.read_text())["data"]
    paragraphs = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    assert len(paragraphs) == 240
    for n, text in enumerate(paragraphs[::8]):
        (folder / f"{n:03d}.txt").write_text(text)
    page = Canvas(str(folder / "lighthouse.pdf"))
    page.drawString(72, 720, "The lighthouse keeper of Skerryvore kept bees on the gallery.")
    page.save()
    document = Document()
    document.add_paragraph("The ferry to Inchcolm island leaves from the stone pier at nine.")
    document.save(str(folder / "ferry.docx"))
    return folder


def test_a_checkpoint_on_disk_answers_from_a_real_corpus(corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny_model("qwen2").save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    ragcache("ingest", str(corpus), "--model", str(model), "--method", "naive", cwd=tmp_path)
    questions = {"Who kept bees on the gallery?": "lighthouse.pdf", "When does the Inchcolm ferry leave?": "ferry.docx"}
    for question, source in questions.items():
        answer = json.loads(ragcache("ask", question, "--json", "--method", "naive", cwd=tmp_path))
        assert set(FIELDS) <= set(answer)
        assert Path(answer["chunks"][0]["source"]).name == source
        assert {chunk["cache"] for chunk in answer["chunks"]} <= {"hit", "exact"}
        assert answer["model"] == str(model)
