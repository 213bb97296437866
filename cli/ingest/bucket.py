"""A bucket as a source: the API finds its objects, and this machine only watches.

Nothing is lost when the command is stopped: run again, it finds its batch and watches on.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import UUID

import typer

from cli.api_views import BatchStatus
from cli.client import ApiClient
from cli.console import notices, output, print_json_line, shown
from cli.counting import count_of
from cli.errors import EXIT_FAILED, EXIT_USAGE, ApiError, CommandError
from cli.ingest.batch import batch_of
from cli.ingest.dry_run import Plan, estimate_seconds
from cli.ingest.journal import Journal
from cli.ingest.reasons import error_message
from cli.ingest.report import FAILED_DOCUMENTS, SHOWN_FAILURES, Written
from cli.ingest.summary import say_how_to_go_on, say_stopped
from cli.progress import LINE_EVERY_S, progress_bar
from cli.status import watch_batch
from cli.stop_signals import told_when_stopped
from cli.watch import follow
from cli.whole_file import whole_file

SCHEME: Final = "s3://"
_MANIFEST_ENDINGS: Final = frozenset({".csv", ".ndjson", ".jsonl"})


@dataclass(slots=True)
class BucketReport(Written):
    """A report that was written; ``failed`` are the first records of documents that failed."""

    failed: list[Mapping[str, Any]] = field(default_factory=list)


def source_of_address(address: str) -> dict[str, Any]:
    """Return what an address names, as the API takes it: a manifest by its ending, else a prefix.

    Raises:
        CommandError: it names no bucket.
    """
    bucket, _, key = address.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise CommandError(
            f"{shown(address)} is no address of a bucket",
            "Write it as s3://bucket/prefix, or s3://bucket/manifest.csv.",
            exit_code=EXIT_USAGE,
        )
    if PurePosixPath(key).suffix.lower() in _MANIFEST_ENDINGS:
        return {"manifest": {"bucket": bucket, "key": key}}
    return {"prefix": {"bucket": bucket, "prefix": key}}


def plan_bucket(
    client: ApiClient, name: str, options: Mapping[str, Any], source: Mapping[str, Any]
) -> Plan:
    """Count what a batch would be filled with, request by request.

    Raises:
        ApiError: the API refuses, or does not answer.
    """
    plan = Plan()
    cursor = None
    with progress_bar("files") as bar:
        while True:
            part = client.plan_batch(name, options=options, source=source, cursor=cursor)
            plan.files += part.files
            plan.size_bytes += part.size_bytes
            plan.pages += part.pages
            plan.estimated_pages += part.estimated_pages
            plan.skipped += part.skipped
            plan.refused["source_not_found"] += part.missing
            bar.show(name, plan.files, None)
            cursor = part.next_cursor
            if cursor is None:
                break
    plan.seconds = estimate_seconds(plan, client)
    return plan


def fill_from_bucket(
    client: ApiClient,
    name: str,
    options: Mapping[str, Any],
    source: Mapping[str, Any],
    journal: Path,
    *,
    report: Path,
    wait: bool,
    as_json: bool,
) -> None:
    """Let the API fill a batch, watch it find the objects, and write a report.

    Args:
        client: of the API.
        name: of the batch.
        options: of its documents.
        source: what it is filled from; see ``source_of_address``.
        journal: knows the batch, once there is one.
        report: where the report goes, without its endings.
        wait: whether to go on until all is read.
        as_json: whether each document of the report goes to standard output too.

    Raises:
        ApiError: the API refuses, or does not answer.
        CommandError: the batch was begun with other options, or the report cannot be written.
        Exit: some objects were not found, or documents failed.
    """
    with Journal(journal) as kept:
        batch_id = batch_of(client, kept, name, options, source)
    with told_when_stopped(lambda: _tell_stopped(batch_id, as_json=as_json)):
        listed = watch_listing(client, batch_id)
        if wait:
            listed = watch_batch(client, listed, as_json=False)
    written = write_bucket_report(client, batch_id, report, as_json=as_json)
    summarize(listed, written, as_json=as_json)


def _tell_stopped(batch_id: UUID, *, as_json: bool) -> None:
    """Say what goes on where the watching was stopped."""
    if as_json:
        print_json_line({
            "batch_id": str(batch_id),
            "report_csv": None,
            "report_ndjson": None,
            "stopped": True,
        })
    say_stopped(f"Batch {batch_id} goes on without this command.")
    say_how_to_go_on("to watch on, and for the report.")


def watch_listing(client: ApiClient, batch_id: UUID) -> BatchStatus:
    """Follow a batch until all of its objects are found; return where it stands then.

    Raises:
        CommandError: the API refused, or has not answered for a minute.
    """
    line_at = time.monotonic()
    try:
        with progress_bar("objects") as bar:
            for batch in follow(
                lambda: client.batch(batch_id), is_final=lambda each: each.state != "listing"
            ):
                found = batch.found or 0
                documents = count_of(batch.documents, "document")
                note = f"{documents}, {batch.documents_final:,} of them read"
                bar.show(batch.name, found, None, note=note)
                now = time.monotonic()
                if not bar.is_shown and now - line_at >= LINE_EVERY_S:
                    line_at = now
                    bar.print(f"{batch.name}: {count_of(found, 'object')} found; {note}")
    except ApiError as error:
        raise CommandError(
            error.message,
            f"The batch goes on by itself; run the command again to watch. {error.remedy}".strip(),
        ) from error
    return batch


def write_bucket_report(
    client: ApiClient, batch_id: UUID, stem: Path, *, as_json: bool
) -> BucketReport:
    """Write both files as the API reports them, each whole or not at all.

    Args:
        client: of the API.
        batch_id: of the batch.
        stem: the files are called so, with an ending of their own.
        as_json: whether each document goes to standard output too.

    Raises:
        ApiError: the API refuses, or does not answer.
        CommandError: they cannot be written.
    """
    csv, ndjson = (stem.with_name(f"{stem.name}.{ending}") for ending in ("csv", "ndjson"))
    written = BucketReport(csv, ndjson)
    try:
        with whole_file(csv) as file:
            file.writelines(line.encode() for line in client.report(batch_id, report_format="csv"))
        with whole_file(ndjson) as file:
            for line in client.report(batch_id, report_format="ndjson"):
                file.write(line.encode())
                record = json.loads(line)
                _count(written, record)
                if as_json:
                    print_json_line(record)
    except OSError as error:
        raise CommandError(
            f"the report cannot be written to {shown(stem)}: {error.strerror}",
            "Name another place with --report.",
        ) from error
    return written


def summarize(batch: BatchStatus, written: BucketReport, *, as_json: bool) -> None:
    """Say what came of the bucket; exit 1 where not all of it did.

    Raises:
        Exit: some objects were not found, or documents failed.
    """
    found = batch.found or 0
    if as_json:
        print_json_line({
            "batch_id": str(batch.id),
            "found": found,
            "duplicates": batch.duplicates,
            "skipped": batch.skipped,
            "by_state": dict(written.by_state),
            "failures": written.failures,
            "error": batch.error_code,
            "report_csv": str(written.csv),
            "report_ndjson": str(written.ndjson),
            "stopped": False,
        })
    else:
        _show_summary(batch, written, found)
    if batch.error_code is not None:
        notices().print(f"not all objects were found: {batch.error_message}", markup=False)
        notices().print(f"  `pagefleet retry {batch.id}` goes on when that is put right.")
    if written.failures or batch.error_code is not None:
        raise typer.Exit(EXIT_FAILED)


def _show_summary(batch: BatchStatus, written: BucketReport, found: int) -> None:
    counted = ", ".join(f"{count:,} {state}" for state, count in sorted(written.by_state.items()))
    console = output()
    console.print(
        f"{count_of(found, 'object')}, {batch.duplicates:,} of them twice, and {batch.skipped:,}"
        f" that are no documents: {counted or 'none'}",
        markup=False,
    )
    written.show_places(batch.id)
    for each in written.failed:
        name = shown(str(each["source"] or each["filename"]))
        notices().print(f"{name}: {each['state']}: {each['error_code']}", markup=False)
    written.show_reasons()


def _count(written: BucketReport, record: Mapping[str, Any]) -> None:
    written.add({**record, "message": error_message(record)})
    if record["state"] in FAILED_DOCUMENTS and len(written.failed) < SHOWN_FAILURES:
        written.failed.append(record)
