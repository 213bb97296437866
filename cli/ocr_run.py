"""Reading one file after the other in this process, without any server."""

import errno
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

from cli.console import as_text
from cli.whole_file import whole_file
from workers.ocr.document_result import DocumentSource, document_json
from workers.ocr.errors import DocumentError
from workers.ocr.exports.formats import ExportFormat
from workers.ocr.exports.text_formats import TEXT_WRITERS
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.page_reader import Engine, PageReader
from workers.ocr.result import PageResult, page_json, skipped_page_json
from workers.page_renderer import PageRenderer
from workers.searchable_document import write_searchable_pdf

# What is no document yet, or cannot be stored here, has a code that is none of the error table.
NOT_READABLE = "not_readable"
NAME_TOO_LONG = "name_too_long"
# Two steps of the clock of the file system that has the coarsest.
_OLDER_NS = 4_000_000_000
# What helps on this command line; the messages themselves are for every way in.
_REMEDIES: dict[str, str] = {
    "encrypted": "Give the password with --password - (asks for it, unseen) or --password-file"
    " FILE.",
    "file_too_large": "Or raise PAGEFLEET_MAX_FILE_BYTES.",
    "too_many_pages": "Or raise PAGEFLEET_MAX_PAGES.",
    "exceeds_max_pages": "Here it is --max-pages.",
    "no_such_page": "Here it is --pages.",
    NOT_READABLE: "Check its name and who may read it.",
}


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file.

    Attributes:
        path: the file.
        output: where its result lies; None when there is none.
        state: of the document.
        pages: how many it has; 0 when it could not be opened.
        pages_failed: how many of them failed.
        pages_skipped: how many of them were left out, as nobody wanted them.
        warnings: of the result.
        truncated: whether a page had more text lines than are recognized.
        seconds: wall clock.
        error_code: why there is no result; None when there is one.
        error_message: the same for a reader, with the remedy.
    """

    path: Path
    output: Path | None
    state: Literal["succeeded", "partly_succeeded", "failed"]
    pages: int
    pages_failed: int
    truncated: bool
    seconds: float
    error_code: str | None = None
    error_message: str | None = None
    pages_skipped: int = 0
    warnings: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return the outcome for ``--json``."""
        error = {"code": self.error_code, "message": self.error_message}
        return {
            "file": as_text(self.path),
            "output": None if self.output is None else as_text(self.output),
            "state": self.state,
            "pages": self.pages,
            "pages_failed": self.pages_failed,
            "pages_skipped": self.pages_skipped,
            "warnings": list(self.warnings),
            "truncated": self.truncated,
            "seconds": round(self.seconds, 3),
            "error": error if self.error_code else None,
        }


class FileReader:
    """The renderer and the engine of one run, and what all its files share."""

    def __init__(
        self,
        renderer: PageRenderer,
        engine: Engine,
        *,
        options: OcrOptions,
        output_format: ExportFormat,
        password: str | None = None,
    ) -> None:
        self._renderer = renderer
        self._reader = PageReader(engine)
        self._options = options
        self._format = output_format
        self._password = password

    def read(self, path: Path, output: Path, *, on_page: Callable[[int, int], None]) -> FileOutcome:
        """Recognize a file and write its result; what is wrong with the file is in the outcome.

        Args:
            path: the file.
            output: where the result goes; its folder is made.
            on_page: told pages done and pages in all, first with none done.

        Raises:
            OcrError: the engine or the renderer cannot work, whatever the file.
            OSError: the result cannot be written, whatever its name.
        """
        started = time.perf_counter()
        try:
            result = self._recognize(path, on_page)
        except DocumentError as error:
            return _refused(path, error.code, str(error), started)
        except OSError as error:
            return _refused(path, NOT_READABLE, error.strerror or str(error), started)
        try:
            self._write(result, path, output)
        except DocumentError as error:  # of a searchable PDF, which needs the file again
            return _refused(path, error.code, str(error), started)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise  # a full or missing folder is all files' trouble
            message = "The name of its result is too long. Give the file a shorter name."
            return _refused(path, NAME_TOO_LONG, message, started)
        usage = result["usage"]
        return FileOutcome(
            path=path,
            output=output,
            state=result["state"],
            pages=usage["pages"],
            pages_failed=usage["pages_failed"],
            pages_skipped=usage["pages_skipped"],
            warnings=tuple(result.get("warnings", ())),
            truncated=result["truncated"],
            seconds=time.perf_counter() - started,
        )

    def _recognize(self, path: Path, on_page: Callable[[int, int], None]) -> dict[str, Any]:
        opened = self._renderer.open(path, password=self._password)
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        options = self._options
        indexes = options.page_indexes(opened.page_count)
        rendered = self._renderer.pages(
            indexes, dpi=options.dpi, mode=options.mode, text_order=options.text_order
        )
        pages = _counted(self._reader.read_pages(rendered), len(indexes), on_page)
        return document_json(
            _with_skipped(pages, opened.page_count),
            # The same file has the same id, wherever it lies.
            document_id=str(uuid5(NAMESPACE_URL, f"sha256:{sha256}")),
            source=DocumentSource(
                as_text(path.name), sha256, opened.media_type, path.stat().st_size
            ),
            model_version=self._reader.model_version,
            options=options.model_dump(mode="json"),
            warnings=options.warnings(opened.page_count),
        )

    def _write(self, result: dict[str, Any], path: Path, output: Path) -> None:
        # But for JSON, what is written does not say reliably that pages are missing. One that is
        # older than its file does, and ``--skip-existing`` reads the file again.
        is_whole = self._format == "json" or result["state"] == "succeeded"
        changed_ns = None if is_whole else path.stat().st_mtime_ns - _OLDER_NS
        header = {key: value for key, value in result.items() if key not in {"full_text", "pages"}}
        with whole_file(output, changed_ns=changed_ns) as stream:
            if self._format == "pdf":
                write_searchable_pdf(
                    path,
                    stream,
                    header,
                    lambda: iter(result["pages"]),
                    renderer=self._renderer,
                    password=self._password,
                )
                return
            for part in TEXT_WRITERS[self._format](header, result["pages"]):
                stream.write(part.encode())
            if self._format in {"json", "text"}:
                stream.write(b"\n")


def _counted(
    pages: Iterator[PageResult | PageFailure], page_count: int, on_page: Callable[[int, int], None]
) -> Iterator[PageResult | PageFailure]:
    on_page(0, page_count)
    for done, page in enumerate(pages, start=1):
        on_page(done, page_count)
        yield page


def _with_skipped(
    pages: Iterator[PageResult | PageFailure], page_count: int
) -> Iterator[dict[str, Any]]:
    """Yield the page objects of a document of so many pages, those too that were left out."""
    following = 0
    for page in pages:
        yield from map(skipped_page_json, range(following, page.page_index))
        yield page_json(page)
        following = page.page_index + 1
    yield from map(skipped_page_json, range(following, page_count))


def _sentence(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def _refused(path: Path, code: str, message: str, started: float) -> FileOutcome:
    return FileOutcome(
        path=path,
        output=None,
        state="failed",
        pages=0,
        pages_failed=0,
        truncated=False,
        seconds=time.perf_counter() - started,
        error_code=code,
        error_message=" ".join(filter(None, (_sentence(message), _REMEDIES.get(code)))),
    )
