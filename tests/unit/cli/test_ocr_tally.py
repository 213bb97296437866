from pathlib import Path

from cli.ocr_run import FileOutcome
from cli.ocr_tally import RunTally


def succeeded(name: str, *, pages: int = 1) -> FileOutcome:
    return FileOutcome(
        path=Path(name),
        output=Path("out"),
        state="succeeded",
        pages=pages,
        pages_failed=0,
        truncated=False,
        seconds=1,
    )


def failed(name: str, code: str) -> FileOutcome:
    return FileOutcome(
        path=Path(name),
        output=None,
        state="failed",
        pages=0,
        pages_failed=0,
        truncated=False,
        seconds=1,
        error_code=code,
        error_message="",
    )


def test_a_summary_counts_files_and_pages() -> None:
    tally = RunTally(files=2_000, skipped=1_000)
    tally.add(succeeded("a", pages=1_234))

    (line,) = tally.summary()

    assert line.startswith(
        "2,000 files: 1 read, 1,000 skipped, their results are there, 999 not begun; 1,234 pages, "
    )


def test_a_summary_gives_each_reason_and_a_few_names() -> None:
    tally = RunTally(files=7)
    for number in range(6):
        tally.add(failed(f"{number}.pdf", "damaged"))
    tally.add(failed("secret.pdf", "encrypted"))

    _, damaged, encrypted = tally.summary()

    assert damaged == "  damaged: 6 (0.pdf, 1.pdf, 2.pdf, 3.pdf, 4.pdf and others)"
    assert encrypted == "  encrypted: 1 (secret.pdf)"


def test_files_that_failed_are_counted_apart() -> None:
    tally = RunTally(files=2)
    tally.add(succeeded("a"))
    tally.add(failed("b", "empty"))

    assert (tally.read, tally.not_succeeded) == (2, 1)
