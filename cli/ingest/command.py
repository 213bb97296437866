"""``pagefleet ingest``: the command."""

import hashlib
import json
import os
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

import typer

from cli.client import ApiClient
from cli.console import as_text, json_line, notices, output, print_json_line, shown
from cli.counting import count_of
from cli.errors import EXIT_FAILED, EXIT_USAGE, ApiError, CommandError
from cli.ingest.archives import ArchiveLimits
from cli.ingest.batch import batch_of
from cli.ingest.bucket import SCHEME, fill_from_bucket, plan_bucket, source_of_address
from cli.ingest.dry_run import Plan, estimate_seconds, look
from cli.ingest.found import Found, Source
from cli.ingest.journal import Journal
from cli.ingest.patience import Patience, StoppedError
from cli.ingest.report import Written, write_report
from cli.ingest.run import Tally, run
from cli.ingest.source import source_of
from cli.ingest.summary import summarize, tell_no_report, tell_unread, tell_unsent
from cli.ingest.upload import Sent, Uploader
from cli.progress import LINE_EVERY_S, Bar, progress_bar
from cli.secret_options import read_secret
from cli.status import ApiKeyFileOption, ApiKeyOption, ApiUrlOption, connect, watch_batch
from cli.stop_signals import sigterm_as_ctrl_c, told_when_stopped

_LIMITS: Final = ArchiveLimits()


def ingest(  # noqa: PLR0913 - each argument is an option of the command
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|MANIFEST|ARCHIVE|s3://BUCKET/PREFIX",
            help="A folder, a manifest (.csv, .ndjson), an archive (.zip, .tar, .tar.gz, .tar.xz);"
            " or what lies under a prefix of a bucket, or a manifest there.",
        ),
    ],
    *,
    batch: Annotated[
        str, typer.Option(metavar="NAME", help="The batch; with the same name it goes on.")
    ],
    options: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Options of its documents, such as '{\"dpi\": 300}'."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be sent, and send nothing.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Go on until all is read; the report then says how.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            min=1, max=64, metavar="N", help="Files of this machine that are sent at once."
        ),
    ] = 4,
    report: Annotated[
        Path, typer.Option(metavar="PATH", help="Where the report goes, without its endings.")
    ] = Path("ingest-report"),
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What a later run goes on from. Default: in the home."),
    ] = None,
    max_wait_s: Annotated[
        float,
        typer.Option(
            "--max-wait",
            min=0,
            metavar="S",
            help="Longest pause the API may ask for while files of this machine are sent.",
        ),
    ] = 3_600.0,
    max_members: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most members of an archive.")
    ] = _LIMITS.max_members,
    max_archive_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most bytes of an archive, uncompressed.")
    ] = _LIMITS.max_bytes,
    max_member_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most bytes of one member, uncompressed.")
    ] = _LIMITS.max_member_bytes,
    max_ratio: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most bytes from one byte of an archive.")
    ] = _LIMITS.max_ratio,
    max_nesting: Annotated[
        int, typer.Option(min=1, metavar="N", help="How deep archives may lie in archives.")
    ] = _LIMITS.max_nesting,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a file, and one at the end.")
    ] = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Send all documents of a folder, a manifest, an archive or a bucket as one batch.

    It can be interrupted at any moment: run again, it goes on and sends nothing twice. Files of
    equal content are one document. Every file is in the report, whatever became of it.
    """
    limits = ArchiveLimits(
        max_members=max_members,
        max_bytes=max_archive_bytes,
        max_member_bytes=max_member_bytes,
        max_ratio=max_ratio,
        max_nesting=max_nesting,
    )
    key = read_secret(api_key, api_key_file, label="API key")
    if source.startswith(SCHEME):
        bucket, chosen = source_of_address(source), _parsed(options)
        with sigterm_as_ctrl_c(), connect(api_url, key) as client:
            if dry_run:
                _show_plan(plan_bucket(client, batch, chosen, bucket), [], as_json=as_json)
                return
            path = journal or _default_journal(source, batch, client.address)
            fill_from_bucket(
                client, batch, chosen, bucket, path, report=report, wait=wait, as_json=as_json
            )
        return
    found = source_of(Path(source), limits)
    if dry_run:
        plan = Plan()
        unsent = look(found, plan)
        plan.seconds = _estimate(plan, api_url, key)
        _show_plan(plan, unsent, as_json=as_json)
        return
    chosen = _parsed(options)
    with (
        sigterm_as_ctrl_c(),
        connect(api_url, key) as client,
        Journal(journal or _default_journal(source, batch, client.address)) as kept,
    ):
        batch_id = batch_of(client, kept, batch, chosen)
        console = _Console(batch, as_json=as_json)
        with told_when_stopped(lambda: tell_unsent(kept, batch_id, as_json=as_json)):
            _send(found, client, kept, batch_id, console, jobs=jobs, max_wait_s=max_wait_s)
        if wait:
            _wait(client, kept, batch_id, report, as_json=as_json)
        written = _write_report(client, kept, batch_id, report)
        summarize(kept, written, batch_id, as_json=as_json)
    if written.failures:
        raise typer.Exit(EXIT_FAILED)


def _send(
    source: Source,
    client: ApiClient,
    journal: Journal,
    batch_id: UUID,
    console: "_Console",
    *,
    jobs: int,
    max_wait_s: float,
) -> None:
    stop = threading.Event()
    with progress_bar("files") as bar:
        console.bar = bar
        patience = Patience(stop, max_wait_s=max_wait_s, report=bar.print)
        uploader = Uploader(client, journal, batch_id, patience)
        try:
            run(
                source,
                journal=journal,
                uploader=uploader,
                senders=jobs,
                stop=stop,
                report=console.show,
            )
        except (ApiError, StoppedError) as error:
            raise CommandError(
                getattr(error, "message", "the run was ended"),
                f"Run the same command again: it goes on. {getattr(error, 'remedy', '')}".strip(),
            ) from error


def _wait(
    client: ApiClient, journal: Journal, batch_id: UUID, report: Path, *, as_json: bool
) -> None:
    """Watch until all is read; when that is stopped, say and report how far it is."""

    def tell() -> None:
        tell_unread(journal, batch_id)
        try:
            written = _write_report(client, journal, batch_id, report)
        except CommandError:  # of an API, most likely, for which nobody waits now
            tell_no_report(journal, batch_id, as_json=as_json)
        else:
            summarize(journal, written, batch_id, as_json=as_json, is_stopped=True)

    with told_when_stopped(tell):
        watch_batch(client, client.batch(batch_id), as_json=False)


def _write_report(client: ApiClient, journal: Journal, batch_id: UUID, report: Path) -> Written:
    journal.learn(map(json.loads, client.report(batch_id, report_format="ndjson")))
    return write_report(journal, report)


class _Console:
    """Says what happens: by a bar, or by a line now and then; and each failure in any case."""

    def __init__(self, label: str, *, as_json: bool) -> None:
        self.bar = Bar(None, None)
        self._label = label
        self._as_json = as_json
        self._line_at = time.monotonic()

    def show(self, sent: Sent | None, tally: Tally) -> None:
        states = tally.states
        said = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        self.bar.show(self._label, tally.files, None, note=said)
        now = time.monotonic()
        if not self.bar.is_shown and now - self._line_at >= LINE_EVERY_S:
            self._line_at = now
            self.bar.print(f"{self._label}: {count_of(tally.files, 'file')}; {said or 'all known'}")
        if sent is None:
            return
        if self._as_json:
            self.bar.print_result(
                json_line({**asdict(sent), "path": as_text(sent.path), "document_id": _text(sent)})
            )
        elif sent.message is not None and sent.state != "skipped":
            self.bar.print(f"{shown(sent.path)}: {sent.code}: {sent.message}")


def _text(sent: Sent) -> str | None:
    return None if sent.document_id is None else str(sent.document_id)


def _show_plan(plan: Plan, unsent: list[tuple[Found, str, str]], *, as_json: bool) -> None:
    if as_json:
        for found, code, message in unsent:
            print_json_line({"path": as_text(found.path), "code": code, "message": message})
        print_json_line({
            "files": plan.files,
            "size_bytes": plan.size_bytes,
            "pages": plan.pages,
            "estimated_pages": plan.estimated_pages,
            "duplicates": plan.duplicates,
            "refused": dict(plan.refused),
            "skipped": plan.skipped,
            "seconds": plan.seconds,
        })
        return
    for found, code, message in unsent:
        notices().print(f"{shown(found.path)}: {code}: {message}", markup=False)
    output().print(
        f"{count_of(plan.files, 'file')} of {count_of(plan.size_bytes, 'byte')} would be sent:"
        f" {count_of(plan.pages, 'page')},"
        f" and about {plan.estimated_pages:,} of PDF and TIFF files",
        markup=False,
    )
    output().print(
        f"{count_of(plan.duplicates, 'duplicate')}, {plan.refused.total():,} refused,"
        f" {plan.skipped:,} that are no documents",
        markup=False,
    )
    took = "not known" if plan.seconds is None else f"{plan.seconds:,.0f} s"
    output().print(f"time until all is read, at the pace of the last minutes: {took}", markup=False)


def _estimate(plan: Plan, api_url: str | None, key: str | None) -> float | None:
    try:
        with connect(api_url, key) as client:
            return estimate_seconds(plan, client)
    except CommandError:  # without an API all else can be told
        return None


def _parsed(options: str | None) -> dict[str, Any]:
    try:
        parsed = json.loads(options or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise CommandError(
            "--options is no JSON object",
            "Write for example --options '{\"dpi\": 300}'.",
            exit_code=EXIT_USAGE,
        )
    return parsed


def _default_journal(source: str, batch: str, address: str) -> Path:
    """Return where the journal of this source, batch and API lies, wherever it is called from."""
    from workers.settings import home_dir

    place = source if source.startswith(SCHEME) else os.path.realpath(source)
    named = f"{place}\0{batch}\0{address}".encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(named).hexdigest()[:24]
    return home_dir() / "ingest" / f"{digest}.sqlite"
