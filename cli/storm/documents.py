"""The few distinct files that a storm sends again and again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.queued_documents import small_pdf
from cli.samples import write_long_document, write_samples
from cli.storm.verdict import Sent

# Stated text, small images and scans, one page and several, a TIFF, and a file that must fail.
_LIGHT: Final = (
    *("ledger-1.pdf", "letters.pdf", "label.png", "ledger-2.pdf"),
    *("letters.pdf", "label.png", "damaged.pdf", "ledger-1.pdf"),
)
# Few, as each page takes a core for a second or more.
_WITH_SCANS: Final = (*_LIGHT[:3], "register.tiff", *_LIGHT[3:], "scan.pdf")
_SCAN_PAGES: Final = 2


def turns(*, is_light: bool) -> tuple[str, ...]:
    """Return the names of the files in the order in which they are sent, over and over."""
    return _LIGHT if is_light else _WITH_SCANS


def write_files(folder: Path, names: Sequence[str]) -> Mapping[str, Path]:
    """Write the files of these names, and return them by name."""
    written = {sample.path.name: sample.path for sample in write_samples(folder)}
    for number in (1, 2):
        path = folder / f"ledger-{number}.pdf"
        path.write_bytes(small_pdf(number))
        written[path.name] = path
    written["scan.pdf"] = folder / "scan.pdf"
    write_long_document(written["scan.pdf"], _SCAN_PAGES)
    return {name: written[name] for name in dict.fromkeys(names)}


def documents_of_round(number: int, count: int, names: Sequence[str]) -> list[Sent]:
    """Return what clients send in one round, files in turn; keys differ between rounds."""
    return [
        Sent(key=f"storm-{number}-{index}", sample=names[index % len(names)])
        for index in range(count)
    ]
