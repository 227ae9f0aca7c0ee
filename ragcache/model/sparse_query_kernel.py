"""The kernel of sparse-query attention, in Triton, which this module needs: see `ragcache.model.kernels`.

Flash attention (2205.14135) over row blocks whose queries stand anywhere: a block visits the key blocks up to its last
row's slot, and without a window compares slots only in those that not all of its rows see whole. Numbers of rows and
keys change with every prompt, so the kernel is compiled for any.
"""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _visit(  # type: ignore[no-untyped-def]
    acc, top, total, queries, own, key, value, scale, first, stop, keys, window, key_row, value_row,
    SIZE: tl.constexpr, KEYS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, SIZE)
    for start in range(first, stop, KEYS):
        here = start + tl.arange(0, KEYS)
        inside = here < keys
        k = tl.load(key + here[None, :] * key_row + lanes[:, None], mask=inside[None, :], other=0.0)  # (size, keys)
        logits = tl.dot(queries, k) * scale  # (rows, keys), in powers of two
        if MASKED:
            seen = here[None, :] <= own[:, None]
            if window > 0:
                seen = seen & (here[None, :] > own[:, None] - window)
            logits = tl.where(seen, logits, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, 1))
        safe = tl.where(higher == float("-inf"), 0.0, higher)  # a row that saw nothing yet
        shares = tl.exp2(logits - safe[:, None])
        kept = tl.exp2(top - safe)
        total = total * kept + tl.sum(shares, 1)
        v = tl.load(value + here[:, None] * value_row + lanes[None, :], mask=inside[:, None], other=0.0)
        acc = acc * kept[:, None] + tl.dot(shares.to(v.dtype), v)
        top = higher
    return acc, top, total


@triton.jit(do_not_specialize=["rows", "keys", "window"])  # type: ignore[untyped-decorator]
def attend(  # type: ignore[no-untyped-def]
    query, key, value, slots, output, scale, rows, keys, window,
    query_head, key_head, key_row, value_head, value_row,
    GROUP: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """One block of rows of one head, (ROWS, SIZE), over the keys up to its last row's slot."""
    # The last rows see most keys: they start first.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1)
    at = block * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, SIZE)
    inside = at < rows
    own = tl.load(slots + at, mask=inside, other=keys - 1)  # (rows,)
    lowest = tl.load(slots + block * ROWS)
    highest = tl.load(slots + tl.minimum(block * ROWS + ROWS, rows) - 1)
    where = head * query_head + at[:, None] * SIZE + lanes[None, :]
    queries = tl.load(query + where, mask=inside[:, None], other=0.0)  # (rows, size)
    key += (head // GROUP) * key_head
    value += (head // GROUP) * value_head
    acc = tl.zeros((ROWS, SIZE), tl.float32)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    stop = tl.minimum(highest + 1, keys).to(tl.int32)
    first = lowest.to(tl.int32) * 0
    whole = (((lowest + 1) // KEYS) * KEYS).to(tl.int32)  # up to here all rows see every key
    if window > 0:
        first = (tl.maximum(lowest - window + 1, 0) // KEYS * KEYS).to(tl.int32)
        whole = first  # the window's edge cuts these too
    acc, top, total = _visit(
        acc, top, total, queries, own, key, value, scale, first, whole, keys, window, key_row, value_row,
        SIZE, KEYS, False,
    )  # fmt: skip
    acc, top, total = _visit(
        acc, top, total, queries, own, key, value, scale, whole, stop, keys, window, key_row, value_row,
        SIZE, KEYS, True,
    )  # fmt: skip
    acc = acc / tl.where(total > 0, total, 1.0)[:, None]  # rows of the padding may have seen nothing
    tl.store(output + where, acc.to(output.dtype.element_ty), mask=inside[:, None])
