"""The nodes of a prefix tree in an index: the path that a prompt may take, and which of them are evicted."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ragcache.encode import PrefixTree
from ragcache.index.index import Index
from ragcache.store import EncodingRow

_CLOCK = "prefix_tree_clock"  # setting: the priority of the node that was evicted last


def visit_nodes(index: Index, keys: Collection[str]) -> None:
    """Raise the priority of nodes that a prompt went through, by PGDSF: the clock + frequency x cost / size."""
    clock = index.catalog.setting(_CLOCK, 0.0)
    index.catalog.note(_visited(row, clock) for row in index.catalog.by_key(keys) if row.recipe == PrefixTree.recipe)


def _visited(row: EncodingRow, clock: float) -> EncodingRow:
    about = row.about or {"cost": 0.0}
    uses = about.get("uses", 0) + 1
    return replace(row, about={**about, "uses": uses}, worth=clock + uses * about["cost"])


def trim_tree(index: Index, tree: PrefixTree) -> None:
    """Evict nodes from the disk and from memory until they are within the tree's limits."""
    held = index.held()
    if index.catalog.bytes_of(tree.recipe) <= tree.disk_bytes and sum(held.values()) <= tree.memory_bytes:
        return
    with index.writing:  # no node comes to stand behind one that goes
        nodes = {row.key: row for row in index.catalog.by_recipe(tree.recipe)}
        gone = choose_leaves(nodes.values(), {key: row.nbytes for key, row in nodes.items()}, tree.disk_bytes)
        if gone:  # a node may be worth less than the leaf that went before it, and the clock never goes back
            clock = index.catalog.setting(_CLOCK, 0.0)
            index.catalog.set_setting(_CLOCK, max(clock, *(nodes[key].worth for key in gone)))
            index.forget(gone)
        held = {key: size for key, size in held.items() if key in nodes and key not in gone}
        index.release(choose_leaves([nodes[key] for key in held], held, tree.memory_bytes))


def choose_leaves(nodes: Iterable[EncodingRow], sizes: Mapping[str, int], limit: int) -> list[str]:
    """Keys of the nodes to evict, in order, until the others take no more than `limit` bytes: leaves, least priority.

    Parameters
    ----------
    nodes : iterable of EncodingRow
        Each with its priority as `worth`, and the nodes on the way to it in `left`.
    sizes : mapping of str to int
        Bytes of each, by key.
    limit : int
        Of all together.
    """
    left = {node.key: node for node in nodes}
    children = dict.fromkeys(left, 0)
    for node in left.values():
        for key in node.left:
            children[key] = children.get(key, 0) + 1
    total, gone = sum(sizes[key] for key in left), list[str]()
    while total > limit:
        leaf = min((node for node in left.values() if not children[node.key]), key=lambda node: node.worth)
        for key in left.pop(leaf.key).left:
            children[key] -= 1
        total -= sizes[leaf.key]
        gone.append(leaf.key)
    return gone


def find_longest_path(
    chunks: Sequence[str], start: tuple[str, ...], rows: Callable[[str], Sequence[EncodingRow]]
) -> list[str]:
    """The longest path of nodes through some of these chunks, in bytes of KV; of equal ones the first, in their order.

    Parameters
    ----------
    chunks : sequence of str
        Their ids, which may stand in any order.
    start : tuple of str
        Key of the system prefix.
    rows : callable
        Gives the nodes of a chunk.
    """
    nodes = {(row.chunk, row.left): row for chunk in dict.fromkeys(chunks) for row in rows(chunk)}

    def extend(left: tuple[str, ...], rest: Sequence[str]) -> tuple[int, list[str]]:
        best: tuple[int, list[str]] = (0, [])
        for place, chunk in enumerate(rest):
            if (row := nodes.get((chunk, left))) is not None:
                size, path = extend((*left, row.key), [*rest[:place], *rest[place + 1 :]])
                best = max(best, (size + row.nbytes, [chunk, *path]), key=lambda found: found[0])
        return best

    return extend(start, chunks)[1]
