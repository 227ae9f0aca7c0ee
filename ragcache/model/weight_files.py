"""What a model's weight files hold, as a digest that is remembered; needs no torch."""

import hashlib
import json
import os
import re
from glob import escape
from pathlib import Path

import xxhash

from ragcache.model.checkpoint import gguf_file

_BLOCK = 4096  # bytes
_BLOCKS = 1024  # of a file that says nothing of its tensors
_HEADER_LIMIT = 100_000_000  # bytes: the format's own
_SHA256 = re.compile("[0-9a-f]{64}")


def weights_of_checkpoint(name: str) -> str | None:
    """Digest of the weights in a folder, or in a GGUF file; None where a name is neither's path.

    The files decide even where the folder lies in a hub's cache: they may have been exchanged.
    """
    if file := gguf_file(name):
        return weights_of_files(file.parent, escape(file.name))
    return weights_of_files(Path(name)) if Path(name).is_dir() else None


def weights_of_files(folder: Path, pattern: str = "*.safetensors") -> str:
    """SHA-256 over the weight files of a checkpoint, hashed whole once and then remembered.

    A file is taken for the one that was hashed while its mark is the same: path, size, times of modification and of
    change, inode, device, and a sample of its content (see `_sample`). The time of change moves with every write and
    cannot be set, so weights that are exchanged by copying or renaming are noticed even where size and modification
    time are kept; the sample notices them where a file system reports the same for both, as read-only images do.

    What stays unnoticed is a change on such an image that spares every sampled block: some rows of one tensor, say.
    A file of a hub's cache is known by its blob's name, which is its SHA-256, until its mark changes.
    """
    memory = _memory_path()
    known = _read_json(memory)
    digests = [_digest_of(file.resolve(), known) for file in sorted(folder.glob(pattern))]
    _write_json(memory, known)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _digest_of(file: Path, known: dict[str, list[str]]) -> str:
    """SHA-256 of a file, from what is known where its mark is the same."""
    before, digest = known.get(str(file), ("", ""))
    mark = _mark(file)
    if mark != before:
        if not before and file.parent.name == "blobs" and _SHA256.fullmatch(file.name):
            digest = file.name
        else:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        known[str(file)] = [mark, digest]
    return digest


def _mark(file: Path) -> str:
    return "|".join([*map(str, _status(file)), _sample(file)])


def _status(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def _sample(file: Path) -> str:
    """xxh3-128 over the header of a safetensors file and the middle block of every tensor.

    It costs a read per tensor, of pages that loading the model reads anyway. Of another file it is blocks of all parts.
    """
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        if file.suffix != ".safetensors":
            size = file.stat().st_size
            for start in range(0, size, max(_BLOCK, size // _BLOCKS)):
                stream.seek(start)
                digest.update(stream.read(_BLOCK))
            return digest.hexdigest()
        header = stream.read(min(_HEADER_LIMIT, int.from_bytes(stream.read(8), "little")))
        digest.update(header)
        first = stream.tell()
        for start, stop in _spans(header):
            stream.seek(first + max(start, (start + stop - _BLOCK) // 2))
            digest.update(stream.read(min(_BLOCK, stop - start)))
    return digest.hexdigest()


def _spans(header: bytes) -> list[tuple[int, int]]:
    """Where the tensors stand behind the header; none in a damaged file, which cannot be loaded anyway."""
    try:
        entries = json.loads(header)
        return sorted(tuple(entry["data_offsets"]) for name, entry in entries.items() if name != "__metadata__")
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


def _memory_path() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ragcache" / "weights.json"


def _read_json(path: Path) -> dict[str, list[str]]:
    """Mark and digest of files by path; what an older version remembered by less is forgotten."""
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {name: one for name, one in known.items() if isinstance(one, list)} if isinstance(known, dict) else {}


def _write_json(path: Path, known: dict[str, list[str]]) -> None:
    """Remember the digests; a home that cannot be written to only costs the next start its memory."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(known))
        temporary.replace(path)
    except OSError:
        return
