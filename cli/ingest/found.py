"""What a source of files yields: one record for every file, also for those that cannot be sent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cli.ingest.content import Content


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not sent.

    Attributes:
        code: for programs.
        message: for people.
        is_skip: nobody asked for this very file, and it is no document: no failure.
    """

    code: str
    message: str
    is_skip: bool = False


@dataclass(frozen=True, slots=True)
class SentFields:
    """What goes with a file: texts of JSON objects, and the sender's own id."""

    options: str | None = None
    metadata: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One file that has to be accounted for.

    Exactly one of ``refusal``, ``content`` and ``load`` is given.

    Attributes:
        key: names it within its source, the same from run to run; may hold what is no UTF-8.
        path: the same for people.
        name: what the document is to be called.
        fingerprint: equal as long as its bytes are; None: nothing says so.
        refusal: why it cannot be sent.
        content: its bytes.
        load: fetches its bytes; called before the next file is asked for, or never.
        is_named: the user named this very file.
        fields: what goes with it.
    """

    key: str
    path: str
    name: str
    fingerprint: str | None = None
    refusal: Refusal | None = None
    content: Content | None = None
    load: Callable[[], Content] | None = None
    is_named: bool = False
    fields: SentFields = field(default_factory=SentFields)

    def fetch(self) -> Content:
        """Return the bytes of a file that is not refused.

        Raises:
            ContentError: they are not to be had.
        """
        content = self.content or (self.load and self.load())
        assert content is not None  # noqa: S101 - a record without a refusal has one
        return content


class Source(Protocol):
    """Where files come from: a folder, a manifest, an archive."""

    def scan(self) -> Iterator[Found]:
        """Yield each file once, in an order that does not depend on the run.

        Raises:
            CommandError: the source itself cannot be read.
        """
        ...


def refused(
    key: str, code: str, message: str, *, is_skip: bool = False, fields: SentFields | None = None
) -> Found:
    """Return a record of a file that cannot be sent."""
    return Found(
        key=key,
        path=key,
        name=key,
        refusal=Refusal(code, message, is_skip),
        fields=fields or SentFields(),
    )
