"""What each way of writing KV down takes, how fast it is put back, how far it is off, and what it answers.

    python bench/studies/kv_codecs.py --threads 1 --out docs/benchmarks/kv-codecs.json

Speed is of KV as real models have it, random numbers in their shapes, read from a file that the system has in memory,
checked, and decoded into a buffer; the processor's time, one thread. Error is of the reader's own KV of a question's
chunks. Answers are by the same questions over the same chunks, raw KV the one that the others are compared with.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.asking import Job, put_pages
from ragcache_bench.commands.options import Dtype, split, use_threads, write
from ragcache_bench.markdown import table
from ragcache_bench.metrics import bootstrap, exact_match
from ragcache_bench.tasks import KNOWN

from ragcache import Sampling
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import find_method
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.encoded import EncodedLayers
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.report import ignore_progress
from ragcache.store import CODECS, Blob, Codec, LocalStore, pack, unpack

#: Layers, KV heads, width of one: of models that people have.
FORMS = {"qwen2.5-0.5b": (24, 2, 64), "llama-3.1-8b": (32, 8, 128)}
ADMITTED = "sections,pronouns,labels,units"  # those that need other chunks
_TOKENS, _REPEATS = 256, 9


def main(
    n: Annotated[int, typer.Option(help="Questions per task.")] = 24,
    seed: Annotated[int, typer.Option(help="Of the questions.")] = 11,
    tasks: Annotated[str, typer.Option(help="Names, between commas; none for speed and error only.")] = ADMITTED,
    methods: Annotated[str, typer.Option(help="Rows of `ragcache methods`.")] = "naive,auto",
    codecs: Annotated[str, typer.Option(help="Whose answers are compared with raw KV's.")] = "int8,k8v4",
    model: Annotated[str, typer.Option(help="A model, as `ragcache ingest --model` takes it.")] = "bundled",
    dtype: Dtype = "auto",
    speed: Annotated[bool, typer.Option(help="Whether sizes and speed are measured, too.")] = True,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a page goes beside it.")] = Path("kv-codecs.json"),
) -> None:
    """Measure sizes and speed, then ask everything once a codec."""
    use_threads(threads)
    reader, names = load_reader(model, dtype=dtype), ["raw", *split(codecs)]
    sizes = [row for form in FORMS for row in measure(form)] if speed else []
    given: dict[str, Any] = {"n": n, "seed": seed, "tokens": _TOKENS, "methods": split(methods)}
    answers: list[dict[str, Any]] = []
    for task in split(tasks):
        answers += compare(reader, task, n, seed, names, split(methods))
        about = report.meta(**report.about_reader(reader), **given)
        found = {"meta": about, "sizes": sizes, "answers": answers, "pooled": pool(answers)}
        write(out, strip(found))
        typer.echo(f"{task}: {n} questions")
    out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")


# -- bytes and speed -------------------------------------------------------------------------------------------------
def measure(form: str) -> Iterator[dict[str, Any]]:
    """A row per codec and dtype of the buffer: bytes per token, GB/s into place and from the file, relative error."""
    layers, heads, width = FORMS[form]
    with tempfile.TemporaryDirectory() as place:
        for dtype in (torch.bfloat16, torch.float32):
            random = torch.Generator().manual_seed(0)
            exact = [torch.randn(2, heads, _TOKENS, width, generator=random).to(dtype) for _ in range(layers)]
            for number, name in enumerate(CODECS):
                key = f"{number}{dtype.itemsize}".rjust(64, "0")
                store = LocalStore(Path(place), durable=False)
                store.put_if_absent(key, pack(Blob(key, tuple(range(_TOKENS)), 0, exact), CODECS[name]))
                decoded, buffer = sum(layer.nbytes for layer in exact), KVBuffer(layers, 4 * _TOKENS)
                placed = seconds(put, buffer, unpack(store.get(key), key).layers)
                whole = seconds(put_file, buffer, store, key)
                yield {
                    "form": form, "dtype": str(dtype).removeprefix("torch."), "codec": name,
                    "bytes_per_token": (store.head(key) or 0) / _TOKENS,
                    "times_smaller_than_bf16": 2 * decoded / dtype.itemsize / (store.head(key) or 1),
                    "placed_gb_per_s": decoded / placed / 1e9, "from_file_gb_per_s": decoded / whole / 1e9,
                    "ms_placed": placed * 1e3, "ms_from_file": whole * 1e3,
                }  # fmt: skip


def put(buffer: KVBuffer, layers: Sequence[torch.Tensor]) -> None:
    """Put KV behind the first slots of a buffer, decoding it there."""
    if isinstance(layers, EncodedLayers):
        buffer.place_from(_TOKENS, layers, torch.device("cpu"))
    else:
        buffer.place(_TOKENS, layers)


def put_file(buffer: KVBuffer, store: LocalStore, key: str) -> None:
    """The same from a file."""
    put(buffer, unpack(store.get(key), key).layers)


def seconds(work: Callable[..., None], *given: Any) -> float:
    """The processor's, the median of several after a first one."""
    work(*given)
    taken = []
    for _ in range(_REPEATS):
        began = process_time()
        work(*given)
        taken.append(process_time() - began)
    return median(taken)


# -- answers ---------------------------------------------------------------------------------------------------------
def compare(
    reader: Reader, task: str, n: int, seed: int, names: Sequence[str], methods: Sequence[str]
) -> list[dict[str, Any]]:
    """A row per codec and method of one task."""
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += answer(reader, task, n, seed, CODECS[name], methods)
    raw = {row["method"]: row["right"] for row in rows if row["codec"] == "raw"}
    for row in rows:
        row["delta"] = asdict(bootstrap([a - b for a, b in zip(row["right"], raw[row["method"]], strict=True)]))
    return rows


def answer(
    reader: Reader, task: str, n: int, seed: int, codec: Codec, methods: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Which of the answers are right, and how far the KV is off that the model makes."""
    examples, rows = KNOWN[task].examples(n, seed), [find_method(name) for name in methods]
    job = Job(task, tuple(examples), (), Sampling(max_new_tokens=40))
    with (
        tempfile.TemporaryDirectory() as folder,
        Index(folder, reader, codec=codec, store=LocalStore(Path(folder) / "kv", durable=False)) as index,
    ):
        ids = put_pages(job, index, ignore_progress)
        for row in rows:
            if row.encode is not None:
                list(index.encode(row.encode))
        engine = Engine(reader, index)
        chunks = [index.chunks([ids[text] for text in example.chunks]) for example in examples]
        keys, values = error(reader, codec, chunks[0])
        for row in rows:
            said = [
                engine.answer(example.question, own, method=row, sampling=job.sampling).text
                for example, own in zip(examples, chunks, strict=True)
            ]
            right = [exact_match(text, example.answers) for text, example in zip(said, examples, strict=True)]
            yield {
                "task": task, "codec": codec.name, "method": row.name, "n": n, "em": fmean(right), "right": right,
                "key_error": keys, "value_error": values,
            }  # fmt: skip


def error(reader: Reader, codec: Codec, chunks: Sequence[Chunk]) -> tuple[float, float]:
    """Relative error of keys and of values that a codec makes of the reader's own KV, over all layers."""
    off, size = torch.zeros(2), torch.zeros(2)
    for chunk in chunks:
        kv: ChunkKV = reader.encode(chunk.segment.token_ids)
        for layer in kv.layers:
            again = codec.decode(codec.encode(layer), layer.dtype)
            off += (again.float() - layer.float()).square().sum(dim=(1, 2, 3))
            size += layer.float().square().sum(dim=(1, 2, 3))
    keys, values = (off / size).sqrt().tolist()
    return keys, values


def pool(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All tasks together, by codec and method."""
    found = []
    for codec, method in dict.fromkeys((row["codec"], row["method"]) for row in answers):
        of = [row for row in answers if (row["codec"], row["method"]) == (codec, method)]
        raw = [row for row in answers if (row["codec"], row["method"]) == ("raw", method)]
        ours, theirs = ([one for row in rows for one in row["right"]] for rows in (of, raw))
        changed = [a - b for a, b in zip(ours, theirs, strict=True)]
        found.append({
            "codec": codec, "method": method, "n": len(ours), "em": fmean(ours), "delta": asdict(bootstrap(changed)),
            "lost": sum(one < 0 for one in changed), "won": sum(one > 0 for one in changed),
            "key_error": fmean(row["key_error"] for row in of), "value_error": fmean(row["value_error"] for row in of),
        })  # fmt: skip
    return found


def strip(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same without single answers."""
    rows = [{name: value for name, value in row.items() if name != "right"} for row in found["answers"]]
    return {**found, "answers": rows}


# -- what is said of it ---------------------------------------------------------------------------------------------
def markdown(found: Mapping[str, Any]) -> str:
    """The same for people."""
    sizes = [
        (row["form"], row["dtype"], row["codec"], f"{row['bytes_per_token']:,.0f}",
         f"{row['times_smaller_than_bf16']:.2f}", f"{row['placed_gb_per_s']:.1f}", f"{row['from_file_gb_per_s']:.1f}")
        for row in found["sizes"]
    ]  # fmt: skip
    pooled = [
        (row["codec"], row["method"], row["n"], f"{row['em']:.3f}",
         "{mean:+.3f} [{low:+.3f}, {high:+.3f}]".format(**row["delta"]), row["lost"], row["won"],
         f"{row['key_error']:.4f}", f"{row['value_error']:.4f}")
        for row in found["pooled"]
    ]  # fmt: skip
    by_task = [
        (row["task"], row["codec"], row["method"], row["n"], f"{row['em']:.3f}",
         "{mean:+.3f} [{low:+.3f}, {high:+.3f}]".format(**row["delta"]))
        for row in found["answers"] if row["codec"] != "raw"
    ]  # fmt: skip
    head = ("codec", "method", "n", "EM", "EM minus raw's [95 %]")
    speed = table(("model's form", "dtype", "codec", "bytes a token", "times smaller than bf16", "GB/s into place",
                   "GB/s from file, checked"), sizes)  # fmt: skip
    return "\n\n".join([
        "# Codecs of stored KV",
        f"`{found['meta']['command']}` on {found['meta']['hardware']}, {found['meta']['threads']} threads; GB/s are of "
        "decoded KV and of the processor's time.",
        *([speed] if sizes else []),
        table((*head, "lost", "won", "error of K", "error of V"), pooled),
        table(("task", *head), by_task),
    ]) + "\n"  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
