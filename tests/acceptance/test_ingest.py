"""A folder of 500 mixed files goes in, interrupted twice with kill -9, and is accounted for."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import ROOT
from tests.support.corpus import corpus_files
from tests.support.fleet import Fleet, wait_for
from tests.support.pdf_files import assemble_pdf

FILES = 500
KINDS = 20
CORPUS_FILES = 20
CORPUS_BYTES = 300_000

pytestmark = pytest.mark.timeout(1_500)


def text_pdf(number: int) -> bytes:
    """Return a page with one line of text."""
    content = f"BT /F1 24 Tf 72 700 Td (Box {number}) Tj ET".encode()
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 800]/Contents 4 0 R"
            b"/Resources<</Font<</F1 5 0 R>>>>>>"
        ),
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ])


def image(number: int) -> bytes:
    """Return a small white bitmap that differs from others in one pixel."""
    width, height = 64, 40
    pixels = bytearray(b"\xff" * (width * height * 3))
    pixels[number * 3] = 0
    head = b"BM" + (54 + len(pixels)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = (40).to_bytes(4, "little") + width.to_bytes(4, "little") + height.to_bytes(4, "little")
    return head + info + b"\x01\x00\x18\x00" + bytes(24) + bytes(pixels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """500 entries: documents, copies, and all that is none; one of them an archive of 20."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    corpus = [path for path in corpus_files("robust") if path.stat().st_size < CORPUS_BYTES]
    for path in corpus[:CORPUS_FILES]:
        shutil.copy(path, folder / f"corpus-{path.name}")
    with zipfile.ZipFile(folder / "box.zip", "w") as packed:
        for number in range(20):
            packed.writestr(f"{number}.pdf", text_pdf(10_000 + number))
    for number in range(FILES - len(list(folder.iterdir()))):
        place = folder / f"box-{number % 7}"
        place.mkdir(exist_ok=True)
        add_file(place / f"{number:04}", number)
    return folder


def add_file(path: Path, number: int) -> None:
    match number % KINDS:
        case 0:
            path.with_suffix(".pdf").symlink_to("elsewhere.pdf")
        case 1:
            path.with_suffix(".pdf").touch()
        case 2:
            path.with_suffix(".txt").write_text(f"no document, {number}")
        case 3:
            path.with_suffix(".pdf").write_bytes(text_pdf(number)[:100])
        case 4:
            path.with_suffix(".pdf").write_bytes(text_pdf(number % 3))
        case 5:
            path.with_suffix(".bmp").write_bytes(image(number))
        case _:
            path.with_suffix(".pdf").write_bytes(text_pdf(number))


@contextmanager
def running_ingest(fleet: Fleet, folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [
            *(sys.executable, "-m", "cli", "ingest", str(folder), "--batch", "mixed"),
            *("--options", '{"mode": "text"}', "--report", str(folder.parent / "report")),
            *("--api-url", fleet.api_url, *options),
        ],
        cwd=ROOT,
        env={**os.environ, **fleet.environment, "PAGEFLEET_CLIENT_API_KEY": fleet.key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def documents(fleet: Fleet) -> int:
    return int(fleet.rows("SELECT count(*) FROM documents")[0][0])


def files_of(folder: Path) -> set[str]:
    """Return what the report has to name: every file, and for the archive its members."""
    found = {
        str(Path(parent, name).relative_to(folder))
        for parent, _, names in os.walk(folder)
        for name in names
    }
    return (found - {"box.zip"}) | {f"box.zip!/{number}.pdf" for number in range(20)}


def test_a_mixed_folder_is_accounted_for_after_two_kills(fleet: Fleet, folder: Path) -> None:
    for enough in (80, 200):
        with running_ingest(fleet, folder):
            wait_for("uploads", lambda n=enough: documents(fleet) >= n, timeout_s=180)
    killed_at = documents(fleet)
    with running_ingest(fleet, folder, "--wait") as process:
        output, errors = process.communicate(timeout=900)

    lines: list[dict[str, Any]] = [
        json.loads(line) for line in (folder.parent / "report.ndjson").read_text().splitlines()
    ]
    by_state = Counter(line["state"] for line in lines)
    sent = [line for line in lines if line["document_id"] and line["state"] != "duplicate"]
    assert process.returncode == 1, errors  # links, empty and damaged files
    assert killed_at < len(sent)
    assert sorted(line["path"] for line in lines) == sorted(files_of(folder))
    assert len(lines) == FILES + 19
    assert len({line["document_id"] for line in sent}) == len(sent) == documents(fleet)
    assert {line["document_id"] for line in lines if line["state"] == "duplicate"} <= {
        line["document_id"] for line in sent
    }
    assert fleet.rows("SELECT count(*) FROM batches") == [(1,)]
    assert all(line["error_code"] for line in lines if line["state"] in {"refused", "failed"})
    assert by_state["succeeded"] > 350
    assert set(by_state) <= {
        "succeeded",
        "partly_succeeded",
        "failed",
        "duplicate",
        "refused",
        "skipped",
    }
    assert f"{len(lines)} files" in output
