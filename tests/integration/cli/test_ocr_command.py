import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.samples import SAMPLE_PASSWORD, Sample
from tests.support.commands import run_pagefleet
from tests.support.models import require_bundle
from tests.support.results import require_valid
from tests.support.text_pdfs import columns_by_rows, prose_page, save


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    require_bundle()


@pytest.fixture(scope="module")
def samples(samples: dict[str, Sample]) -> Path:
    """Where they lie."""
    return samples["label.png"].path.parent


@pytest.fixture(scope="module")
def label_text(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is written for one file, without any options."""
    out_dir = tmp_path_factory.mktemp("label")
    done = run_pagefleet("ocr", samples / "label.png", "-o", out_dir)
    assert done.returncode == 0, done.stderr
    return (out_dir / "label.json").read_text("utf-8")


def test_a_file_becomes_a_result_of_the_published_schema(label_text: str) -> None:
    result = json.loads(label_text)

    require_valid(result)
    assert result["source"]["filename"] == "label.png"
    assert "Letters of the lighthouse keeper" in result["full_text"]


def test_stated_text_keeps_the_order_of_its_file_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    path = save(document, tmp_path)

    done = run_pagefleet("ocr", path, "--text-order", "file", "-o", tmp_path)

    result = json.loads((tmp_path / "document.json").read_text("utf-8"))
    assert done.returncode == 0, done.stderr
    require_valid(result)
    assert result["options"]["text_order"] == "file"
    assert result["full_text"].splitlines() == stated


def test_text_is_the_full_text_of_the_result(
    samples: Path, label_text: str, tmp_path: Path
) -> None:
    run_pagefleet("ocr", samples / "label.png", "-o", tmp_path, "--format", "text")

    result = json.loads(label_text)
    assert (tmp_path / "label.txt").read_text("utf-8") == result["full_text"] + "\n"


def test_files_that_cannot_be_read_are_named_and_the_others_go_on(
    samples: Path, tmp_path: Path
) -> None:
    bad = ["damaged.pdf", "encrypted.pdf", "empty.pdf", "note.pdf", "missing.pdf"]
    done = run_pagefleet(
        "ocr", "--json", "-o", tmp_path, *[samples / name for name in [*bad, "label.png"]]
    )

    records = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [each["error"] and each["error"]["code"] for each in records]
    assert done.returncode == 1
    assert codes == [
        "damaged",
        "encrypted",
        "empty",
        "unsupported_media_type",
        "not_readable",
        None,
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["label.json"]


def test_a_name_that_is_too_long_for_a_result_costs_that_file(
    samples: Path, tmp_path: Path
) -> None:
    fits, exceeds = "a" * 250 + ".png", "b" * 251 + ".png"  # with .json: 255 and 256 bytes
    for name in (fits, exceeds):
        shutil.copy(samples / "label.png", tmp_path / name)

    done = run_pagefleet(
        *("ocr", "--json", "-o", tmp_path / "out"),
        *(tmp_path / exceeds, tmp_path / ("c" * 300), tmp_path / fits),
    )

    records = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [each["error"] and each["error"]["code"] for each in records]
    assert codes == ["name_too_long", "not_readable", None], done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a" * 250 + ".json"]


def test_a_failure_is_shown_with_what_to_do(samples: Path, tmp_path: Path) -> None:
    done = run_pagefleet("ocr", samples / "empty.pdf", "-o", tmp_path)

    assert "empty.pdf: empty: " in done.stderr
    assert "1 file: 1 failed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def odd_folder(samples: Path, tmp_path: Path) -> Path:
    """Holds files whose names are in ASCII, in UTF-8 and in neither."""
    folder = tmp_path / "odd"
    folder.mkdir()
    for name in (b"plain.png", "é.png".encode(), b"\xe9.png"):
        shutil.copy(samples / "label.png", os.fsencode(folder) + b"/" + name)
    return folder


def test_a_file_name_that_is_no_utf8_is_read_like_the_others(
    odd_folder: Path, tmp_path: Path
) -> None:
    done = run_pagefleet("ocr", "--json", odd_folder, "-o", tmp_path / "out")

    names = {Path(json.loads(line)["file"]).name for line in done.stdout.splitlines()}
    results = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "out").iterdir()]
    assert done.returncode == 0, done.stderr
    assert names == {"plain.png", "é.png", "\ufffd.png"}
    assert {result["source"]["filename"] for result in results} == names


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_names_that_the_output_cannot_hold_are_escaped(
    odd_folder: Path, tmp_path: Path, options: list[str]
) -> None:
    done = run_pagefleet(
        *("ocr", *options, odd_folder, "-o", tmp_path / "out"),
        LC_ALL="C",
        PYTHONCOERCECLOCALE="0",
        PYTHONUTF8="0",
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert done.stdout.isascii()
    if options:
        names = {Path(json.loads(line)["file"]).name for line in done.stdout.splitlines()}
        assert names == {"plain.png", "é.png", "\ufffd.png"}


@pytest.mark.parametrize("way", ["file", "pipe", "environment", "argument"])
def test_an_encrypted_file_is_read_with_its_password(
    samples: Path, tmp_path: Path, way: str
) -> None:
    password_file = tmp_path / "password"
    password_file.write_text(SAMPLE_PASSWORD + "\n")
    options = {
        "file": ["--password-file", str(password_file)],
        "pipe": ["--password", "-"],
        "environment": [],
        "argument": ["--password", SAMPLE_PASSWORD],
    }
    done = run_pagefleet(
        *("ocr", samples / "encrypted.pdf", "-o", tmp_path, *options[way]),
        stdin=SAMPLE_PASSWORD + "\n" if way == "pipe" else "",
        **({"PAGEFLEET_CLIENT_FILE_PASSWORD": SAMPLE_PASSWORD} if way == "environment" else {}),
    )

    assert done.returncode == 0, done.stderr
    assert "Harbor Office" in json.loads((tmp_path / "encrypted.json").read_text())["full_text"]


@pytest.mark.parametrize("options", [[], ["--password", "wrong"]])
def test_an_encrypted_file_is_told_how_to_give_its_password(
    samples: Path, tmp_path: Path, options: list[str]
) -> None:
    done = run_pagefleet("ocr", samples / "encrypted.pdf", "-o", tmp_path, *options)

    assert done.returncode == 1
    assert "--password - (asks for it, unseen) or --password-file FILE" in done.stderr


def test_the_same_file_gives_the_same_result_but_for_its_seconds(
    samples: Path, label_text: str, tmp_path: Path
) -> None:
    run_pagefleet("ocr", samples / "label.png", "-o", tmp_path)

    again = (tmp_path / "label.json").read_text("utf-8")
    assert _without_seconds(again) == _without_seconds(label_text)


def test_a_folder_that_cannot_be_written_ends_the_run(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")

    done = run_pagefleet("ocr", samples / "label.png", "-o", tmp_path / "taken")

    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_models_are_an_error_with_the_remedy(samples: Path, tmp_path: Path) -> None:
    done = run_pagefleet("ocr", samples / "label.png", PAGEFLEET_MODELS_DIR=str(tmp_path / "none"))

    assert done.returncode == 1
    assert "pagefleet models fetch" in done.stderr


def test_doctor_finds_nothing_wrong_here() -> None:
    done = run_pagefleet("doctor", PAGEFLEET_DEVICE="cpu")

    assert done.returncode == 0, done.stdout


def test_doctor_exits_with_1_and_says_which_check_failed(tmp_path: Path) -> None:
    done = run_pagefleet(
        *("doctor", "--json"), PAGEFLEET_MODELS_DIR=str(tmp_path), PAGEFLEET_HOME=str(tmp_path)
    )

    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [each["name"] for each in findings if each["level"] == "failed"] == ["Models", "Device"]


def _without_seconds(text: str) -> Any:
    result = json.loads(text)
    for part in (result["usage"], *result["pages"]):
        part.pop("seconds")
    return result
