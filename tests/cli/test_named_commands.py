"""Every `ragcache` command that a message, a help text, a docstring or a page names exists, with its options."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from ragcache_cli.main import app

from ragcache import errors

ROOT = Path(__file__).parents[2]
PLACES = ("ragcache", "bench", "cli", "integrations")
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "cli.md")]
NAMED = re.compile(r"(\brun )?`(ragcache [^`]*)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--dirty", "--always", "--abbrev", "--exclude", "--upgrade", "--no-deps", "--target"}  # git's and pip's
FOREIGN |= {
    *("--kv-transfer-config", "--kv", "--served-model-name", "--worker-cls", "--worker", "--max-num-batched-tokens"),
    *("--pipeline-parallel-size", "--data-parallel-size", "--tensor-parallel-size", "--enable-lora", "--block-size"),
    "--api-key",
}  # vLLM's, of which one is also spelt with underscores
BENCH = ROOT / "bench"
STYLES = BENCH / "ragcache_bench/pages"  # which name custom properties
SCRIPTS = (  # with their own options
    *(BENCH / name for name in ("reader_training", "reader_tuning", "studies")),
    BENCH / "ragcache_bench/gpu_check.py",  # which is run as a module
    ROOT / "integrations/vllm_ragcache/planned.py",  # vLLM's
)


@cache
def strings(path: Path) -> list[str]:
    """The strings of a module, an f-string as one with X for what is filled in."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in node.values}
    return [
        *("".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in one.values) for one in joined),
        *(
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
        ),
    ]


def fenced(text: str) -> Iterator[str]:
    """The shell lines of a page's code blocks, each as one."""
    for block in re.findall(r"```(?:bash|sh|console)?\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            yield from re.findall(r"^(?:\$ )?(ragcache .*?)(?:\s+#.*)?$", line)


def sources() -> list[Path]:
    return [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]


@cache
def named() -> dict[str, bool]:
    """Commands, and whether somebody is told to run them as they stand."""
    found: dict[str, bool] = {}
    texts = [(text, path) for path in sources() for text in strings(path)]
    texts += [(page.read_text(encoding="utf-8"), page) for page in PAGES]
    for text, path in texts:
        for run, command in NAMED.findall(" ".join(text.split()) if path.suffix == ".py" else text):
            command = " ".join(command.split())
            found[command] = found.get(command, False) or bool(run)
    return found | {line: True for page in PAGES for line in fenced(page.read_text(encoding="utf-8"))}


def found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that some words begin with, and the rest of them."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def options_of(command: Any) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("line", sorted(named()))
def test_a_command_that_is_named_exists_with_its_options(line: str) -> None:
    command, rest = found(shlex.split(line)[1:])
    if hasattr(command, "commands"):
        assert not rest or rest[0] in ("…", "--version", "--help"), f"ragcache has no command {rest[0]!r}"
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert given <= options_of(command)


@pytest.mark.parametrize("line", sorted(line for line, run in named().items() if run))
def test_what_somebody_is_told_to_run_is_whole(line: str) -> None:
    parse(line)


@pytest.mark.parametrize(
    "line", [errors.ingest("a b"), errors.ingest("i", method="epic"), errors.ingest("i", paths="x")]
)
def test_the_command_that_errors_build_is_whole(line: str) -> None:
    parse(line)


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index's URL is looked up when arguments are taken."""
    monkeypatch.setattr("ragcache.index.publication.fetch", lambda *place, **how: None)


def parse(line: str) -> None:
    """Have the command take its arguments, and run nothing."""
    words = takewhile(lambda word: word not in ("|", ">", "&&", "2>/dev/null"), shlex.split(line)[1:])
    command, rest = found(list(words))
    if not hasattr(command, "commands"):
        command.make_context(command.name, list(rest))


def test_an_option_that_a_message_names_is_one_of_some_command() -> None:
    known = {option for command in commands(typer.main.get_command(app)) for option in options_of(command)}
    paths = [path for path in sources() if not any(map(path.is_relative_to, (STYLES, *SCRIPTS)))]
    told = {(option, str(path)) for path in paths for text in strings(path) for option in OPTION.findall(text)}
    assert {one for one in told if one[0] not in known | FOREIGN} == set()


def commands(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from commands(child)
