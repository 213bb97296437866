"""What a user may choose for one document."""

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class OcrOptions(BaseModel):
    """Options of one document; unknown names are refused, so that a typing error is seen.

    Attributes:
        mode: ``ocr`` renders every page and recognizes it.
        dpi: resolution at which PDF pages are rendered; images are read at their own size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["ocr"] = "ocr"
    dpi: int = Field(default=200, ge=72, le=600)

    def digest(self) -> str:
        """Return a hash that is equal exactly when the options are."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
