"""What the vLLM connector decides before any KV is loaded; nothing here needs vLLM."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from vllm_ragcache.served_index import Piece, ServedIndex
from vllm_ragcache.served_model import check_served_model, describe_served, read_layouts
from vllm_ragcache.token_matcher import TokenMatcher
from vllm_ragcache.wanted import parse_wanted

from ragcache import bundled
from ragcache.errors import EmptyIndex, IndexFormat, IndexMismatch, InvalidArgument, UnknownMethod
from ragcache.index.binding import MADE_BY
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.loading import load_reader
from ragcache.model.tuning import Tuning
from ragcache.store import Catalog

TEXTS = {
    "ferry.md": ["The Otter ferry crosses the sound every hour.", "It carries forty cars and two hundred people."],
    "tide.md": ["The Tide project is led by Mara Voss.", "Its office stands in Kelmar, behind the old mill."],
}
#: Rows that are nothing but loading where nothing is recomputed.
LOADABLE = (
    "naive", "random", "epic", "link0", "cacheblend", "cacheblend-v", "cacheclip", "prophetkv", "qcfuse",
    "infoflow-in-order", "fusionrag", "in-document", "auto",
)  # fmt: skip
NAIVE, AUTO = METHODS["naive"].encode, METHODS["auto"].encode


def put(index: Index, source: str, texts: Sequence[str]) -> None:
    starts = [sum(len(text) + 2 for text in texts[:i]) for i in range(len(texts))]
    index.put(source, "", [(text, start, start + len(text)) for text, start in zip(texts, starts, strict=True)], {})


@pytest.fixture(scope="module")
def reader() -> Any:
    return load_reader("bundled", dtype="float32")


@pytest.fixture
def index(tmp_path: Path, reader: Any) -> Any:
    with Index(tmp_path / "index", reader) as index:
        for source, texts in TEXTS.items():
            put(index, source, texts)
        for method in ("naive", "auto"):
            list(index.encode(METHODS[method].encode))
        yield index


def prompt_of(index: Index, *order: int, between: Sequence[int] = ()) -> tuple[list[int], list[Any]]:
    chunks = index.chunks([index.catalog.places()[i][0] for i in order])
    ids = [*index.prefix_segment.token_ids]
    for number, chunk in enumerate(chunks):
        ids += [*(between if number else ()), *chunk.segment.token_ids]
    return [*ids, *index.template.plain("Question: who leads it?")], chunks


# -- chunks among tokens


def matcher(**chunks: Sequence[int]) -> TokenMatcher:
    known = TokenMatcher(lambda ids: {id: tuple(chunks[id]) for id in ids})
    known.add(chunks.items())
    return known


def test_chunks_are_found_whatever_stands_around_them() -> None:
    one, two = list(range(100, 130)), list(range(200, 260))
    found = matcher(one=one, two=two).find([1, 2, *two, 3, *one, *one, 4])
    assert [(match.chunks, match.first, match.slot, match.count) for match in found] == [
        (("two",), 0, 2, 60), (("one",), 0, 63, 30), (("one",), 0, 93, 30)
    ]  # fmt: skip


def test_tokens_that_merged_at_either_end_are_left_out() -> None:
    chunk = list(range(100, 130))
    [match] = matcher(chunk=chunk).find([7, 9, *chunk[2:-2], 8, 8])
    assert (match.first, match.slot, match.count) == (2, 2, 26)


def test_a_short_chunk_is_found_behind_another_and_nowhere_else() -> None:
    known = matcher(short=[5, 6, 7], long=list(range(100, 130)))
    found = known.find([5, 6, 7, *range(100, 130), 5, 6, 7, 1, 5, 6, 7])
    assert [(match.chunks[0], match.slot) for match in found] == [("short", 0), ("long", 3), ("short", 33)]


def test_a_chunk_changed_in_the_middle_is_not_found() -> None:
    chunk = list(range(100, 130))
    assert matcher(chunk=chunk).find([*chunk[:15], 7, *chunk[16:]]) == []


def test_of_chunks_that_begin_alike_the_one_that_stands_there_is_found() -> None:
    title = list(range(50, 70))
    chunks = {f"c{i}": [*title, *range(100 * i, 100 * i + 12)] for i in range(1, 6)}
    assert [match.chunks for match in matcher(**chunks).find([*chunks["c4"], *chunks["c2"]])] == [("c4",), ("c2",)]


def test_of_chunks_that_differ_in_their_last_tokens_only_the_right_one_is_found() -> None:
    chunk = list(range(100, 130))
    known = matcher(a=chunk, b=[*chunk[:-1], 7])
    assert [match.chunks for match in known.find([*chunk[:-1], 7])] == [("b",)]


@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
def test_chunks_are_found_in_text_that_a_real_tokenizer_took_in_one_piece(kind: str) -> None:
    texts = [path.read_text() for path in sorted(bundled.corpus_path().rglob("*")) if path.is_file()]
    tokenizer = Tokenizer(models.BPE())
    byte_level = kind == "byte-level"
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel() if byte_level else pre_tokenizers.Metaspace()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1500, initial_alphabet=alphabet))
    chunks = {
        text[:40]: part for text in texts for part in text.split("\n\n")[:3] if len(part) > 120 for text in [part]
    }
    ids = {name: tokenizer.encode(text + "\n\n").ids for name, text in chunks.items()}
    rng = random.Random(0)
    for before, after in (("<source id=1>", "</source>\n"), ("\n- ", "\n"), ("", "\n\n"), ('Note: "', '"')):
        chosen = rng.sample(sorted(chunks), 5)
        whole = tokenizer.encode("".join(before + chunks[name] + after for name in chosen)).ids
        found = matcher(**ids).find(whole)
        assert [match.chunks[0] for match in found] == chosen
        for match in found:
            own = ids[match.chunks[0]][match.first : match.first + match.count]
            assert own == whole[match.slot : match.end]
            assert match.count >= len(ids[match.chunks[0]]) - 6


# -- the index, without its model


def test_a_prompt_is_composed_of_its_chunks_in_whatever_order(index: Index) -> None:
    ids, chunks = prompt_of(index, 3, 0, 2)
    found = ServedIndex(index.path).compose(ids, AUTO)
    assert (found.chunks, found.misses) == (3, ())
    assert found.end == len(index.prefix_segment) + sum(len(chunk.segment) for chunk in chunks)
    assert [piece.slot for piece in found.pieces[1:]] == [piece.end for piece in found.pieces[:-1]]
    keys = [index.catalog.encodings(chunk.id, AUTO.recipe)[0].key for chunk in chunks]
    assert [piece.key for piece in found.pieces] == [index.prefix_key, *keys]


def test_other_tokens_between_chunks_end_what_is_loaded(index: Index) -> None:
    ids, chunks = prompt_of(index, 3, 0, 2, between=[77, 78])
    found = ServedIndex(index.path).compose(ids, NAIVE)
    assert found.chunks == 1
    assert [miss.chunk for miss in found.misses] == [chunk.id for chunk in chunks[1:]]
    assert "other tokens stand in front" in found.misses[0].reason


def test_chunks_behind_other_tokens_are_found_where_those_may_be_computed(index: Index) -> None:
    ids, chunks = prompt_of(index, 3, 0, 2, between=[77, 78])
    served = ServedIndex(index.path)
    found = served.compose(ids, NAIVE, most_fresh=4)
    assert (found.chunks, found.fresh, found.misses) == (3, 4, ())
    [row] = index.catalog.encodings(chunks[1].id, NAIVE.recipe)
    index.store.path_of(row.key).unlink()
    count = len(chunks[1].segment)
    found = served.compose(ids, NAIVE, most_fresh=100)
    assert (found.chunks, found.fresh, found.misses[0].chunk) == (2, 4 + count, chunks[1].id)
    found = served.compose(ids, NAIVE, most_fresh=3 + count)
    assert (found.chunks, found.fresh) == (1, 0)
    assert f"{4 + count} tokens in front of it" in found.misses[1].reason
    found = served.compose([ids[0] + 1, *ids[1:]], NAIVE, most_fresh=100)
    assert (found.chunks, found.fresh) == (2, len(index.prefix_segment) + 4 + count)


def test_what_a_full_prefill_would_give_too_is_marked_exact(index: Index) -> None:
    [first, second] = [id for id, _ in index.catalog.places() if id.startswith(index.catalog.places()[0][0][:16])]
    order = [[id for id, _ in index.catalog.places()].index(name) for name in (first, second)]
    found = ServedIndex(index.path).compose(prompt_of(index, *order)[0], AUTO)
    assert [piece.exact for piece in found.pieces] == [True, True, True]  # a document as it was ingested
    found = ServedIndex(index.path).compose(prompt_of(index, *order)[0], NAIVE)
    assert [piece.exact for piece in found.pieces] == [True, False, False]  # made behind no system prompt
    assert found.inexact == sum(piece.count for piece in found.pieces[1:])
    found = ServedIndex(index.path).compose(prompt_of(index, *order, between=[7])[0], AUTO, most_fresh=9)
    assert [piece.exact for piece in found.pieces] == [True, True, False]
    assert not any(
        piece.exact for piece in ServedIndex(index.path).compose(prompt_of(index, order[1])[0], AUTO).pieces[1:]
    )


def test_the_prompts_last_token_is_left_to_be_computed(index: Index) -> None:
    ids, chunks = prompt_of(index, 0, 1)
    ids = ids[: len(index.prefix_segment) + sum(len(chunk.segment) for chunk in chunks)]
    assert ServedIndex(index.path).compose(ids, NAIVE).end == len(ids) - 1


def test_a_prompt_that_begins_in_another_way_loads_nothing_and_says_so(index: Index) -> None:
    ids, _ = prompt_of(index, 0, 1)
    found = ServedIndex(index.path).compose([ids[0] + 1, *ids[1:]], NAIVE)
    assert (found.pieces, len(found.misses)) == ((), 2)
    assert "system prompt" in found.misses[0].reason


def test_a_prompt_without_chunks_loads_nothing(index: Index) -> None:
    ids = [*index.prefix_segment.token_ids, *index.template.plain("Question: what is new?")]
    assert ServedIndex(index.path).compose(ids, NAIVE).pieces == ()


def test_what_others_ingest_is_found_at_once_and_what_they_remove_is_not(index: Index) -> None:
    served = ServedIndex(index.path)
    put(index, "new.md", ["The lighthouse of Vell was built by Jon Arkwright in 1871."])
    list(index.encode(NAIVE))
    name = next(id for id, _ in index.catalog.places() if id not in served._matcher._known)
    [chunk] = index.chunks([name])
    ids = [*index.prefix_segment.token_ids, *chunk.segment.token_ids, 5]
    assert served.compose(ids, NAIVE).chunks == 1
    index.remove("new.md")
    assert served.compose(ids, NAIVE).chunks == 0


def test_a_missing_encoding_and_a_missing_file_are_misses_with_their_reasons(index: Index) -> None:
    ids, chunks = prompt_of(index, 0, 1)
    served = ServedIndex(index.path)
    assert "no sink" in served.compose(ids, METHODS["link0"].encode).misses[0].reason
    [row] = index.catalog.encodings(chunks[1].id, NAIVE.recipe)
    index.store.path_of(row.key).unlink()
    found = served.compose(ids, NAIVE)
    assert (found.chunks, [miss.reason for miss in found.misses]) == (1, ["its file is missing"])


def test_a_kv_that_failed_is_set_aside_until_its_file_is_another(index: Index) -> None:
    ids, chunks = prompt_of(index, 0, 1)
    served, [row] = ServedIndex(index.path), index.catalog.encodings(chunks[0].id, NAIVE.recipe)
    served.set_aside(row.key, "it failed")
    assert served.compose(ids, NAIVE).misses[0].reason == "it failed"
    file = index.store.path_of(row.key)
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    assert served.compose(ids, NAIVE).chunks == 2


def test_a_text_of_several_documents_follows_the_one_that_the_prompt_has_more_of(index: Index) -> None:
    served, common = ServedIndex(index.path), "Visitors are asked to ring the bell twice and then to wait."
    for source, first in (
        ("a.md", "Rules of the house by the sea, in short."),
        ("b.md", "Rules of the mill, all of them."),
    ):
        put(index, source, [first, common])
    list(index.encode(AUTO))
    rows = {row.text: row for row in index.catalog.all_chunks() if row.document == "b.md" or row.text != common}
    of_b = [row for row in index.catalog.all_chunks() if row.text == common]
    documents = {row.document: row for row in of_b}
    first = next(row for text, row in rows.items() if "mill, all" in text)
    ids = [*index.prefix_segment.token_ids, *first.token_ids, *of_b[0].token_ids, 5]
    found = served.compose(ids, AUTO)
    [meant] = index.catalog.encodings(documents[first.document].id, AUTO.recipe)
    assert found.pieces[-1].key == meant.key
    alone = served.compose([*index.prefix_segment.token_ids, *of_b[0].token_ids, 5], AUTO)
    assert (alone.chunks, alone.misses[0].reason) == (0, "no prefixed KV was made for it")


def test_equal_compositions_share_a_digest_and_others_do_not(index: Index) -> None:
    served = ServedIndex(index.path)
    prompts = {order: prompt_of(index, *order)[0] for order in ((0, 1), (1, 0), (0, 2))}
    digests = {served.compose(ids, encoder).digest for ids in prompts.values() for encoder in (NAIVE, AUTO)}
    assert len(digests) == 6
    asked = [*prompts[0, 1][:-5], 9, 9]
    assert served.compose(asked, AUTO).digest == served.compose(prompts[0, 1], AUTO).digest


def test_a_piece_is_cut_to_the_slots_that_are_wanted() -> None:
    piece = Piece("k", 2, 10, 8)
    assert piece.within(12, 15) == Piece("k", 4, 12, 3)
    assert piece.within(0, 11) == Piece("k", 2, 10, 1)
    assert piece.within(30, 40).count == 0


def test_looking_up_writes_nothing(index: Index) -> None:
    path = index.path
    index.close()
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and "sqlite-" not in file.name}
    ServedIndex(path).catalog.close()
    assert {file: file.read_bytes() for file in before} == before
    with pytest.raises(EmptyIndex, match="ragcache ingest"):
        ServedIndex(path / "nothing")
    assert not (path / "nothing").exists()


def test_an_index_of_an_older_version_is_not_served(index: Index) -> None:
    index.catalog.set_setting(MADE_BY, None)
    with pytest.raises(IndexFormat, match="ragcache ingest"):
        read_layouts(ServedIndex(index.path).catalog, index.path)
    path, reader = index.path, index.reader
    with Index(path, reader) as again:
        assert again.catalog.setting(MADE_BY)["dtype"] == "torch.float32"
    catalog = Catalog(path / "catalog.sqlite")
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM migrations WHERE name LIKE 'm007%'")
    catalog.close()
    with pytest.raises(IndexFormat, match="older version"):
        ServedIndex(path)


# -- which model is served


def served_config(folder: Path, **changes: Any) -> Any:
    """What `check_served_model` reads of vLLM's configuration."""
    from transformers import AutoConfig

    model = {
        "model": str(folder), "tokenizer": str(folder), "tokenizer_revision": None, "dtype": "torch.float32",
        "quantization": None, "hf_overrides": {}, "hf_config": AutoConfig.from_pretrained(folder),
    }  # fmt: skip
    parts = {"load_format": "auto", "cache_dtype": "auto"}
    given = {**model, **parts, **changes}
    return SimpleNamespace(
        model_config=SimpleNamespace(**{name: given[name] for name in model}),
        load_config=SimpleNamespace(load_format=given["load_format"]),
        cache_config=SimpleNamespace(cache_dtype=given["cache_dtype"]),
    )


def copy_of_reader(folder: Path) -> Path:
    import shutil

    return Path(shutil.copytree(bundled.reader_path(), folder / "reader"))


def change_one_weight(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    [file] = folder.glob("*.safetensors")
    weights = load_file(file)
    next(iter(weights.values())).view(-1)[0] += 0.001
    save_file(weights, file, metadata={"format": "pt"})


def test_the_model_that_made_the_index_may_be_served(index: Index) -> None:
    check_served_model(index.catalog, index.path, served_config(bundled.reader_path()))


def test_a_model_with_one_weight_changed_is_refused(index: Index, tmp_path: Path) -> None:
    folder = copy_of_reader(tmp_path)
    change_one_weight(folder)
    with pytest.raises(IndexMismatch, match=r"weights \w+ in the index and \w+ served"):
        check_served_model(index.catalog, index.path, served_config(folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "torch.bfloat16"}, "dtype torch.float32 in the index and torch.bfloat16 served"),
        ({"quantization": "fp8"}, "quantization 'fp8' served"),
        ({"cache_dtype": "fp8_e4m3"}, "kv_cache_dtype 'fp8_e4m3' served"),
        ({"load_format": "dummy"}, "load_format 'dummy' served"),
    ],
)
def test_other_numbers_than_the_models_own_are_refused(index: Index, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(IndexMismatch, match=message):
        check_served_model(index.catalog, index.path, served_config(bundled.reader_path(), **changes))


def test_another_rope_is_refused(index: Index, tmp_path: Path) -> None:
    folder = copy_of_reader(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {**config["rope_parameters"], "rope_theta": 77777.0}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(IndexMismatch, match="rope_parameters"):
        check_served_model(index.catalog, index.path, served_config(folder))


def test_another_tokenizer_is_refused(index: Index, tmp_path: Path) -> None:
    folder = copy_of_reader(tmp_path)
    for file in folder.glob("chat_template*"):
        file.write_text(file.read_text() + " ")
    if not list(folder.glob("chat_template*")):
        file = folder / "tokenizer_config.json"
        settings = json.loads(file.read_text())
        file.write_text(json.dumps({**settings, "chat_template": settings["chat_template"] + " "}))
    with pytest.raises(IndexMismatch, match="tokenizer"):
        check_served_model(index.catalog, index.path, served_config(folder))


def test_what_is_served_is_described_as_the_reader_describes_itself(index: Index) -> None:
    described, served = index.reader.describe(), describe_served(served_config(bundled.reader_path()).model_config)
    assert {part: described[part] for part in ("weights", "tokenizer", "dtype")} == {
        part: served[part] for part in ("weights", "tokenizer", "dtype")
    }


# -- what a request asks for


def test_a_request_names_a_method_or_takes_the_default() -> None:
    assert parse_wanted(None, "auto").method == "auto"
    assert parse_wanted(None, "auto").recompute == parse_wanted({"ragcache": "auto"}, "auto").recompute == 0.05
    assert parse_wanted(None, "auto", unable="it was started so").recompute == 0
    assert parse_wanted({"ragcache": "naive"}, "auto").method == "naive"
    assert parse_wanted({"ragcache": {"method": "epic", "recompute": 0}}, "auto").encoder == METHODS["epic"].encode
    assert parse_wanted({"ragcache": {"method": "fusionrag", "recompute": 0.0}}, "auto").encoder.recipe.startswith(
        "fused"
    )
    assert parse_wanted({"ragcache": False}, "auto") is None
    assert parse_wanted({"ragcache": "full"}, "auto") is None
    assert parse_wanted({"do_remote_prefill": True}, "full") is None
    for name, share in (("epic", 0.15), ("cacheblend", 0.15), ("prophetkv", 0.2), ("fusionrag", 0.15)):
        assert parse_wanted({"ragcache": name}, "auto").recompute == share


@pytest.mark.parametrize(
    "name", ["prefix", "ragcache", "ape", "sel", "infoflow", "cachecraft", "psr-fused", "droidspeak"]
)
def test_what_vllm_cannot_run_is_refused_by_name(name: str) -> None:
    share = {} if METHODS[name].recompute is None else {"recompute": 0}
    with pytest.raises(InvalidArgument, match=f"method '{name}' cannot run on vLLM"):
        parse_wanted({"ragcache": {"method": name, **share}}, "auto")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"method": "cacheclip"}, "'cacheclip' cannot recompute on vLLM: it chooses by Grouped"),
        ({"method": "behind-document", "recompute": 0.3}, "'behind-document' cannot run on vLLM"),
        ({"method": "auto", "recompute": "much"}, "recompute is 'much'"),
        ({"methods": "auto"}, "method and recompute"),
        (7, "ragcache=7"),
        ({"method": "turborag"}, "turborag"),
    ],
)
def test_nonsense_is_refused(asked: Any, message: str) -> None:
    with pytest.raises((InvalidArgument, IndexFormat), match=message):
        parse_wanted({"ragcache": asked}, "auto")
    with pytest.raises(UnknownMethod):
        parse_wanted({"ragcache": "nothing"}, "auto")


def test_every_row_either_runs_or_is_refused_by_its_name() -> None:
    for name, row in METHODS.items():
        share = {} if row.recompute is None else {"recompute": 0}
        asked = {"ragcache": {"method": name, **share}}
        if name in ("full", *LOADABLE):
            assert (parse_wanted(asked, "auto") is None) == (row.encode is None)
        else:
            with pytest.raises(InvalidArgument, match=name):
                parse_wanted(asked, "auto")


def runs_on_vllm(name: str, share: float) -> bool:
    """Whether a row runs at a share; of a row that takes none, at none."""
    row = METHODS[name]
    tuning = Tuning(row.finetuned, "independent", "reordered", 1, 8, "", 1) if row.finetuned else None
    asked = {"method": name} if row.recompute is None else {"method": name, "recompute": share}
    try:
        return parse_wanted({"ragcache": asked}, "auto", tuning) is not None
    except InvalidArgument:
        return False


def test_the_guide_names_the_rows_that_recompute_and_those_that_are_refused() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/serving-with-vllm.md").read_text(encoding="utf-8")
    recomputing = guide.split("| the first tokens", 1)[1].split("\n\n")[0]
    refused = guide.split("Rows that change attention", 1)[1].split("are refused")[0]
    rows = {name for name, row in METHODS.items() if row.encode is not None}
    assert set(re.findall("`([^`]+)`", recomputing)) == {
        name for name in rows if METHODS[name].recompute is not None and runs_on_vllm(name, 0.15)
    }
    assert set(re.findall("`([^`]+)`", refused)) == {
        name for name in METHODS if name != "full" and not runs_on_vllm(name, 0.0)
    }


def test_copies_are_resolved_of_an_index_without_its_model(index: Index) -> None:
    chunk = index.chunks([index.catalog.places()[0][0]])[0]
    assert ServedIndex(index.path).chunks([chunk.id]) == [replace(chunk)]


def test_the_connector_without_vllm_names_the_extra() -> None:
    script = """
import sys
sys.modules["vllm"] = None  # importing it now fails as if it were not installed
try:
    import vllm_ragcache.connector
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "MissingExtra" in done.stdout
    assert "pip install 'ragcache-kv[vllm]'" in done.stdout
