from pathlib import Path

import pymupdf
import pytest
from typer import Typer
from typer.testing import CliRunner

from cli import samples as samples_command
from cli.samples import DENSE_COLUMNS, DENSE_ROWS, Sample, write_samples
from workers.ocr.errors import DocumentError
from workers.ocr.sources import SourceLimits, open_source

MAX_CROPS_A_PAGE = 2000


def test_every_sample_that_is_sound_has_the_pages_it_says(samples: dict[str, Sample]) -> None:
    expected = {name: made.page_count for name, made in samples.items() if not made.error_code}
    counted = {}
    for name in expected:
        with open_source(samples[name].path, limits=SourceLimits()) as source:
            counted[name] = source.page_count

    assert counted == expected
    assert set(expected) == {
        "letters.pdf",
        "scanned-letters.pdf",
        "chinese-inventory.pdf",
        "register.tiff",
        "dense-index.png",
        "label.png",
    }


@pytest.mark.parametrize("name", ["damaged.pdf", "encrypted.pdf", "empty.pdf", "note.pdf"])
def test_every_other_sample_is_refused_as_it_says(samples: dict[str, Sample], name: str) -> None:
    with pytest.raises(DocumentError) as caught:
        open_source(samples[name].path, limits=SourceLimits())

    assert caught.value.code == samples[name].error_code


def test_the_password_opens_the_encrypted_sample(samples: dict[str, Sample]) -> None:
    sample = samples["encrypted.pdf"]

    with open_source(sample.path, limits=SourceLimits(), password=sample.password) as source:
        assert source.page_count == 3


def test_the_born_digital_sample_has_its_text(samples: dict[str, Sample]) -> None:
    document = pymupdf.open(samples["letters.pdf"].path)

    lines = tuple(tuple(page.get_text().splitlines()) for page in document.pages())

    assert lines == samples["letters.pdf"].page_lines


@pytest.mark.parametrize("name", ["scanned-letters.pdf", "chinese-inventory.pdf"])
def test_a_scanned_sample_has_no_text_layer(samples: dict[str, Sample], name: str) -> None:
    document = pymupdf.open(samples[name].path)

    assert [page.get_text() for page in document.pages()] == [""] * samples[name].page_count


def test_the_dense_sample_has_more_words_than_a_page_may_have_crops(
    samples: dict[str, Sample],
) -> None:
    (words,) = samples["dense-index.png"].page_lines

    assert len(words) == DENSE_COLUMNS * DENSE_ROWS > MAX_CROPS_A_PAGE
    assert len(set(words)) == len(words)


def test_samples_are_the_same_bytes_each_time(samples: dict[str, Sample], tmp_path: Path) -> None:
    again = {made.path.name: made.path.read_bytes() for made in write_samples(tmp_path)}
    before = {name: made.path.read_bytes() for name, made in samples.items()}

    del again["encrypted.pdf"], before["encrypted.pdf"]  # Its cipher takes random bytes.
    assert again == before


def test_the_command_names_what_it_wrote(tmp_path: Path) -> None:
    application = Typer()
    application.command()(samples_command.samples)

    outcome = CliRunner().invoke(application, [str(tmp_path / "new")])

    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) == len(list((tmp_path / "new").iterdir())) == 10
