import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcache.errors import MissingExtra, UnreadableDocument
from ragcache.retrieve import documents, subprocess_parser
from ragcache.retrieve.documents import load
from ragcache.retrieve.formats import READERS
from ragcache.retrieve.subprocess_parser import ISOLATED, SubprocessParser


def make_pdf(path: Path, said: str) -> Path:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    canvas.drawString(72, 700, said)
    canvas.save()
    return path


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[SubprocessParser]:
    parser = SubprocessParser()
    monkeypatch.setattr(documents, "PARSER", parser)
    yield parser
    parser.close()


@pytest.fixture
def broken_docx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: SubprocessParser) -> Path:
    """Make python-docx a module that does what its file says."""
    (tmp_path / "modules" / "docx" / "opc").mkdir(parents=True)
    said = "class Document:\n    def __init__(self, data):\n        exec(data.getvalue().split(b'#')[-1])\n"
    (tmp_path / "modules" / "docx" / "__init__.py").write_text(said)
    (tmp_path / "modules" / "docx" / "table.py").write_text("class Table: ...\n")
    (tmp_path / "modules" / "docx" / "opc" / "__init__.py").write_text("")
    (tmp_path / "modules" / "docx" / "opc" / "exceptions.py").write_text("class OpcError(Exception): ...\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "modules"), *sys.path])
    return tmp_path / "a.docx"


def write_zip(path: Path, code: str) -> None:
    """Write an archive whose comment is code for `broken_docx`."""
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = f"#{code}".encode()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("while True: pass", "took longer than the 1 seconds allowed"),
        ("import os; os._exit(3)", r"broke off \(exit status 3\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"broke off \(exit status -11\)"),
        ("bytearray(1 << 40)", "more memory than there is"),
        ("raise SystemExit", "broke off"),
        ("print('{}', flush=True); 1 / 0", "division by zero"),
    ],
)
def test_a_parser_that_hangs_crashes_or_grows_ends_one_file_and_not_the_next(
    broken_docx: Path, code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "while" in code:
        monkeypatch.setattr(subprocess_parser, "_SECONDS", 1.0)
    write_zip(broken_docx, code)
    with pytest.raises(UnreadableDocument, match=reason):
        load(broken_docx)
    monkeypatch.setattr(subprocess_parser, "_SECONDS", 60.0)
    assert load(make_pdf(broken_docx.with_suffix(".pdf"), "The ferry is late.")).text == "The ferry is late.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_the_limit_of_memory_holds_in_the_other_process_alone(broken_docx: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    write_zip(broken_docx, f"bytearray({subprocess_parser.MAX_MEMORY} + 1)")
    with pytest.raises(UnreadableDocument, match="more memory"):
        load(broken_docx)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_one_process_serves_all_files_and_ends_when_asked(tmp_path: Path, parser: SubprocessParser) -> None:
    taken = set()
    for number in range(3):
        load(make_pdf(tmp_path / f"{number}.pdf", f"Number {number}."))
        taken.add(parser._process.pid)  # type: ignore[union-attr]
    [pid] = taken
    parser.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_killed_program_leaves_no_parser_behind(tmp_path: Path) -> None:
    pdf = make_pdf(tmp_path / "a.pdf", "The ferry is late.")
    code = (
        "import sys, time\nfrom ragcache.retrieve.documents import load\n"
        "from ragcache.retrieve.subprocess_parser import PARSER\n"
        f"load({str(pdf)!r}); print(PARSER._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        program.send_signal(signal.SIGKILL)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z"):
            return  # it has ended; nobody has taken note
        subprocess.run(["sleep", "0.1"], check=True)
    pytest.fail("the parser's process goes on")


def test_no_module_of_the_folder_that_is_read_is_run(
    tmp_path: Path, parser: SubprocessParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypdf.py").write_text("import pathlib; pathlib.Path('run').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert load(make_pdf(tmp_path / "a.pdf", "The ferry is late.")).text == "The ferry is late.\n"
    assert not (tmp_path / "run").exists()


def test_a_missing_library_is_named_as_ever(broken_docx: Path) -> None:
    write_zip(broken_docx, "")
    (broken_docx.parent / "modules" / "docx" / "table.py").write_text("import nowhere\n")
    with pytest.raises(MissingExtra, match="nowhere is not installed"):
        load(broken_docx)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_starts_a_process_of_its_own(tmp_path: Path) -> None:
    pdf = make_pdf(tmp_path / "a.pdf", "The ferry is late.")
    code = (
        "import os, sys\nfrom ragcache.retrieve.documents import load\n"
        "from ragcache.retrieve.subprocess_parser import PARSER\n"
        f"load({str(pdf)!r}); before = PARSER._process.pid\n"
        "if (child := os.fork()) == 0:\n"
        f"    load({str(pdf)!r}); os._exit(PARSER._process.pid == before)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        f"load({str(pdf)!r}); sys.exit(status or PARSER._process.pid != before)"
    )
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=60, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_formats_of_libraries_for_whole_files_are_isolated() -> None:
    assert set(READERS) >= ISOLATED >= {".pdf", ".docx"}
