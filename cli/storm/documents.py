"""The few distinct files that a storm sends again and again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.queued_documents import small_pdf
from bench.storm_verdict import Sent
from cli.samples import write_samples

# Stated text and scans, one page and several, a TIFF, and a file that must fail. Scans are few:
# each page takes a core for a second or more.
_TURNS: Final = (
    *("ledger-1.pdf", "letters.pdf", "label.png", "ledger-2.pdf", "register.tiff"),
    *("letters.pdf", "label.png", "damaged.pdf", "scanned-letters.pdf", "ledger-1.pdf"),
)


def write_files(folder: Path) -> Mapping[str, Path]:
    """Write the files, and return them by name."""
    written = {sample.path.name: sample.path for sample in write_samples(folder)}
    for number in (1, 2):
        path = folder / f"ledger-{number}.pdf"
        path.write_bytes(small_pdf(number))
        written[path.name] = path
    return {name: written[name] for name in dict.fromkeys(_TURNS)}


def documents_of_round(number: int, count: int) -> list[Sent]:
    """Return what clients send in one round; keys differ between rounds."""
    return [
        Sent(key=f"storm-{number}-{index}", sample=_TURNS[index % len(_TURNS)])
        for index in range(count)
    ]
