"""What a user may choose for one document."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from workers.ocr import page_ranges
from workers.ocr.errors import ExceedsMaxPagesError, NoSuchPageError
from workers.ocr.modes import Mode, TextOrder

DocumentWarning = Literal["languages_without_effect", "pages_beyond_end"]

_MAX_LANGUAGES: Final = 10
_LANGUAGE: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$"
# What was there from the beginning is always part of row and digest, the rest where it says
# something: a new option leaves documents without it as they were, for the code of before too.
_ALWAYS_STATED: Final = frozenset({"mode", "text_order", "dpi"})


def _sorted_once(languages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({each.lower() for each in languages}))


_Pages = Annotated[
    str,
    StringConstraints(max_length=page_ranges.MAX_LENGTH, pattern=page_ranges.PATTERN),
    AfterValidator(page_ranges.normalized),
]
_Language = Annotated[str, StringConstraints(pattern=_LANGUAGE)]
_Languages = Annotated[
    tuple[_Language, ...], Field(max_length=_MAX_LANGUAGES), AfterValidator(_sorted_once)
]


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
        pages: those that are read, as ``1-3,7``; the others are left out. None: all. Numbers behind
            the last page are no error as long as one page is there.
        max_pages: a document with more pages is refused, also where fewer are asked for. None: no
            limit but the operator's.
        languages: that the document is in, as ``de`` or ``zh-Hans``. A hint for choosing among
            models; the models that there are read all languages at once, and the result says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "auto"
    text_order: TextOrder = "reading"
    dpi: int = Field(default=200, ge=72, le=600)
    pages: _Pages | None = None
    max_pages: int | None = Field(default=None, ge=1, le=page_ranges.MAX_PAGE)
    languages: _Languages = ()

    def to_row(self) -> dict[str, Any]:
        """Return the options as a document's row keeps them; ``from_row`` reads them."""
        return self.model_dump(mode="json", exclude=self._silent())

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the options that a document's row keeps; see ``to_row``."""
        return cls.model_validate(row)

    def digest(self) -> str:
        """Return a hash that is equal exactly when the options are."""
        return _hash(self.model_dump_json(exclude=self._silent()))

    def reading_digest(self) -> str:
        """Return a hash that is equal when the options give a document the same text."""
        return _hash(self.model_dump_json(exclude={*self._silent(), "max_pages"}))

    def page_indexes(self, page_count: int) -> list[int]:
        """Return the 0-based positions of the pages to read of a document of so many.

        Raises:
            ExceedsMaxPagesError: it has more pages than ``max_pages``.
            NoSuchPageError: it has none of ``pages``.
        """
        if self.max_pages is not None and page_count > self.max_pages:
            raise ExceedsMaxPagesError(limit=self.max_pages, actual=page_count)
        if self.pages is None:
            return list(range(page_count))
        indexes = page_ranges.indexes_within(self.pages, page_count)
        if not indexes:
            raise NoSuchPageError(self.pages, page_count)
        return indexes

    def warnings(self, page_count: int) -> list[DocumentWarning]:
        """Return what a reader of the result of a document of so many pages should know."""
        found: list[DocumentWarning] = []
        if self.languages:
            found.append("languages_without_effect")
        if self.pages is not None and page_ranges.last_page(self.pages) > page_count:
            found.append("pages_beyond_end")
        return found

    def _silent(self) -> set[str]:
        """Return the newer options that are as if there were none."""
        return {
            name
            for name, field in type(self).model_fields.items()
            if name not in _ALWAYS_STATED and getattr(self, name) == field.default
        }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
