"""What was sent and what became of it, in a file of this machine: what a later run goes on from.

A process may die between any two statements. What it had sent without noting it is sent again
under the same Idempotency-Key, and answered with the document that stands already.
"""

import fcntl
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self
from uuid import UUID

from cli.errors import EXIT_FAILED, CommandError
from cli.ingest.found import Found
from cli.ingest.reasons import error_message

_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (
  identity TEXT PRIMARY KEY, sha256 TEXT NOT NULL, filename TEXT NOT NULL, owner BLOB,
  document_id TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
  number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, path BLOB NOT NULL, run INTEGER NOT NULL,
  fingerprint TEXT, state TEXT NOT NULL, code TEXT, message TEXT, external_id TEXT,
  identity TEXT, size_bytes INTEGER
);
CREATE TEMP TABLE documents (
  id TEXT PRIMARY KEY, state TEXT, pages INTEGER, code TEXT, message TEXT, seconds REAL
) WITHOUT ROWID;
"""

PENDING: Final = "pending"
SENT: Final = "sent"
DUPLICATE: Final = "duplicate"
REFUSED: Final = "refused"
# By the API; told apart from what was refused here, which is looked at anew each time.
REJECTED: Final = "rejected"
SKIPPED: Final = "skipped"
FAILED: Final = "failed"
# What is not tried again as long as the file is the same: its document stands, or the API has said
# that it never will.
_DONE: Final = frozenset({SENT, DUPLICATE, REJECTED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        path: its bytes, as the file system or the archive has them.
        state: one of those that are named above.
        document_id: of the document that stands for it.
        code: why there is none.
        message: likewise, for people.
        external_id: the sender's own.
        size_bytes: None where it was not read.
        sha256: likewise.
        document: what the API has said of the document last: state, pages, code, message,
            seconds.
    """

    path: bytes
    state: str
    document_id: str | None
    code: str | None
    message: str | None
    external_id: str | None
    size_bytes: int | None
    sha256: str | None
    document: tuple[str, int | None, str | None, str | None, float | None] | None


_OUTCOME_COLUMNS: Final = (
    "path",
    "state",
    "document_id",
    "code",
    "message",
    "external_id",
    "size_bytes",
    "sha256",
)


class Journal:
    """The file; threads may use it at once. Every method raises ``CommandError``."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it.

        Raises:
            CommandError: it cannot be used, or another process does.
        """
        self.path = path
        # One statement at a time, and none while it is closed, which SQLite does not outlive. Taken
        # twice by a thread that leaves the rows it was reading.
        self._lock = threading.RLock()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = _hold(path)
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # A process that dies loses nothing; a machine that does may lose the last lines, which
            # the Idempotency-Keys make up for.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
            version = int(self._fact("version") or self._set_fact("version", str(_VERSION)))
            self.run = int(self._fact("run") or 0) + 1
            self._set_fact("run", str(self.run))
        if version != _VERSION:
            raise CommandError(
                f"{path} was written by another release of Pagefleet",
                "Name another file with --journal.",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it; threads that still use it find it so, by a ``CommandError``."""
        with self._lock:
            self._database.close()
            self._held.close()

    def batch_key(self) -> str:
        """Return the Idempotency-Key of the batch, the same in every run."""
        with self._errors():
            return self._fact("batch_key") or self._set_fact("batch_key", secrets.token_hex(16))

    def batch_options(self, options: str) -> str:
        """Return the options that the batch was created with; ``options``, if it was not yet."""
        with self._errors():
            return self._fact("batch_options") or self._set_fact("batch_options", options)

    def batch_id(self) -> UUID | None:
        """Return the batch, if it was created."""
        with self._errors():
            known = self._fact("batch_id")
        return None if known is None else UUID(known)

    def note_batch(self, batch_id: UUID) -> None:
        with self._errors():
            self._set_fact("batch_id", str(batch_id))

    def begin(self, found: Found) -> bytes | None:
        """Note that a file is there; None: it is done, else its key for what follows.

        A key that comes twice in one run is told apart by a number.
        """
        key, path = _bytes(found.key), _bytes(found.path)
        with self._errors():
            number = 1
            while (row := self._entry(key)) is not None and row[0] == self.run:
                number += 1
                key = _bytes(found.key) + b"\0#%d" % number
            if row is not None and row[2] in _DONE and found.fingerprint in {row[1]} - {None}:
                self._database.execute("UPDATE entries SET run = ? WHERE key = ?", (self.run, key))
                return None
            self._database.execute(
                "INSERT INTO entries (key, path, run, fingerprint, state, external_id)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET path = excluded.path,"
                " run = excluded.run, fingerprint = excluded.fingerprint, state = excluded.state,"
                " external_id = excluded.external_id, code = NULL, message = NULL,"
                " identity = NULL, size_bytes = NULL",
                (key, path, self.run, found.fingerprint, PENDING, found.fields.external_id),
            )
        return key

    def claim(
        self, key: bytes, *, identity: str, sha256: str, filename: str, size_bytes: int
    ) -> str:
        """Note what a file holds; return the name that it is sent under.

        The first of a run to claim a content owns it, and the others are duplicates of it. The
        name is that of the first file of this content in any run, whichever of them is sent.
        """
        with self._errors(), self._transaction():
            self._database.execute(
                "INSERT INTO contents (identity, sha256, filename, owner) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (identity) DO UPDATE SET owner = excluded.owner"
                " WHERE document_id IS NULL"
                " AND (SELECT run FROM entries WHERE key = contents.owner) IS NOT ?",
                (identity, sha256, filename, key, self.run),
            )
            self._database.execute(
                "UPDATE entries SET identity = ?, size_bytes = ? WHERE key = ?",
                (identity, size_bytes, key),
            )
            (name,) = self._database.execute(
                "SELECT filename FROM contents WHERE identity = ?", (identity,)
            ).fetchone()
        return str(name)

    def document_of(self, identity: str) -> UUID | None:
        """Return the document of a content that was claimed, if it has one."""
        with self._errors():
            (document_id,) = self._database.execute(
                "SELECT document_id FROM contents WHERE identity = ?", (identity,)
            ).fetchone()
        return None if document_id is None else UUID(document_id)

    def note_document(self, key: bytes, *, identity: str, document_id: UUID) -> str:
        """Note that a document stands for a file; return ``sent``, or ``duplicate``."""
        with self._errors(), self._transaction():
            self._database.execute(
                "UPDATE contents SET document_id = ?, owner = coalesce(owner, ?)"
                " WHERE identity = ?",
                (str(document_id), key, identity),
            )
            (owner,) = self._database.execute(
                "SELECT owner FROM contents WHERE identity = ?", (identity,)
            ).fetchone()
            state = SENT if owner == key else DUPLICATE
            self._database.execute("UPDATE entries SET state = ? WHERE key = ?", (state, key))
        return state

    def note_failure(self, key: bytes, *, state: str, code: str, message: str) -> None:
        with self._errors(), self._transaction():
            self._database.execute(
                "UPDATE entries SET state = ?, code = ?, message = ? WHERE key = ?",
                (state, code, message, key),
            )
            # Another file of the same content may still be sent.
            self._database.execute(
                "UPDATE contents SET owner = NULL WHERE owner = ? AND document_id IS NULL", (key,)
            )

    def forget_absent(self) -> None:
        """Drop files that are not there any more and for which no document stands."""
        with self._errors():
            self._database.execute(
                "DELETE FROM entries WHERE run < ? AND state NOT IN (?, ?)",
                (self.run, SENT, DUPLICATE),
            )

    def learn(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take what the API reports of the documents of the batch."""
        with self._errors(), self._transaction():
            self._database.execute("DELETE FROM documents")
            self._database.executemany(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (
                        record["document_id"],
                        record["state"],
                        record["pages"],
                        record["error_code"],
                        error_message(record),
                        record["seconds"],
                    )
                    for record in records
                ),
            )

    def counts(self) -> Counter[str]:
        """Return how many files this and earlier runs have found, by state."""
        with self._errors():
            rows = self._database.execute("SELECT state, count(*) FROM entries GROUP BY state")
            return Counter(dict(rows.fetchall()))

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every file once, in the order in which they were found first."""
        with self._errors():
            rows = self._database.execute(
                "SELECT e.path, e.state, c.document_id, e.code, e.message, e.external_id,"
                " e.size_bytes, c.sha256, d.id, d.state, d.pages, d.code, d.message, d.seconds"
                " FROM entries e"
                " LEFT JOIN contents c ON c.identity = e.identity"
                " LEFT JOIN documents d ON d.id = c.document_id ORDER BY e.number"
            )
            for row in rows:
                told = None if row[8] is None else row[9:]
                yield Outcome(**dict(zip(_OUTCOME_COLUMNS, row[:8], strict=True)), document=told)

    def _entry(self, key: bytes) -> tuple[int, str | None, str] | None:
        row: tuple[int, str | None, str] | None = self._database.execute(
            "SELECT run, fingerprint, state FROM entries WHERE key = ?", (key,)
        ).fetchone()
        return row

    def _fact(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _set_fact(self, name: str, value: str) -> str:
        self._database.execute(
            "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = ?",
            (name, value, value),
        )
        return value

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except (sqlite3.Error, OSError) as error:
                raise CommandError(
                    f"the journal {self.path} cannot be used: {error}",
                    "See that its folder can be written and has room, or name another file with"
                    " --journal.",
                ) from error


def _bytes(name: str) -> bytes:
    """Return the bytes of a name as the file system gave them."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # of JSON, which can escape what is no character
        return name.encode("utf-8", "backslashreplace")


def _hold(path: Path) -> IO[bytes]:
    """Keep other processes from the journal until the file that is returned is closed."""
    held = path.with_name(f"{path.name}.lock").open("ab")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        held.close()
        raise CommandError(
            f"another process ingests the same, with the journal {path}",
            "Wait for it to end, or end it; it loses nothing.",
            exit_code=EXIT_FAILED,
        ) from error
    return held
