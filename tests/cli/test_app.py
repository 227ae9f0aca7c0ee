"""How the command line starts, fails and ends."""

import inspect
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ragcache_cli.docs import _commands, page
from ragcache_cli.main import app

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "numpy", "chromadb", "sentence_transformers", "safetensors", "sqlite3")


def command(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-c", "from ragcache_cli.main import app; app()", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom ragcache_cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit as end: assert not end.code\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"


def test_every_command_and_option_says_what_it_is() -> None:
    import typer

    for path, shown in _commands(typer.main.get_command(app), "ragcache"):
        assert shown.help, path
        for param in shown.params:
            assert param.help, f"{path} {param.name}"


def test_an_option_whose_metavar_is_its_name_in_capitals_is_named() -> None:
    import typer
    from typer.models import OptionInfo
    from typer.utils import get_params_from_function

    checked = 0
    for path, shown in _commands(typer.main.get_command(app), "ragcache"):
        if shown.callback is None:
            continue
        for name, param in get_params_from_function(inspect.unwrap(shown.callback)).items():
            if not isinstance(param.default, OptionInfo):
                continue
            if param.default.metavar == name.upper():  # typer 0.27 would call it --NAME
                assert param.default.param_decls, f"{path} --{name}"
                checked += 1
    assert checked


def test_the_page_of_the_command_line_is_what_the_help_texts_say() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == page(), "run `python -m ragcache_cli.docs > docs/cli.md`"


def test_an_error_is_one_sentence_on_stderr_and_exit_code_2(tmp_path: Path) -> None:
    done = command("ask", "Who?", "--index", tmp_path / "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "ragcache ingest" in done.stderr


def test_a_bug_shows(run, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("ragcache.rag.RagCache.open", broken)
    with pytest.raises(ZeroDivisionError):
        run("ask", "Who?", "--index", index)


@pytest.mark.slow
def test_an_interrupt_is_one_line_that_promises_a_resumption_and_exit_code_130(
    tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    slow = (
        # A test run started in the background hands down an ignored SIGINT.
        "import signal, time, ragcache.index.index\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "ragcache.index.index.capacity = lambda device: 1\n"  # chunk by chunk
        "first = ragcache.index.index.Catalog.put_standing\n"
        "def put(self, *args):\n    first(self, *args)\n"
        "    if 'estimate' not in str(self.path):\n        print('saved', flush=True)\n        time.sleep(30)\n"
        "ragcache.index.index.Catalog.put_standing = put\n"
        "from ragcache_cli.main import app\napp()"
    )
    index = ["--index", str(tmp_path / "index")]
    how = ["--model", str(checkpoint), "--method", "fusionrag", *index]
    line = [sys.executable, "-c", slow, "ingest", str(documents), *how]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "saved\n"
        time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in stderr
    assert "resumes" in stderr.splitlines()[-1]
    again = command("ingest", documents, *index)
    assert again.returncode == 0, again.stderr
    assert "2 prefixed, 3 fused" in again.stdout, "one of the three was kept from the first run"


def test_a_broken_pipe_ends_quietly() -> None:
    line = f"{sys.executable} -c 'from ragcache_cli.main import app; app()' methods | head -n 1 >/dev/null"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_the_version_is_the_package_s(run) -> None:  # type: ignore[no-untyped-def]
    from importlib.metadata import version

    assert run("--version").output.split() == ["ragcache", version("ragcache-kv")]
