"""What is wrong with a command is said before torch is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from typer.testing import CliRunner
from ragcache_cli.main import app
said, heavy = [], {"torch", "transformers", "chromadb"}
for arguments in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, arguments)
    said.append((done.exit_code, done.stdout, done.stderr, sorted(heavy & set(sys.modules))))
print(json.dumps(said))
"""
REFUSED = {
    "a share": (["ask", "Who?", "--index", "INDEX", "--recompute", "15"], "share between 0 and 1"),
    "no index": (["ask", "Who?", "--index", "NOWHERE"], "ragcache ingest"),
    "a file as the index": (["ask", "Who?", "--index", "FILE"], "is a file, but an index is a folder"),
    "a method": (["ask", "Who?", "--index", "INDEX", "--method", "nonesuch"], "ragcache methods"),
    "a fixed cost": (["ask", "Who?", "--index", "INDEX", "--method", "naive", "--recompute", "0.5"], "fixed cost"),
    "no such KV": (["ask", "Who?", "--index", "INDEX", "--method", "link0"], "ragcache ingest --method link0"),
    "a tuned row": (["ask", "Who?", "--index", "INDEX", "--method", "turborag"], "ragcache finetune --recipe turborag"),
    "a tuned row to chat": (["chat", "--index", "INDEX", "--method", "kvlink"], "ragcache finetune --recipe kvlink"),
    "top-k": (["ask", "Who?", "--index", "INDEX", "--top-k", "0"], "at least one chunk"),
    "a blank question": (["ask", " ", "--index", "INDEX"], "the question is blank"),
    "no tokens": (["ask", "Who?", "--index", "INDEX", "--max-new-tokens", "0"], "at least 1"),
    "a dtype": (["ask", "Who?", "--index", "INDEX", "--dtype", "float99"], "no dtype is called 'float99'"),
    "a device": (["ask", "Who?", "--index", "INDEX", "--device", "gpu"], "no device is called 'gpu'"),
    "another embedder": (["ask", "Who?", "--index", "INDEX", "--embedder", "an/other"], "not an/other"),
    "a model to ask": (["ask", "Who?", "--index", "INDEX", "--model", "/nosuch"], "it is no folder"),
    "an adapter": (["ask", "Who?", "--index", "INDEX", "--adapter", "NOWHERE"], "it is no folder"),
    "an adapter to ingest": (["ingest", "DOCUMENTS", "--index", "NEW", "--adapter", "DOCUMENTS"], "holds no adapter_c"),
    "a share to chat": (["chat", "--index", "INDEX", "--recompute", "15"], "share between 0 and 1"),
    "a blank path": (["ingest", "", "--index", "NEW"], "a path is blank"),
    "a blank index": (["ingest", "DOCUMENTS", "--index", ""], "a path is blank"),
    "a blank path to forget": (["documents", "remove", "", "--index", "INDEX"], "a path is blank"),
    "a blank path to move to": (["store", "move", "", "--index", "NEW"], "a path is blank"),
    "a path": (["ingest", "NOWHERE", "--index", "NEW"], "there is no"),
    "a type": (["ingest", "FILE", "--index", "NEW"], "can't be read"),
    "a method to ingest": (["ingest", "DOCUMENTS", "--index", "NEW", "--method", "nonesuch"], "ragcache methods"),
    "a model": (["ingest", "DOCUMENTS", "--index", "NEW", "--model", "/nosuch"], "it is no folder"),
    "an absent model": (["ingest", "DOCUMENTS", "--index", "NEW", "--model", "no/such"], "hf download no/such"),
    "an absent embedder": (["ingest", "DOCUMENTS", "--index", "NEW", "--embedder", "no/such"], "hf download no/such"),
    "a dtype to adopt": (["adopt", "DOCUMENTS", "--index", "NEW", "--dtype", "float99"], "no dtype is called"),
}


@pytest.fixture(scope="module")
def said(_ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What each command says, all of them in one process."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "file").touch()
    places = {
        "INDEX": _ingested,
        "DOCUMENTS": _ingested.parent / "documents",
        "FILE": folder / "file",
        "NEW": folder / "new",
        "NOWHERE": folder / "nowhere",
    }
    lines = [[str(places.get(word, word)) for word in arguments] for arguments, _ in REFUSED.values()]
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(lines)], capture_output=True, text=True, check=True)
    assert not (folder / "new").exists(), "nothing was made"
    return dict(zip(REFUSED, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_argument_is_refused_without_torch(case: str, said: dict[str, list[object]]) -> None:
    code, stdout, stderr, imported = said[case]
    assert (code, stdout, imported) == (2, "", [])
    assert REFUSED[case][1] in str(stderr)
    assert len(str(stderr).splitlines()) == 1


def test_the_table_of_methods_needs_no_torch() -> None:
    script = "import sys\nfrom ragcache_cli.main import app\ntry: app(['methods'])\nexcept SystemExit: pass\n"
    asked = f"{script}assert not {{'torch', 'numpy', 'transformers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True)
