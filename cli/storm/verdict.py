"""Whether a storm cost anything: what was sent beside what became of it. Pure."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from uuid import UUID

FINAL_STATES: Final = ("succeeded", "partly_succeeded", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a document ends with.

    Attributes:
        state: the final one.
        error_code: where it failed.
        digest: of the result without what differs between two runs; None where there is none.
    """

    state: str
    error_code: str | None = None
    digest: str | None = None


@dataclass(slots=True)
class Sent:
    """What a client knows of one document.

    Attributes:
        key: its Idempotency-Key.
        sample: the file that it sent.
        ids: what the API called the document, in every answer that arrived; none: never accepted.
        tries: requests that were made.
        refusal: why the client gave up.
    """

    key: str
    sample: str
    ids: list[UUID] = field(default_factory=list)
    tries: int = 0
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What the database knows of one document.

    Attributes:
        id: of its row.
        key: its Idempotency-Key.
        state: where it stands.
        error_code: of its row.
        final_moves: how often it moved to a final state, as a trigger counted.
        digest: of its result, as for ``Outcome``.
    """

    id: UUID
    key: str | None
    state: str
    error_code: str | None
    final_moves: int
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that broke; ``document`` is its id, or the key where it has none."""

    document: str
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a storm came to; counts are of documents."""

    counts: Mapping[str, int]
    problems: Sequence[Problem]

    @property
    def is_held(self) -> bool:
        return not self.problems

    @property
    def word(self) -> str:
        return "HELD" if self.is_held else "BROKEN"

    def record(self) -> dict[str, Any]:
        """Return it for JSON."""
        problems = [asdict(each) for each in self.problems]
        return {"verdict": self.word, "counts": dict(self.counts), "problems": problems}


def judge(
    sent: Sequence[Sent],
    found: Sequence[Found],
    stuck: Sequence[Problem],
    *,
    expected: Mapping[str, Outcome],
) -> Verdict:
    """Compare what was sent with what became of it.

    Args:
        sent: every document that clients tried to send.
        found: every document of this storm in the database.
        stuck: rows of work that somebody should have looked at long ago.
        expected: for each sample what it comes to without faults.
    """
    rows = {row.id: row for row in found}
    problems = [
        *(problem for each in sent for problem in _of_sent(each, rows, expected)),
        *_of_rows(found, {each.key for each in sent}),
        *stuck,
    ]
    by_what = Counter(problem.what for problem in problems)
    states = Counter(row.state for row in found)
    counts = {
        "sent": len(sent),
        "accepted": sum(bool(each.ids) for each in sent),
        "requests": sum(each.tries for each in sent),
        **{state: states[state] for state in FINAL_STATES},
        "final exactly once": sum(row.final_moves == 1 for row in found),
        "as without faults": sum(_is_right(each, rows, expected) for each in sent),
        **{what: by_what[what] for what in _ALL_PROBLEMS},
    }
    return Verdict(counts, problems)


def comparable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without what differs between two runs: its document's id, and seconds."""
    kept = {name: value for name, value in result.items() if name != "document_id"}
    kept["usage"] = _without_seconds(result["usage"])
    kept["pages"] = [_without_seconds(page) for page in result["pages"]]
    return kept


def digest_of(kept: Mapping[str, Any]) -> str:
    """Return what two equal results have in common and no others."""
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _without_seconds(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "seconds"}


NOT_ACCEPTED: Final = "not accepted"
LOST: Final = "lost"
TWICE: Final = "accepted twice"
NOT_FINAL: Final = "not final"
NOT_ONCE: Final = "not final exactly once"
WRONG_STATE: Final = "wrong state"
WRONG_RESULT: Final = "wrong result"
UNKNOWN: Final = "unknown to the client"
STUCK: Final = "stuck row"
_ALL_PROBLEMS: Final = (
    *(NOT_ACCEPTED, LOST, TWICE, NOT_FINAL, NOT_ONCE, WRONG_STATE, WRONG_RESULT, UNKNOWN, STUCK),
)


def _of_sent(
    sent: Sent, rows: Mapping[UUID, Found], expected: Mapping[str, Outcome]
) -> Iterator[Problem]:
    names = list(dict.fromkeys(sent.ids))
    if not names:
        yield Problem(sent.key, NOT_ACCEPTED, f"{sent.tries} requests; {sent.refusal}")
        return
    if len(names) > 1:
        yield Problem(sent.key, TWICE, f"one Idempotency-Key, documents {_listed(names)}")
    for each in names:
        row = rows.get(each)
        if row is None:
            yield Problem(str(each), LOST, f"accepted under {sent.key}, and there is no such row")
        elif row.state not in FINAL_STATES:
            yield Problem(str(each), NOT_FINAL, f"{sent.sample}: still {row.state}")
        else:
            yield from _of_final(row, sent.sample, expected[sent.sample])


def _of_final(row: Found, sample: str, expected: Outcome) -> Iterator[Problem]:
    if row.final_moves != 1:
        yield Problem(str(row.id), NOT_ONCE, f"{sample}: {row.final_moves} moves to a final state")
    if (row.state, row.error_code) != (expected.state, expected.error_code):
        yield Problem(
            str(row.id),
            WRONG_STATE,
            f"{sample}: {_shown(row.state, row.error_code)} instead of"
            f" {_shown(expected.state, expected.error_code)}",
        )
    elif row.digest != expected.digest:
        yield Problem(str(row.id), WRONG_RESULT, f"{sample}: another result than without faults")


def _of_rows(found: Sequence[Found], known: set[str]) -> Iterator[Problem]:
    keys = Counter(row.key for row in found)
    for row in found:
        if row.key not in known:
            yield Problem(str(row.id), UNKNOWN, f"{row.state}, key {row.key}")
    for key, count in keys.items():
        if count > 1 and key in known:
            yield Problem(str(key), TWICE, f"{count} rows have this Idempotency-Key")


def _is_right(sent: Sent, rows: Mapping[UUID, Found], expected: Mapping[str, Outcome]) -> bool:
    row = rows.get(sent.ids[0]) if sent.ids else None
    return row is not None and expected[sent.sample] == Outcome(
        row.state, row.error_code, row.digest
    )


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


def _shown(state: str, error_code: str | None) -> str:
    return f"{state} ({error_code})" if error_code else state
