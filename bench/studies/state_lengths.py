"""From which length chunks pay where a model's layers carry a state: bytes, and time to the first token.

    python bench/studies/state_lengths.py --threads 1 --out docs/benchmarks/state-lengths.json

What a chunk does to such a state is of one size whatever its length. So a prompt of four chunks is answered by naive
reuse, its KV read from files each time, and by stock full prefill, at ever longer chunks; random weights, three layers
of linear attention to one of attention, as Qwen3.5 has them. Times are the processor's. Bytes of real shapes are
counted from their configurations.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.markdown import table
from ragcache_bench.speed.shapes import random_reader, random_texts
from transformers import CONFIG_MAPPING

from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.model.cost import kv_bytes_per_token
from ragcache.model.linear_attention import find_state_layers
from ragcache.model.reader import Reader

SHAPE = {
    "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 32768, "tie_word_embeddings": True,
    "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
}  # fmt: skip
#: Default configurations of transformers, which are a released model's.
REAL = {"qwen3_next": "Qwen3-Next-80B-A3B", "qwen3_5_text": "Qwen3.5, as transformers configures it"}
CHUNKS, REPEATS = 4, 3


def main(
    lengths: Annotated[str, typer.Option(help="Tokens of a chunk, between commas.")] = "8,16,32,64,128,256,512",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a page goes beside it.")] = Path("state-lengths.json"),
) -> None:
    """Measure every length, and count the bytes of real shapes."""
    use_threads(threads)
    reader = random_reader("qwen3_5_text", SHAPE, dtype=torch.float32)
    rows = [measure(reader, int(length)) for length in lengths.split(",")]
    pays = find_length(rows)
    meta = report.meta(**report.about_reader(reader), shape=SHAPE, chunks=CHUNKS, repeats=REPEATS)
    found = {"meta": meta, "rows": rows, "pays_from": pays, "real": list(count_real())}
    write(out, found)
    out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")


def measure(reader: Reader, length: int) -> dict[str, Any]:
    """One length: seconds of the processor to the first token both ways, to encode a chunk, and a chunk's bytes."""
    with tempfile.TemporaryDirectory() as place, Index(Path(place) / "index", reader) as index:
        texts = random_texts(CHUNKS, length, seed=length)
        for number, text in enumerate(texts):
            index.put(str(number), text, [(text, 0, len(text))], {})
        began = process_time()
        list(index.encode(Alone()))
        encoded = (process_time() - began) / CHUNKS
        engine, chunks = Engine(reader, index), list(index.chunks([row.id for row in index.catalog.all_chunks()]))
        taken: dict[str, list[float]] = {"naive": [], "full": []}
        for turn in range(REPEATS + 1):
            for method in sorted(taken, reverse=bool(turn % 2)):
                index.release()
                began = process_time()
                engine.prefill("w1 w2 w3 w4", chunks, method=method)
                taken[method].append(process_time() - began)
        kv = reader.encode(chunks[0].segment.token_ids)
    naive, full = (median(taken[method][1:]) for method in ("naive", "full"))
    return {
        "tokens": len(kv), "state_bytes": kv.state_nbytes, "bytes": kv.nbytes, "encode_seconds": encoded,
        "naive_seconds": naive, "full_seconds": full, "ratio": naive / full,
    }  # fmt: skip


def find_length(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The shortest length measured from which on reuse was always sooner."""
    paying = None
    for row in reversed(rows):
        if row["ratio"] >= 1:
            break
        paying = row["tokens"]
    return paying


def count_real() -> Iterator[dict[str, Any]]:
    """Bytes of real shapes in bf16: of a chunk's transitions and end states, of a token's KV, and what is as much."""
    for kind, name in REAL.items():
        config = CONFIG_MAPPING[kind]().get_text_config()
        heads, keys, values = (
            getattr(config, f"linear_{part}") for part in ("num_value_heads", "key_head_dim", "value_head_dim")
        )
        layers = len(find_state_layers(config))
        state, token = 2 * layers * heads * keys * (keys + values), kv_bytes_per_token(config, torch.bfloat16)
        yield {
            "model": name, "layers": config.num_hidden_layers, "with_state": layers, "state_bytes": state,
            "bytes_per_token": token, "as_much_as_tokens": round(state / token),
        }  # fmt: skip


def markdown(found: Mapping[str, Any]) -> str:
    """The page."""
    rows, meta = found["rows"], found["meta"]
    measured = table(
        ("tokens a chunk", "bytes a chunk", "of them states", "encoding, s", "reuse, s", "full prefill, s", "ratio"),
        [
            (f"{row['tokens']:,}", f"{row['bytes']:,}", f"{row['state_bytes']:,}", f"{row['encode_seconds']:.3f}",
             f"{row['naive_seconds']:.3f}", f"{row['full_seconds']:.3f}", f"{row['ratio']:.2f}")
            for row in rows
        ],
    )  # fmt: skip
    real = table(
        ("model", "layers", "that carry a state", "states a chunk", "KV a token", "as much as KV of"),
        [
            (row["model"], row["layers"], row["with_state"], f"{row['state_bytes'] / 1e6:.0f} MB",
             f"{row['bytes_per_token'] / 1e3:.1f} kB", f"{row['as_much_as_tokens']:,} tokens")
            for row in found["real"]
        ],
    )  # fmt: skip
    pays = f"from {found['pays_from']:,} tokens a chunk on" if found["pays_from"] else "at no length measured"
    return "\n".join(
        [
            "# From which length chunks pay where layers carry a state",
            "",
            "<!-- Generated by bench/recipes/state-lengths.sh -->",
            "",
            f"A prompt of {CHUNKS} chunks; a model of {meta['parameters'] / 1e6:.0f} M random weights in "
            f"{meta['dtype']}, {SHAPE['num_hidden_layers']} layers, three of",
            "linear attention to one of attention. Time to the first token is the processor's, "
            f"the median of {REPEATS} with {meta['threads']} thread(s); KV is",
            "read from files each time.",
            f"Reuse is sooner {pays}.",
            "",
            measured,
            "",
            "What real shapes keep of a chunk, whatever its length, in bf16 (the convolutions' inputs left out):",
            "",
            real,
            "",
        ]
    )


if __name__ == "__main__":
    typer.run(main)
