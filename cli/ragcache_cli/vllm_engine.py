"""vLLM in the place of this project's own engine: how it is started, and what of an index fits it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

import typer

from ragcache_cli.terminal import note, parse_size, say, say_json, table

if TYPE_CHECKING:
    from vllm_ragcache.fit import Finding, MethodFit

ENGINES = ("ragcache", "vllm")
KEY = "RAGCACHE_API_KEY"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_engine(engine: str) -> None:
    """Refuse an engine that there is none of.

    Raises
    ------
    InvalidArgument
        The message names those that there are.
    """
    from ragcache.errors import InvalidArgument

    if engine not in ENGINES:
        raise InvalidArgument(f"there is no engine {engine!r}; choose {' or '.join(ENGINES)}")


def check_engine_options(ctx: typer.Context, engine: str, others: Mapping[str, Sequence[str]]) -> None:
    """Refuse options of another engine, by name.

    Parameters
    ----------
    ctx : typer.Context
        Of the command; knows which options were given.
    engine : str
        The one that was chosen.
    others : mapping of str to sequence of str
        Parameters that only one engine has, by engine.

    Raises
    ------
    InvalidArgument
        If there is no such engine, or an option is not this one's.
    """
    from ragcache.errors import InvalidArgument

    check_engine(engine)
    spelled = {param.name: param.opts[0] for param in ctx.command.params}
    for other, names in others.items():
        for name in names if other != engine else ():
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise InvalidArgument(
                    f"{spelled[name]} is an option of the engine {other}, and --engine is {engine}; leave it out"
                )
    if engine != "vllm" and ctx.args:
        first = ctx.args[0]
        ctx.fail(
            f"No such option: {first}"
            if first.startswith("-")
            else f"There is no place for {first!r}; an index is named with --index."
        )


def serve_with_vllm(
    index: Path,
    options: Sequence[str],
    *,
    host: str,
    port: int,
    name: str,
    method: str | None,
    model: str | None,
    dtype: str | None,
    tensor_parallel: int,
    memory: str | None,
    dry_run: bool,
) -> None:
    """Start vLLM's own server in the place of this process; what does not fit is said before.

    Raises
    ------
    RagCacheError
        As `vllm_ragcache.launch.server_arguments`, and where vLLM is not installed, or of another version.
    """
    from vllm_ragcache.fit import find_vllm
    from vllm_ragcache.launch import server_arguments

    from ragcache.errors import InvalidArgument
    from ragcache.model.loading import checkpoint_of

    key = os.environ.get(KEY) or os.environ.get("VLLM_API_KEY") or ""
    if host not in _LOOPBACK and not key and "--api-key" not in options:
        raise InvalidArgument(
            f"{host} can be reached from other machines, and no key is asked for; set the environment variable {KEY}, "
            "or listen on 127.0.0.1"
        )
    own = {
        "--host": host,
        "--port": port,
        "--model": checkpoint_of(model) if model else None,
        "--served-model-name": name or model,
        "--dtype": dtype,
        "--tensor-parallel-size": tensor_parallel if tensor_parallel > 1 else None,
    }
    words = [word for option, value in own.items() if value is not None for word in (option, str(value))]
    size = parse_size(memory) if memory else None
    command = server_arguments(index, [*words, *options], method=method, memory_bytes=size)
    if dry_run:
        say(join(command))
        return
    installed = find_vllm()
    if installed.error is not None:
        raise installed.error(installed.words)
    note(f"{installed.words} starts, to answer at http://{host}:{port}/v1; Ctrl-C stops it")
    os.execve(command[0], command, {**os.environ, **({"VLLM_API_KEY": key} if key else {})})


def examine_for_vllm(index: Path, model: str | None, *, as_json: bool) -> None:
    """Show what of an index and its model fits vLLM; ends with exit code 1 where something does not."""
    from vllm_ragcache.fit import Fit, find_vllm
    from vllm_ragcache.launch import complete_options

    from ragcache.model.loading import checkpoint_of

    fit = Fit(index, complete_options(index, ["--model", checkpoint_of(model)] if model else []))
    installed = find_vllm()
    findings = [installed, *([fit.find_model_class()] if installed.fits else []), *fit.look()]
    rows = fit.list_methods()
    fits = all(finding.fits for finding in findings)
    if as_json:
        say_json(_as_json(index, findings, rows, fits=fits))
    else:
        _show(findings, rows, fits=fits)
    if not fits:
        raise typer.Exit(1)


def _as_json(index: Path, findings: "Sequence[Finding]", rows: "Sequence[MethodFit]", *, fits: bool) -> dict[str, Any]:
    return {
        "engine": "vllm",
        "index": str(index),
        "fits": fits,
        "findings": [{"part": one.part, "fits": one.fits, "words": one.words} for one in findings],
        "methods": [asdict(row) for row in rows],
    }


def _show(findings: "Sequence[Finding]", rows: "Sequence[MethodFit]", *, fits: bool) -> None:
    table(("", "fits", ""), [(one.part, "yes" if one.fits else "NO", one.words) for one in findings])
    table(
        ("method", "loads", "recomputes", ""),
        [(row.name, "yes" if row.loads else "no", "yes" if row.recomputes else "no", row.reason) for row in rows],
    )
    say("vLLM can serve this index" if fits else "vLLM cannot serve this index as it is; see what does not fit above")
