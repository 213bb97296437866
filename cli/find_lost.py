"""``pagefleet reconcile --prefix``: what no event told of."""

import threading
from typing import TYPE_CHECKING

import structlog

from cli.console import json_line, notices, print_json_line, quiet_logs, shown
from cli.counting import count_of
from cli.errors import EXIT_USAGE, CommandError
from cli.progress import Bar, progress_bar
from cli.s3_events import load_event_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.s3_events.event import ObjectEvent
    from api.take_in_object import Outcome, TakeIn

log = structlog.get_logger(__name__)

_SCHEME = "s3://"
_FULL_PAUSE_S = 5.0


def find_lost(address: str, *, as_json: bool) -> None:
    """List a prefix, and make documents of the objects that no event told of.

    Args:
        address: as ``s3://bucket/prefix``.
        as_json: whether counts go to standard output as JSON, after each page and at the end.

    Raises:
        CommandError: the address is none, no watched place lies there, or a server refuses.
    """
    from api.event_intake import opened_intake
    from api.find_lost_objects import find_lost_objects
    from api.take_in_object import Outcome
    from db.errors import DatabaseError
    from storage.errors import StorageError

    bucket, _, prefix = address.removeprefix(_SCHEME).partition("/")
    if not address.startswith(_SCHEME) or not bucket:
        raise CommandError(
            f"{address} is no address of a bucket",
            "Write it as s3://bucket/prefix.",
            exit_code=EXIT_USAGE,
        )
    settings = load_event_settings()
    if not any(place.overlaps(bucket, prefix) for place in settings.s3_events_watched):
        raise CommandError(
            f"no watched place lies in {address}",
            "Add it to PAGEFLEET_S3_EVENTS_WATCHED, which says whose documents they become.",
            exit_code=EXIT_USAGE,
        )
    quiet_logs()
    try:
        with progress_bar("objects") as bar, opened_intake(settings) as (intake, database, store):
            counts = find_lost_objects(
                bucket,
                prefix,
                store=store,
                transaction=database.transaction,
                take_in=patient(intake.take_in),
                after_page=lambda counts: _report(counts, address, bar, as_json=as_json),
            )
    except (DatabaseError, StorageError) as error:
        raise CommandError(str(error), "Run it again when that is put right.") from error
    if as_json:
        print_json_line(_record(counts, is_done=True))
    else:
        notices().print(f"Done: {_said(counts)}", markup=False)
    if refused := counts.get(Outcome.REFUSED, 0):
        raise CommandError(
            f"the store refused {count_of(refused, 'object')}, named above",
            "Let PAGEFLEET_S3_ACCESS_KEY_ID read them, and run it again.",
        )


def patient(take_in: "TakeIn") -> "TakeIn":
    """Wait for room while the system is full, and pass over what the store refuses.

    A listing has no queue to leave things in, and must not end at the same object each time.
    """
    from api.errors import ApiError
    from api.take_in_object import Outcome
    from storage.errors import SourceRefusedError

    def wait_and_take_in(event: "ObjectEvent") -> "Outcome":
        while True:
            try:
                return take_in(event)
            except SourceRefusedError as error:
                notices().print(
                    f"Refused: {shown(event.key)} ({error})", markup=False, soft_wrap=True
                )
                return Outcome.REFUSED
            except ApiError as error:
                if error.code != "system_full":
                    raise CommandError(
                        f"an object is refused: {error.code}",
                        "The batch of its place may be closed; see PAGEFLEET_S3_EVENTS_WATCHED.",
                    ) from error
                threading.Event().wait(_FULL_PAUSE_S)

    return wait_and_take_in


def _report(counts: "Mapping[Outcome, int]", address: str, bar: Bar, *, as_json: bool) -> None:
    bar.show(address, sum(counts.values()), None)
    if as_json:
        bar.print_result(json_line(_record(counts, is_done=False)))
    elif not bar.is_shown:
        notices().print(f"Listed so far: {_said(counts)}", markup=False)


def _record(counts: "Mapping[Outcome, int]", *, is_done: bool) -> dict[str, object]:
    by_outcome = {outcome.value: count for outcome, count in counts.items() if count}
    return {"is_done": is_done, "objects": sum(counts.values()), "by_outcome": by_outcome}


def _said(counts: "Mapping[Outcome, int]") -> str:
    said = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    return f"{count_of(sum(counts.values()), 'object')} ({said or 'none'})"
