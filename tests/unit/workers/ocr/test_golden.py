from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import pytest

from tests.support.fake_sessions import ink_bundle
from workers.ocr.bundle import BundleFile, GoldenPage, ModelBundle, sha256_of
from workers.ocr.errors import ModelFileError
from workers.ocr.geometry import Quad
from workers.ocr.golden import GOLDEN_LINES, check_golden, drawn_page
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import Block, PageResult, TextLine


class Reciter:
    """Says the same lines of every page."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self.seen: list[PageImage | PageFailure] = []

    def read_pages(
        self, pages: Iterable[PageImage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        quad = Quad.from_corners(((0, 0), (9, 0), (9, 9), (0, 9)))
        for page in pages:
            self.seen.append(page)
            lines = tuple(TextLine(text, quad, 0.9, 0.9, ()) for text in self._lines)
            blocks = (Block(tuple(range(len(lines)))),)
            yield PageResult(0, 760, 220, 150.0, 0, 0.0, len(lines), len(lines), lines, blocks)


class Failing:
    """Fails on every page."""

    def read_pages(
        self, pages: Iterable[PageImage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        yield from (PageFailure(0, "internal", "the detector answered oddly") for _ in pages)


def with_golden(folder: Path, text: str) -> ModelBundle:
    cv2.imwrite(str(folder / "page.png"), drawn_page().pixels)
    image = BundleFile(name="page.png", sha256=sha256_of(folder / "page.png"))
    bundle = ink_bundle()
    manifest = bundle.manifest.model_copy(update={"golden": GoldenPage(image=image, text=text)})
    return replace(bundle, manifest=manifest, models_dir=folder)


def test_a_reader_that_reads_the_golden_page_passes() -> None:
    reader = Reciter(*GOLDEN_LINES)

    check_golden(reader, ink_bundle())

    assert len(reader.seen) == 1


def test_one_wrong_letter_and_a_lost_space_pass() -> None:
    check_golden(Reciter("Harbourledger 1911", *GOLDEN_LINES[1:]), ink_bundle())


def test_a_shifted_charset_is_found_out() -> None:
    shifted = ("".join(chr(ord(letter) + 1) for letter in line) for line in GOLDEN_LINES)

    with pytest.raises(ModelFileError, match="misreads its golden page"):
        check_golden(Reciter(*shifted), ink_bundle())


def test_a_reader_that_sees_nothing_is_found_out() -> None:
    with pytest.raises(ModelFileError, match="100%"):
        check_golden(Reciter(), ink_bundle())


def test_a_failure_on_the_golden_page_is_told() -> None:
    with pytest.raises(ModelFileError, match="the detector answered oddly"):
        check_golden(Failing(), ink_bundle())


def test_a_bundle_may_bring_its_own_golden_page(tmp_path: Path) -> None:
    check_golden(Reciter("Διαβάζω"), with_golden(tmp_path, "Διαβάζω"))


def test_a_golden_page_that_was_changed_is_refused(tmp_path: Path) -> None:
    bundle = with_golden(tmp_path, "Διαβάζω")
    (tmp_path / "page.png").write_bytes(b"another")

    with pytest.raises(ModelFileError, match="SHA-256"):
        check_golden(Reciter("Διαβάζω"), bundle)
