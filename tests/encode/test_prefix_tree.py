"""Exact prefixes of whole prompts: what is reused, in which order, and which nodes are let go of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_model
from hypothesis import given
from hypothesis import strategies as st
from staged import QUESTION, make
from torch import Tensor
from transformers import DynamicCache

from ragcache.attend import ScoreMod
from ragcache.encode import PrefixTree
from ragcache.engine.clock import Clock
from ragcache.engine.context_loader import ContextLoader
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, OutOfMemory, UnusableIndex
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.index.prefix_tree import choose_leaves, find_longest_path, trim_tree
from ragcache.layout import LongestPath, Overlapped
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.architecture import cache_argument
from ragcache.model.cost import FlopCounter
from ragcache.model.decode import Sampling
from ragcache.model.plan import ScoreModFunction, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.report import CacheReport
from ragcache.store import EncodingRow, LocalStore

ROW = METHODS["ragcache"]
ANY_ORDER = replace(ROW, name="any order", layout=LongestPath(reorder=True))
ONE = Sampling(max_new_tokens=1)


def answer(engine: Engine, chunks: Sequence[Chunk | str], row: Method = ROW) -> CacheReport:
    return engine.answer(QUESTION, chunks, method=row, sampling=ONE).report


def states(report: CacheReport) -> list[str]:
    return [chunk.cache for chunk in report.chunks]


def nodes(index: Index) -> dict[str, EncodingRow]:
    return {row.key: row for row in index.catalog.by_recipe("prefix-tree")}


@torch.no_grad()
def stock(architecture: str, ids: Sequence[int]) -> tuple[list[Tensor], Tensor]:
    """K and V per layer, (2, kv_heads, tokens, head_dim), and the last token's logits, by transformers alone."""
    model, cache = tiny_model(architecture), DynamicCache()
    output = model(input_ids=torch.tensor([list(ids)]), use_cache=True, **cache_argument(model, cache))
    return [torch.stack([layer.keys[0], layer.values[0]]) for layer in cache.layers], output.logits[0, -1].float()


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma3"])
def test_every_answer_is_full_prefills_whatever_of_it_was_reused(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    engine, (a, b, c, d) = make(tmp_path, readers(architecture))
    orders = [([a, b, c], 0), ([a, b, c], 3), ([a, b, d], 2), ([d, a, b], 0), ([a, b, d, c], 3), ([b], 0)]
    for chunks, reused in orders:
        ready = engine.prefill(QUESTION, chunks, method=ROW)
        kvs, logits = stock(architecture, ready.prompt.token_ids)
        assert states(ready.report) == ["exact"] * reused + ["miss"] * (len(chunks) - reused)
        torch.testing.assert_close(ready.logits, logits, atol=1e-4, rtol=1e-4)
        assert states(answer(engine, chunks)) == states(ready.report)
        before: tuple[str, ...] = engine.index.prefix().keys
        for segment, chunk in enumerate(chunks, 1):
            found = engine.index.load(chunk, PrefixTree(), before)
            assert found.kv is not None
            for ours, theirs in zip(found.kv.layers, kvs, strict=True):
                torch.testing.assert_close(ours, theirs[:, :, ready.prompt.span(segment)], atol=1e-4, rtol=1e-4)
            before = (*before, found.key)
    assert len(nodes(engine.index)) == 3 + 1 + 3 + 1 + 1


@pytest.mark.parametrize("gap", [0, 3])
def test_behind_a_shortened_chunk_nothing_is_exact(gap: int, reader: Reader, tmp_path: Path) -> None:
    """Not even where it keeps the position that its KV was made at."""
    engine, (a, b, *_) = make(tmp_path, reader)
    whole = engine.prefill(QUESTION, [a, b], method=ROW)
    answer(engine, [a, b])
    prefix, first, second, *rest = whole.prompt.segments
    short = replace(first, token_ids=first.token_ids[: len(first) - gap])
    prompt = replace(whole.prompt, segments=(prefix, short, second, *rest), positions=whole.prompt.starts)
    loader = ContextLoader(engine.index, prompt, [a, b], Clock(reader.device), FlopCounter(reader.dims))
    context = loader.load(PrefixTree(), len(prompt))
    assert (1 in context.exact, 2 in context.exact) == (True, not gap)
    assert (2 in context.placed) is not bool(gap)


def test_keeping_a_path_takes_no_forward_and_no_time_of_the_answer(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader)
    report = answer(engine, chunks)
    assert report.harvest_flops == 0
    assert report.ms.harvest > 0
    assert report.ms.first_token <= report.ms.total


@dataclass
class Node:
    """A node of the paper's tree, as an object with its children."""

    name: str = ""
    size: int = 0
    cost: float = 0.0
    frequency: int = 0
    priority: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)


@dataclass
class Tree:
    """PGDSF as the paper writes it down, over names."""

    limit: int
    clock: float = 0.0
    root: Node = field(default_factory=Node)

    def visit(self, path: Sequence[str], sizes: dict[str, int], cost: float) -> None:
        node = self.root
        for name in path:
            if name not in node.children:
                node.children[name] = Node(name, sizes[name], cost)
            node = node.children[name]
            node.frequency += 1
            node.priority = self.clock + node.frequency * node.cost
        while self.total(self.root) > self.limit:
            parent, leaf = min(self.leaves(self.root), key=lambda found: found[1].priority)
            del parent.children[leaf.name]
            self.clock = max(self.clock, leaf.priority)

    def total(self, node: Node) -> int:
        return node.size + sum(map(self.total, node.children.values()))

    def leaves(self, node: Node) -> list[tuple[Node, Node]]:
        own = [(node, child) for child in node.children.values() if not child.children]
        return own + [leaf for child in node.children.values() for leaf in self.leaves(child)]

    def paths(self, node: Node, front: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        found = {(*front, name) for name in node.children}
        return found.union(*(self.paths(child, (*front, name)) for name, child in node.children.items()))


def paths(index: Index, chunks: Sequence[Chunk]) -> set[tuple[str, ...]]:
    known, names = nodes(index), {chunk.id: chunk.source for chunk in chunks}
    return {
        (*(names[known[key].chunk] for key in row.left if key in known), names[row.chunk]) for row in known.values()
    }


def test_nodes_are_evicted_as_the_paper_says(reader: Reader, tmp_path: Path) -> None:
    """Many prompts in a small tree, beside the paper's own algorithm over a tree of objects."""
    engine, chunks = make(tmp_path, reader)
    answer(engine, chunks)
    sources = {chunk.id: chunk.source for chunk in chunks}
    sizes = {sources[row.chunk]: row.nbytes for row in nodes(engine.index).values()}
    engine.index.forget(list(nodes(engine.index)))
    limit = sum(sizes.values())
    row = Method("small", PrefixTree(disk_bytes=limit))
    tree, evictions = Tree(limit), 0
    orders = torch.stack([torch.randperm(4, generator=torch.Generator().manual_seed(n)) for n in range(14)]).tolist()
    for order in [order[: 1 + n % 4] for n, order in enumerate(orders)] + [[0], [0, 1], [0, 1, 2]]:
        prompt = [chunks[n] for n in order]
        full = engine.prefill(QUESTION, prompt, method="full").prompt
        reused = sum(state == "exact" for state in states(engine.prefill(QUESTION, prompt, method=row).report))
        new = [slot for slot in range(len(full)) if not full.slots[0] <= slot < full.slots[1 + reused]]
        dims = engine.reader.dims
        work = sum(2 * dims.linear + 4 * dims.attention * (slot + 1) for slot in new) * dims.layers + 2 * dims.lm_head
        answer(engine, prompt, row)
        tree.visit([chunk.source for chunk in prompt], sizes, work / len(new))
        assert paths(engine.index, chunks) == tree.paths(tree.root)
        assert engine.index.catalog.setting("prefix_tree_clock", 0.0) == pytest.approx(tree.clock)
        assert engine.index.catalog.bytes_of("prefix-tree") <= limit
        evictions += tree.clock > 0
    assert evictions


def test_what_is_evicted_is_gone_from_the_disk_and_nothing_stands_behind_it(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader)
    row = Method("tiny", PrefixTree(disk_bytes=1))
    before = set(engine.index.store.list())
    assert states(answer(engine, chunks, row)) == ["miss"] * 4
    assert nodes(engine.index) == {}
    assert set(engine.index.store.list()) - before <= {engine.index.prefix_key}


def test_the_clock_never_goes_back(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader)
    answer(engine, chunks[:2])
    index = engine.index
    front, leaf = sorted(nodes(index).values(), key=lambda row: len(row.left))
    index.catalog.note([replace(front, worth=4.0), replace(leaf, worth=4.5)])
    trim_tree(index, PrefixTree(disk_bytes=0))
    assert not nodes(index)
    assert index.catalog.setting("prefix_tree_clock") == 4.5


def test_a_path_does_not_drive_out_its_own_beginning(reader: Reader, tmp_path: Path) -> None:
    """There is room for the path's first beside another chunk, in whose place its second comes."""
    engine, (used, short, long, _) = make(tmp_path, reader)
    index = engine.index
    answer(engine, [long])
    [first] = nodes(index)
    room = index.store.head(first) or 0
    index.forget([first])
    answer(engine, [used])
    index.bound.set_limit(index.store.total_bytes() + room + 200)
    for _ in range(9):
        answer(engine, [used])
    answer(engine, [long, short])
    assert {row.chunk for row in nodes(index).values()} == {long.id, short.id}


@pytest.mark.parametrize(
    "error", [OutOfMemory("none left"), torch.OutOfMemoryError("none left"), UnusableIndex("locked")]
)
def test_what_cannot_be_kept_costs_no_answer(
    error: Exception, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = make(tmp_path, reader)

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(PrefixTree, "harvest", refuse)
    report = answer(engine, chunks)
    assert any("was not kept" in note for note in report.notes)
    assert not nodes(engine.index)


def test_what_became_restricted_while_it_was_kept_is_not_kept(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process gives the first chunk fewer readers between the look and the end of the harvest."""
    engine, chunks = make(tmp_path, reader)
    readable = iter([3, 3, 1])
    monkeypatch.setattr(engine.index, "count_readable", lambda _: next(readable))
    answer(engine, chunks[:3])
    assert [row.chunk for row in nodes(engine.index).values()] == [chunks[0].id]


def test_memory_keeps_the_front_of_paths_within_its_limit(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, _) = make(tmp_path, reader)
    row = Method("two", PrefixTree(memory_bytes=engine.reader.bytes_per_token * len(a.segment)))
    for _ in range(2):
        report = answer(engine, [a, b, c], row)
    assert states(report) == ["exact"] * 3
    held = set(engine.index.held()) & set(nodes(engine.index))
    assert [nodes(engine.index)[key].chunk for key in held] == [a.id]
    assert states(answer(engine, [a, b, c], row)) == ["exact"] * 3, "files have the others"


edges = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(edges, st.integers(0, 60), st.data())
def test_leaves_alone_go_and_only_as_many_as_must(parents: list[int], limit: int, data: st.DataObject) -> None:
    tree: list[EncodingRow] = []
    for number, parent in enumerate(parents):
        left = (*tree[parent].left, tree[parent].key) if parent < number else ()
        worth = data.draw(st.floats(0, 9))
        tree.append(EncodingRow(f"c{number}", "prefix-tree", f"k{number}", left, 0, "", 0.0, 0.0, None, worth))
    sizes = {row.key: data.draw(st.integers(1, 9)) for row in tree}
    gone = choose_leaves(tree, sizes, limit)
    kept = [row for row in tree if row.key not in gone]
    assert all(key not in gone for row in kept for key in row.left), "a node lost what it stands behind"
    assert sum(sizes[row.key] for row in kept) <= limit
    assert not gone or sum(sizes[row.key] for row in kept) + sizes[gone[-1]] > limit


def test_the_order_of_retrieval_stays_unless_the_caller_allows_another(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [c, b, a])
    as_retrieved = engine.prefill(QUESTION, [a, b, c, d], method=ROW)
    assert [chunk.id for chunk in as_retrieved.report.chunks] == [a.id, b.id, c.id, d.id]
    assert states(as_retrieved.report) == ["miss"] * 4
    ready = engine.prefill(QUESTION, [a, b, d, c], method=ANY_ORDER)
    assert [chunk.id for chunk in ready.report.chunks] == [c.id, b.id, a.id, d.id]
    assert states(ready.report) == ["exact", "exact", "exact", "miss"]
    _, logits = stock("llama", ready.prompt.token_ids)
    torch.testing.assert_close(ready.logits, logits, atol=1e-4, rtol=1e-4)
    assert [chunk.id for chunk in engine.prefill(QUESTION, [d, a], method=ANY_ORDER).report.chunks] == [d.id, a.id]


def test_the_longest_path_is_found_among_many() -> None:
    def node(chunk: str, *left: str, size: int = 1) -> EncodingRow:
        return EncodingRow(chunk, "prefix-tree", "/".join((*left, chunk)), keys(left), size, "", 0.0, 0.0)

    def keys(path: Sequence[str]) -> tuple[str, ...]:
        return ("prefix", *("/".join(path[: n + 1]) for n in range(len(path))))

    tree = [node("a"), node("b"), node("b", "a"), node("c", "b"), node("a", "b", "c"), node("d", "b", "c", "x")]
    tree.append(node("e", size=9))

    def rows(chunk: str) -> list[EncodingRow]:
        return [row for row in tree if row.chunk == chunk]

    assert find_longest_path(["a", "b", "c", "d"], ("prefix",), rows) == ["b", "c", "a"]
    assert find_longest_path(["a", "b"], ("prefix",), rows) == ["a", "b"]
    assert find_longest_path(["d", "c"], ("prefix",), rows) == []
    assert find_longest_path(["a", "b", "c", "e"], ("prefix",), rows) == ["e"], "in bytes of KV"
    assert find_longest_path(["a", "b", "a"], ("other",), rows) == []


def test_a_node_that_is_evicted_while_a_question_runs_breaks_no_answer(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the choice of an order, and between finding a node and reading it."""
    engine, (a, b, c, d) = make(tmp_path, reader)
    for steps in range(6):
        answer(engine, [c, b, a])
        get, left = LocalStore.get, [steps]
        engine.index.release()

        def evicting(self: LocalStore, key: str, left: list[int] = left, get: Any = get) -> Tensor:
            left[0] -= 1
            if left[0] < 0:
                engine.index.forget(list(nodes(engine.index)))
            found: Tensor = get(self, key)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "get", evicting)
            ready = engine.prefill(QUESTION, [a, b, c, d], method=ANY_ORDER)
        assert [chunk.id for chunk in ready.report.chunks] == [c.id, b.id, a.id, d.id]
        _, logits = stock("llama", ready.prompt.token_ids)
        torch.testing.assert_close(ready.logits, logits, atol=1e-4, rtol=1e-4)
        assert sum(state == "exact" for state in states(ready.report)) == min(max(steps - 1, 0), 3)


@dataclass(frozen=True)
class Flattened(ScoreMod):
    """Every row attends more evenly, those of fresh text too."""

    def score_mod(self, p: PrefillContext, rows: Slots) -> ScoreModFunction:
        return lambda layer, logits: logits / 2


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ragcache", {"attend": Flattened()}),
        ("ragcache", {"layout": Overlapped()}),
        ("cachecraft", {"layout": Overlapped()}),
    ],
)
def test_nothing_is_kept_of_a_prompt_that_was_not_read_as_any_other(
    name: str, change: dict[str, Any], reader: Reader, tmp_path: Path
) -> None:
    engine, chunks = make(tmp_path, reader)
    row = replace(METHODS[name], name="changed", **change)
    assert row.encode is not None
    answer(engine, chunks, row)
    assert engine.index.catalog.by_recipe(row.encode.recipe) == []
    answer(engine, chunks, METHODS[name])
    assert len(engine.index.catalog.by_recipe(row.encode.recipe)) == 4


def test_a_removed_document_takes_all_paths_through_it_along(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, b, c])
    answer(engine, [d, c])
    gone = {row.key for row in nodes(engine.index).values() if row.chunk in (a.id, b.id) or len(row.left) == 3}
    engine.index.remove("doc0")
    assert len(gone) == 3
    assert not gone & set(engine.index.store.list())
    assert {row.chunk for row in nodes(engine.index).values()} == {c.id, d.id}
    assert states(answer(engine, [d, c])) == ["exact", "exact"]


def test_a_limit_is_a_number_of_bytes() -> None:
    with pytest.raises(InvalidArgument, match="disk_bytes is -1"):
        PrefixTree(disk_bytes=-1)
