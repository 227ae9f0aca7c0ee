"""llama.cpp, through `llama-cpp-python`: cold prefill, restored prompt states, spliced chunks.

Its low-level calls, since the high-level class copies a vocabulary of logits with every state. Flash attention is on
where long prompts are prefilled and off where a few tokens follow a long context: each is llama.cpp's faster way.
"""

import ctypes
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ragcache.errors import PeerFailed
from ragcache.model.reader import Reader
from ragcache.retrieve.needs import needs
from ragcache_bench.speed.machine import masked
from ragcache_bench.speed.peers.gguf import Precision, write_gguf
from ragcache_bench.speed.peers.peer import Parts, common_prefix, joined

_UBATCH = 512  # tokens per forward: the fastest on a CPU, and the logits buffer stays small
_PROMPT, _CHUNK = 0, 1  # sequences: what is answered, and where a chunk is made or loaded


class LlamaModel:
    """A model in llama.cpp.

    Parameters
    ----------
    path : Path
        GGUF file.

    Raises
    ------
    MissingExtra
        If `llama-cpp-python` is not installed.
    PeerFailed
        If llama.cpp cannot load the file.
    """

    def __init__(self, path: Path) -> None:
        with needs("peers"):
            import llama_cpp
        self.api: Any = llama_cpp.llama_cpp
        # Once a thread has set up its tile registers llama.cpp takes them for granted, and PyTorch releases them after
        # each product of its own: in one thread, llama.cpp's next long prompt would be an illegal instruction.
        self.thread = ThreadPoolExecutor(1, "llama.cpp")
        _silence(self.api)
        self.api.llama_backend_init()
        given = self.api.llama_model_default_params()
        given.use_extra_bufts = not masked()  # without them llama.cpp has no AMX either
        self.handle = self.api.llama_model_load_from_file(str(path).encode(), given)
        if not self.handle:
            raise PeerFailed(f"llama.cpp cannot load {path}; was it built for this machine?")
        self.vocabulary: int = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.handle))

    def close(self) -> None:
        """Free what llama.cpp holds; contexts first."""
        self.thread.submit(self.api.llama_model_free, self.handle).result()
        self.thread.shutdown()


class LlamaContext:
    """One context of a model in llama.cpp.

    Parameters
    ----------
    model : LlamaModel
        Must be closed later.
    capacity : int
        Most tokens held at once.
    threads : int
        For prompts and single tokens alike.
    flash : bool
        Flash attention, which long prompts gain by and short continuations lose by.

    Raises
    ------
    PeerFailed
        If llama.cpp cannot make the context.
    """

    def __init__(self, model: LlamaModel, capacity: int, *, threads: int, flash: bool) -> None:
        self._api, self._thread, self._vocabulary = model.api, model.thread, model.vocabulary
        given = self._api.llama_context_default_params()
        given.n_ctx, given.n_batch, given.n_ubatch, given.n_seq_max = capacity, _UBATCH, _UBATCH, 2
        given.n_threads = given.n_threads_batch = threads
        given.flash_attn_type, given.kv_unified, given.no_perf = int(flash), True, True
        self._context = self._api.llama_init_from_model(model.handle, given)
        if not self._context:
            raise PeerFailed(f"llama.cpp cannot make a context of {capacity:,} tokens")
        self._memory = self._api.llama_get_memory(self._context)
        self._batch = self._api.llama_batch_init(_UBATCH, 0, 1)

    def close(self) -> None:
        """Free what llama.cpp holds."""
        # In its thread: an interrupt may have left a forward running there.
        self._thread.submit(self._api.llama_batch_free, self._batch).result()
        self._thread.submit(self._api.llama_free, self._context).result()

    def forward(self, ids: Sequence[int], start: int, sequence: int = _PROMPT) -> None:
        """Run tokens from a position on; the logits of the last one can be read then."""
        for first in range(0, len(ids), _UBATCH):
            part = ids[first : first + _UBATCH]
            self._fill(part, start + first, sequence, last=first + len(part) == len(ids))
            if code := self._thread.submit(self._api.llama_decode, self._context, self._batch).result():
                raise PeerFailed(f"llama.cpp could not run {len(part)} tokens at {start + first} (code {code})")

    def logits(self) -> Tensor:
        """Of the last token that was run, (vocabulary,) fp32."""
        row = self._api.llama_get_logits_ith(self._context, -1)
        return torch.from_numpy(np.ctypeslib.as_array(row, (self._vocabulary,)).copy())

    def forget(self, sequence: int, start: int = 0) -> None:
        """Drop a sequence's tokens from a position on."""
        self._api.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def state(self, sequence: int) -> Any:
        """A copy of a sequence's KV."""
        size = self._api.llama_state_seq_get_size(self._context, sequence)
        copied = (ctypes.c_uint8 * size)()
        self._api.llama_state_seq_get_data(self._context, copied, size, sequence)
        return copied

    def restore(self, state: Any, sequence: int) -> None:
        """Put a copied KV back as a sequence."""
        if not self._api.llama_state_seq_set_data(self._context, state, len(state), sequence):
            raise PeerFailed(f"llama.cpp could not restore a state of {len(state):,} bytes")

    def move(self, delta: int) -> None:
        """Hand the chunk's sequence over to the prompt's, moved by some positions."""
        self._api.llama_memory_seq_add(self._memory, _CHUNK, -1, -1, delta)
        self._api.llama_memory_seq_cp(self._memory, _CHUNK, _PROMPT, -1, -1)
        self.forget(_CHUNK)

    def _fill(self, ids: Sequence[int], start: int, sequence: int, *, last: bool) -> None:
        batch, count = self._batch, len(ids)
        batch.n_tokens = count
        np.ctypeslib.as_array(batch.token, (count,))[:] = ids
        np.ctypeslib.as_array(batch.pos, (count,))[:] = np.arange(start, start + count)
        np.ctypeslib.as_array(batch.n_seq_id, (count,))[:] = 1
        np.ctypeslib.as_array(batch.logits, (count,))[:] = 0
        batch.logits[count - 1] = int(last)
        for i in range(count):
            batch.seq_id[i][0] = sequence


@cache
def _silence(api: Any) -> Any:
    """Keep llama.cpp's log from stderr; what is returned is called by it as long as the process lives."""
    callback = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(callback, ctypes.c_void_p(0))
    return callback


@dataclass
class LlamaCold:
    """Full prefill, every time.

    Attributes
    ----------
    context : LlamaContext
        With flash attention.
    name : str
        What a table calls it.
    """

    context: LlamaContext
    name: str = "llama.cpp"
    remembers: bool = field(default=False, init=False)

    @property
    def held(self) -> int:
        """Nothing."""
        return 0

    def reset(self) -> None:
        """Nothing to forget."""

    def ready(self, parts: Parts) -> None:
        """Nothing."""

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,)."""
        self.context.forget(_PROMPT)
        self.context.forward(joined(parts), 0)
        return self.context.logits()

    def settle(self) -> None:
        """Nothing."""


@dataclass
class LlamaRestored:
    """Keeps the state of every prompt, and runs what lies behind the longest beginning that it knows.

    Attributes
    ----------
    context : LlamaContext
        Without flash attention where little follows, with it where much does.
    name : str
        What a table calls it.
    """

    context: LlamaContext
    name: str = "llama.cpp, restored prefix"
    remembers: bool = field(default=True, init=False)
    _known: list[tuple[list[int], Any]] = field(default_factory=list, init=False, repr=False)
    _asked: list[int] = field(default_factory=list, init=False, repr=False)

    @property
    def held(self) -> int:
        """Of all states."""
        return sum(len(state) for _, state in self._known)

    def reset(self) -> None:
        """Forget all prompts."""
        self._known.clear()

    def ready(self, parts: Parts) -> None:
        """Nothing: it knows only what was asked."""

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,)."""
        ids = self._asked = joined(parts)
        lengths = [common_prefix(ids, known) for known, _ in self._known]
        best = max(range(len(lengths)), key=lengths.__getitem__, default=None)
        self.context.forget(_PROMPT)
        length = 0
        if best is not None and lengths[best]:
            length = min(lengths[best], len(ids) - 1)  # the last token is run anyway, for its logits
            self.context.restore(self._known[best][1], _PROMPT)
            self.context.forget(_PROMPT, length)
        self.context.forward(ids[length:], length)
        return self.context.logits()

    def settle(self) -> None:
        """Copy the prompt's state."""
        self._known.append((self._asked, self.context.state(_PROMPT)))


@dataclass
class LlamaSpliced:
    """Chunks prefilled alone, their states put side by side and moved to their positions; nothing is recomputed.

    Not a feature of llama.cpp but built of its calls: what naive reuse would be there.

    Attributes
    ----------
    context : LlamaContext
        Without flash attention.
    name : str
        What a table calls it.
    """

    context: LlamaContext
    name: str = "llama.cpp, spliced chunks"
    remembers: bool = field(default=False, init=False)
    _states: dict[tuple[int, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def held(self) -> int:
        """Of all states."""
        return sum(map(len, self._states.values()))

    def reset(self) -> None:
        """Forget all chunks."""
        self._states.clear()

    def ready(self, parts: Parts) -> None:
        """Prefill the parts that are not known yet, each alone."""
        self.context.forget(_PROMPT)  # room
        for part in parts[:-1]:
            if tuple(part) not in self._states:
                self.context.forget(_CHUNK)
                self.context.forward(part, 0, _CHUNK)
                self._states[tuple(part)] = self.context.state(_CHUNK)
                self.context.forget(_CHUNK)

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,)."""
        self.context.forget(_PROMPT)
        start = 0
        for part in parts[:-1]:
            self.context.restore(self._states[tuple(part)], _CHUNK)
            self.context.move(start)
            start += len(part)
        self.context.forward(parts[-1], start)
        return self.context.logits()

    def settle(self) -> None:
        """Nothing."""


@contextmanager
def contexts(
    reader: Reader, precision: Precision, capacity: int, *, threads: int
) -> Iterator[tuple[LlamaContext, LlamaContext]]:
    """A reader's model in llama.cpp, with two contexts: with flash attention, for long prefills, and without.

    Parameters
    ----------
    reader : Reader
        Whose model is written as GGUF first.
    precision : str
        "f32", "bf16" or "q8_0".
    capacity : int
        Tokens of the longest prompt.
    threads : int
        CPU threads.
    """
    with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder, ExitStack() as stack:
        path = Path(folder) / f"{precision}.gguf"
        write_gguf(reader.model, path, precision)
        model = LlamaModel(path)
        stack.callback(model.close)

        def made(flash: bool) -> LlamaContext:
            context = LlamaContext(model, capacity, threads=threads, flash=flash)
            stack.callback(context.close)
            return context

        yield made(True), made(False)
