"""What a run says at its end, whether it came to its end or was stopped."""

from collections import Counter
from contextlib import closing
from uuid import UUID

from cli.console import notices, output, print_json_line, shown
from cli.counting import count_of
from cli.ingest import journal as states
from cli.ingest.journal import Journal
from cli.ingest.report import SHOWN_FAILURES, Written, records


def summarize(
    journal: Journal, written: Written, batch_id: UUID, *, as_json: bool, is_stopped: bool = False
) -> None:
    """Say what became of the files, where the report lies, and what failed for which reason.

    Args:
        journal: knows what became of the files.
        written: the report.
        batch_id: of the batch.
        as_json: as one object, and nothing else.
        is_stopped: whether nobody waited until all was read.
    """
    if as_json:
        print_json_line({
            "batch_id": str(batch_id),
            "files": written.files,
            "by_state": dict(written.by_state),
            "failures": written.failures,
            "report_csv": str(written.csv),
            "report_ndjson": str(written.ndjson),
            "stopped": is_stopped,
        })
        return
    counted = ", ".join(f"{count:,} {state}" for state, count in sorted(written.by_state.items()))
    output().print(f"{count_of(written.files, 'file')}: {counted or 'none'}", markup=False)
    show_duplicates(written.by_state[states.DUPLICATE])
    written.show_places(batch_id)
    if not written.failures:
        return
    failed = (
        each for each in records(journal) if each["error_code"] and each["state"] != states.SKIPPED
    )
    with closing(failed):
        for _, each in zip(range(SHOWN_FAILURES), failed, strict=False):
            notices().print(
                f"{shown(str(each['path']))}: {each['state']}: {each['error_code']}", markup=False
            )
    written.show_reasons()


def show_duplicates(count: int) -> None:
    """Say that files without a document of their own have no export of their own either."""
    if count == 1:
        output().print("1 file is the same as another, and shares its document and exports")
    elif count:
        output().print(f"{count:,} files are the same as others, and share documents and exports")


def tell_unsent(journal: Journal, batch_id: UUID, *, as_json: bool) -> None:
    """Say how far a run came that was stopped while it sent."""
    say_stopped(f"{_sent_of_all(journal, ' found so far')} sent; batch {batch_id}.")
    say_how_to_go_on("to go on; nothing is sent twice.")
    tell_no_report(journal, batch_id, as_json=as_json)


def tell_unread(journal: Journal, batch_id: UUID) -> None:
    """Say what a run has done that was stopped while it waited."""
    sent = _sent_of_all(journal, "")
    say_stopped(f"{sent} sent, and read without this command; batch {batch_id}.")
    say_how_to_go_on("to wait on, and for the whole report.")


def tell_no_report(journal: Journal, batch_id: UUID, *, as_json: bool) -> None:
    """Say that a run which was stopped wrote no report; for programs, what is known without."""
    notices().print("  The report is written by the run that ends.")
    if not as_json:
        return
    counts = _counts_of(journal)
    print_json_line({
        "batch_id": str(batch_id),
        "files": counts.total(),
        "by_state": dict(counts),
        "failures": None,
        "report_csv": None,
        "report_ndjson": None,
        "stopped": True,
    })


def _counts_of(journal: Journal) -> Counter[str]:
    counts = journal.counts()
    if rejected := counts.pop(states.REJECTED, 0):
        counts[states.REFUSED] += rejected  # here as in the report
    return counts


def _sent_of_all(journal: Journal, which: str) -> str:
    counts = _counts_of(journal)
    sent = counts[states.SENT] + counts[states.DUPLICATE]
    verb = "is" if sent == 1 else "are"
    return f"{sent:,} of {count_of(counts.total(), 'file')}{which} {verb}"


def say_stopped(what: str) -> None:
    """Say that the run was stopped, and what was done."""
    notices().print(f"Stopped. {what}", markup=False)


def say_how_to_go_on(why: str) -> None:
    """Say how, below that."""
    notices().print(f"  Run the same command again {why}", markup=False)
