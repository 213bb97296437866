"""What a user may choose for one document."""

import hashlib

from pydantic import BaseModel, ConfigDict, Field

from workers.ocr.modes import Mode, TextOrder


class OcrOptions(BaseModel):
    """Options of one document; unknown names are refused, so that a typing error is seen.

    Attributes:
        mode: ``auto`` takes the text of a page from the file where it is sound and recognizes what
            is left; ``ocr`` recognizes every page; ``text`` recognizes none, and takes what the
            file states, as it is.
        text_order: of the lines that a PDF page states itself. ``reading`` keeps the file's order
            unless it wanders over the page, and then goes by where the lines stand; ``file`` keeps
            it always. What is recognized comes in the order of reading with both.
        dpi: resolution at which PDF pages are rendered; a page that is one JPEG keeps its own where
            that is at most a quarter higher. Images are read at their own size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "auto"
    text_order: TextOrder = "reading"
    dpi: int = Field(default=200, ge=72, le=600)

    def digest(self) -> str:
        """Return a hash that is equal exactly when the options are."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
