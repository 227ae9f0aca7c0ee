"""The catalogue's file: SQLite, opened with care, read and written by any number of threads and processes."""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar
from urllib.parse import quote

from ragcache.errors import (
    DISTRIBUTION,
    IndexFormat,
    InvalidArgument,
    RagCacheError,
    StorageFull,
    UnusableIndex,
    ingest,
    remedy,
)
from ragcache.store.attachment import is_replica
from ragcache.store.disk import Disk
from ragcache.store.encryption import bind_encryption, sqlcipher
from ragcache.store.local import hold_turn
from ragcache.store.schema import MIGRATIONS, DamagedRow

_Row = TypeVar("_Row")

_APPLICATION = 0x52414743  # "RAGC" in the file's header, so that another program's database is refused
_WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.01
_HEADER_BYTES = 100
_REFUSED = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
_UNOPENED = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_PERM")


class Database:
    """Tables of the newest form, for any number of threads.

    Every transaction is durable once it is committed. Several processes may share the file; each waits
    up to 30 s for another's write. An account that may only read the file, or its folder, writes nothing. A new file is
    encrypted where the environment names a key.

    Parameters
    ----------
    path : str or Path
        The file, created if absent, readable by its owner only; its folder must exist.
    durable : bool
        Whether what was written survives a crash of the machine.
    read_only : bool
        Whether nothing is ever written, for a process that looks things up while others write. The file must be there,
        in the newest form.
    disk : Disk, optional
        Begins and ends transactions.

    Raises
    ------
    IndexFormat
        The file is no catalogue, is damaged, or was made by a newer version. Every verb may raise it
        when it meets damage.
    StorageFull
        The disk refused a write; the transaction left no trace. Every verb that writes may raise it.
    KeyMismatch
        Its folder is encrypted by another key than the environment names, or it is not.
    UnusableIndex
        The file cannot be opened, or another process kept it locked for too long; or, of any verb, it was closed.
    """

    def __init__(
        self, path: str | Path, *, durable: bool = True, read_only: bool = False, disk: Disk | None = None
    ) -> None:
        self.path = Path(path)
        self._disk = disk or Disk()
        self._sync = "FULL" if durable else "OFF"
        self._lock = RLock()
        self._closed = False
        self.writable = not read_only and is_writable(self.path)
        #: What seals the files of the folder; None where it is not encrypted.
        self.encryption = bind_encryption(self.path.parent, new=self.writable and not self.path.exists())
        self._sqlite = sqlite3 if self.encryption is None else sqlcipher()
        self._mark = self._state()
        self._connection = self._connect()
        try:
            self._prepare()
        except RagCacheError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; whoever uses the catalogue afterwards is told so."""
        with self._lock:
            self._closed = True
            self._connection.close()

    def truncate_log(self) -> None:
        """Fold the write-ahead log in and empty it, since it holds what was written before it was overwritten.

        Where another process reads meanwhile, the log is emptied by whoever closes the file last.
        """
        with self._lock, self._turn():
            self.read("PRAGMA wal_checkpoint(TRUNCATE)")

    def rows(self, make: Callable[..., _Row], query: str, *parameters: Any) -> list[_Row]:
        """What a query's rows say, each made into a value that checks itself."""
        try:
            return [make(*values) for values in self.read(query, *parameters)]
        except DamagedRow as error:
            if error.remedy is None:
                raise self._damaged(error) from error
            raise IndexFormat(
                f"{error} in {self.path}, so it was changed on the disk; run `{ingest(self.path.parent)}`, which "
                f"{error.remedy}"
            ) from error
        except (ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a query, for other tables of this file too."""
        with self._lock, self._guard():
            self._follow()
            return self._connection.execute(query, parameters).fetchall()

    def copy_to(self, path: Path) -> None:
        """Write all of it, as it is at one moment, into a new file, encrypted as this one is."""
        if path.exists():
            raise InvalidArgument(f"{path} exists already; name a file that does not.")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self.read("VACUUM INTO ?", str(path))

    def hold_alone(self) -> None:
        """Keep everybody else out until it is closed.

        Raises
        ------
        UnusableIndex
            Somebody has it open, in this process or another one.
        """
        self.read("PRAGMA busy_timeout = 1000")
        self.read("PRAGMA locking_mode = EXCLUSIVE")
        try:
            self.read("PRAGMA journal_mode = DELETE")  # granted to whoever is alone
            with self.transaction() as connection:
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        except UnusableIndex as error:
            raise UnusableIndex(
                f"the index {self.path.parent} is open in another process; close it there and repeat the command."
            ) from error

    def check_file(self) -> list[str]:
        """What SQLite finds wrong with the file as a whole."""
        found = [str(text) for (text,) in self.read("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else [f"{self.path}: {text}" for text in found]

    def check_writable(self) -> None:
        """Refuse whoever may only read the file, before anything beside it is changed.

        Raises
        ------
        StorageFull
            The message says whose turn it is.
        """
        if not self.writable:
            raise StorageFull(
                f"{self.path} may only be read by this account; repeat the command as the one that ingests."
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, for other tables of this file too; an error leaves no trace of it."""
        self.check_writable()
        with self._lock, self._turn(), self._guard(), self._connection as connection:  # rolls back on any error
            self._disk.begin(connection)
            yield connection
            self._disk.commit(connection)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Commit, or fold the log in, while no other process does either.

        SQLite's locks let one process commit while another folds the log in. Before 3.51.3 that damages the file where
        the log had just been folded in by a third (sqlite.org/wal.html, "The WAL-Reset Bug").
        """
        with ExitStack() as turn:
            try:
                turn.enter_context(hold_turn(self.path.with_suffix(".lock"), _WAIT_SECONDS))
            except TimeoutError as error:
                raise UnusableIndex(f"others keep {self.path} locked ({error}); repeat the command.") from error
            except OSError as error:
                raise self._refused(error) from error
            yield

    @contextmanager
    def _guard(self) -> Iterator[None]:
        if self._closed:
            folder = self.path.parent
            raise UnusableIndex(f"the index {folder} was closed; open it again with RagCache.open({str(folder)!r}).")
        try:
            yield
        except self._sqlite.ProgrammingError:  # our mistake, not the file's
            raise
        except self._sqlite.IntegrityError as error:
            raise InvalidArgument(f"the catalogue has no place for this row ({error}).") from error
        except self._sqlite.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> RagCacheError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(_REFUSED):
            return self._refused(error)
        if name.startswith(_UNOPENED):
            return UnusableIndex(f"the catalogue {self.path} cannot be opened now ({error}); repeat the command.")
        return self._damaged(error)

    def _refused(self, error: Exception) -> StorageFull:
        reason = getattr(error, "strerror", None) or error
        return StorageFull(f"the disk refused a write to {self.path} ({reason}); {remedy(error)}.")

    def _damaged(self, error: Exception | str) -> IndexFormat:
        return IndexFormat(
            f"{self.path} is damaged or no catalogue ({error}); restore it from a backup, or delete the index "
            "and ingest again."
        )

    def _state(self) -> tuple[object, ...]:
        """What tells a reader that leaves no lock in the file that it was written to; nothing for all others."""
        if self.writable:
            return ()
        try:
            about = self.path.stat()
        except OSError:
            return ()  # opening it says why
        return about.st_mtime_ns, about.st_size, Path(f"{self.path}-wal").exists()

    def _follow(self) -> None:
        """Open the file again where it has changed under a reader that SQLite does not tell."""
        if not self.writable and (state := self._state()) != self._mark:
            connection = self._connect()  # or the old one stays, and the next query tries again
            self._connection.close()
            self._connection, self._mark = connection, state

    def _connect(self) -> sqlite3.Connection:
        try:
            if self.writable:
                self._create()
            size = self.path.stat().st_size
            if not os.access(self.path, os.R_OK):  # SQLite would not say why
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            if isinstance(error, RagCacheError):
                raise
            raise UnusableIndex(
                f"the catalogue {self.path} cannot be opened ({error.strerror}); {remedy(error)}."
            ) from error
        if 0 < size < _HEADER_BYTES:  # SQLite would take it for an empty file and overwrite it
            raise self._damaged(f"it has only {size} bytes")
        with self._guard():
            connection: sqlite3.Connection = self._sqlite.connect(
                self._address(), uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            if self.encryption is not None:
                self.encryption.unlock(connection)
        connection.text_factory = _text  # what is no text any more fails its row's checksum, not the query
        return connection

    def _create(self) -> None:
        """Make the file if there is none, for its owner only; its log inherits the mode.

        One that is there stays closed: to close it would give up the locks of others in this process who have it open.
        """
        with self._turn():
            if not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))

    def _address(self) -> str:
        """The file as SQLite is to open it.

        An account that cannot write beside the file cannot join those who do; without a log there are none.
        """
        alone = not is_writable(self.path) and not Path(f"{self.path}-wal").exists()
        how = "" if self.writable else "?mode=ro&immutable=1" if alone else "?mode=ro"
        return f"file:{quote(str(self.path.absolute()))}{how}"

    def _check_owner(self) -> None:
        tables = self.read("SELECT COUNT(*) FROM sqlite_master")[0][0]
        if tables and self.read("PRAGMA application_id")[0][0] != _APPLICATION:
            raise IndexFormat(f"{self.path} is another program's database; choose another folder for the index.")

    def _prepare(self) -> None:
        self._check_owner()
        if not self.writable:
            self._check_migrated()
            return
        self._use_write_ahead_log()
        for pragma in (f"synchronous = {self._sync}", "foreign_keys = ON", "secure_delete = ON"):
            self.read(f"PRAGMA {pragma}")
        with self.transaction() as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied REAL)")
            self._migrate(connection)

    def _use_write_ahead_log(self) -> None:
        """Change a new file to write-ahead logging.

        Of several who do so at once SQLite turns all but one away without waiting: it holds a read lock by then.
        """
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self.read("PRAGMA journal_mode = WAL")
            except UnusableIndex:
                if time.monotonic() > until:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _check_migrated(self) -> None:
        """Refuse a file that would have to be changed first."""
        applied = self._applied()
        self._check_known(applied)
        if lacking := [migration.__name__ for migration in MIGRATIONS if migration.__name__ not in applied]:
            raise IndexFormat(
                f"{self.path} was made by an older version (it lacks {lacking[0]}), and may only be read here; open it "
                f"once as the account that ingests, say by `{ingest(self.path.parent)}`."
            )

    def _applied(self) -> set[str]:
        return {name for (name,) in self.read("SELECT name FROM migrations")}

    def _migrate(self, connection: sqlite3.Connection) -> None:
        applied = self._applied()
        self._check_known(applied)
        for migration in MIGRATIONS:
            if migration.__name__ not in applied:
                migration(connection)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (migration.__name__, time.time()))

    def _check_known(self, applied: set[str]) -> None:
        unknown = applied - {migration.__name__ for migration in MIGRATIONS}
        if unknown:
            raise IndexFormat(
                f"{self.path} was made by a newer version (it has {min(unknown)}); upgrade with "
                f"`pip install --upgrade {DISTRIBUTION}`."
            )


def is_writable(path: Path) -> bool:
    """Whether a file can be written to, or made: SQLite and others need its folder, too."""
    if is_replica(path.parent):
        return False
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
