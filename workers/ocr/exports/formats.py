"""What can be made of a result: the formats by name."""

from dataclasses import dataclass
from typing import Final, Literal

ExportFormat = Literal["json", "text", "markdown", "hocr", "alto", "csv", "pdf"]


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """How a format is named outside.

    Attributes:
        extension: takes the place of the source's own, with its dot. That of the searchable PDF
            is two, so that it never has the name of the file that it was made from.
        media_type: as an HTTP header has it.
    """

    extension: str
    media_type: str


FORMATS: Final[dict[ExportFormat, FormatFacts]] = {
    "json": FormatFacts(".json", "application/json"),
    "text": FormatFacts(".txt", "text/plain; charset=utf-8"),
    "markdown": FormatFacts(".md", "text/markdown; charset=utf-8"),
    "hocr": FormatFacts(".hocr", "text/vnd.hocr+html; charset=utf-8"),
    "alto": FormatFacts(".alto.xml", "application/xml"),
    "csv": FormatFacts(".csv", "text/csv; charset=utf-8"),
    "pdf": FormatFacts(".searchable.pdf", "application/pdf"),
}
