"""Two processes that ingest one folder encode each chunk once between them."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from faults.small import Letters

from ragcache import RagCache

COUNT, RECIPE = 16, "in-document(window=2048)"
INGESTING = """
    import sys, time
    from pathlib import Path
    from faults.small import Letters
    from ragcache import RagCache
    from ragcache.model.reader import Reader
    import ragcache.index.index as module
    module.capacity = lambda device: 1  # one chunk a batch
    encode, made = Reader.encode_all, []
    def counted(self, todo):
        made.extend(todo)
        time.sleep(0.05)
        return encode(self, todo)
    with RagCache.open(sys.argv[1], embedder=Letters(), create=False) as rag:
        Reader.encode_all = counted  # not before: the model is tried out when it is loaded
        Path(sys.argv[3]).touch()
        while not (Path(sys.argv[3]).parent / "go").exists():
            time.sleep(0.01)
        report = rag.ingest(sys.argv[2])
    print(len(made), report.encoded.get("in-document(window=2048)", 0), report.chunks)
"""


def test_two_processes_encode_each_chunk_once(tmp_path: Path, checkpoint: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number:02}.txt").write_text(f"House number {number} is painted in a colour of its own.")
    index = tmp_path / "index"
    with RagCache.open(index, model=str(checkpoint), embedder=Letters()) as rag:
        rag.index.prefix()
    paths = [str(Path(__file__).parents[1]), *sys.path]
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(INGESTING), index, folder, tmp_path / f"ready{n}"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, stdout=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    while not all((tmp_path / f"ready{n}").exists() for n in range(2)):
        assert all(one.poll() is None for one in running)
        time.sleep(0.05)  # they need the processor
    (tmp_path / "go").touch()
    said = [list(map(int, one.communicate(timeout=120)[0].split())) for one in running]
    assert sum(made for made, _, _ in said) == COUNT
    assert [made for made, _, _ in said] == [reported for _, reported, _ in said]
    with RagCache.open(index, embedder=Letters()) as rag:
        assert len(rag.index.catalog.encoded(RECIPE)) == COUNT
        assert len(rag._vectors.ids()) == COUNT


def test_a_killed_process_keeps_nobody_waiting(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from ragcache.store import hold_turn
with hold_turn(Path({str(tmp_path / "lock")!r})):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    from ragcache.store import hold_turn

    with hold_turn(tmp_path / "lock"):
        pass
