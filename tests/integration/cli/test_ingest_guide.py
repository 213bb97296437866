"""The commands of docs/ingest.md, run as they stand there."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import ServedApi, open_store
from tests.support.commands import ROOT
from tests.support.guide_blocks import blocks_run_by
from tests.support.guides import DOCS
from tests.support.listing import allowed_in, listing_in_thread, put_all, rules_for
from tests.support.services import S3Bucket

GUIDE = (DOCS / "ingest.md").read_text("utf-8")
BLOCKS = [block.code for block in blocks_run_by(__file__)]
MANIFEST = re.findall(r"^```csv\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def api_settings(scans: S3Bucket) -> dict[str, Any]:
    return {"api_sources": (allowed_in(scans),)}


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """What the guide speaks of, and a program of the name that it calls."""
    letters = tmp_path / "letters"
    scans = tmp_path / "1911"
    for folder in (letters, scans, tmp_path / "out"):
        folder.mkdir()
    for name in ("a", "b"):
        (letters / f"{name}.pdf").write_bytes(b"%PDF-1.7 letter " + name.encode())
        (scans / f"{name}.pdf").write_bytes(b"%PDF-1.7 scan " + name.encode())
    (tmp_path / "manifest.csv").write_text(MANIFEST[0])
    (tmp_path / "manifest.ndjson").write_text('{"path": "1911/a.pdf", "id": 1}\n')
    with zipfile.ZipFile(tmp_path / "box.zip", "w") as packed:
        packed.write(letters / "a.pdf", "a.pdf")
    with tarfile.open(tmp_path / "box.tar.gz", "w:gz") as archive:
        archive.add(letters, "letters")
    program = tmp_path / "bin" / "pagefleet"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def sh(work_dir: Path, served_api: ServedApi, commands: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - the guide's own commands
        ["/bin/sh", "-e", "-c", commands],
        check=False,
        cwd=work_dir,
        env={
            **os.environ,
            "PATH": f"{work_dir / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PAGEFLEET_HOME": str(work_dir / "home"),
            "PAGEFLEET_CLIENT_API_URL": served_api.url,
            "PAGEFLEET_CLIENT_API_KEY": served_api.key,
        },
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_commands_that_send_do_so(served_api: ServedApi, work_dir: Path) -> None:
    # Nobody reads the documents here, so nobody can wait for that.
    sending = BLOCKS[0].replace(" --wait ", " ")

    done = sh(work_dir, served_api, sending)

    assert done.returncode == 0, done.stderr
    assert {batch.name: batch.documents for batch in served_api.client.batches()} == {
        "letters 1911": 2,
        "ledgers": 2,
        "ledgers-2": 1,
        "box 12": 1,
        "box 13": 2,
    }
    assert (work_dir / "out" / "ledgers-2.csv").is_file()


def test_the_commands_that_ask_about_a_batch_do_so(served_api: ServedApi, work_dir: Path) -> None:
    batch = served_api.client.create_batch("boxes")
    served_api.client.submit(work_dir / "letters" / "a.pdf", batch_id=batch.id)
    served_api.client.cancel_document(next(served_api.client.documents()).id)

    # Nothing failed here, and --failed leaves out what was cancelled.
    asking = BLOCKS[1].replace("BATCH", str(batch.id)).replace(" --failed ", " ")
    done = sh(work_dir, served_api, asking)

    assert done.returncode == 0, done.stderr
    assert (work_dir / "report.csv").read_text().count("\n") == 2
    assert [each.state for each in served_api.client.documents()] == ["queued"]


def test_the_commands_about_a_bucket_do_so(
    served_api: ServedApi, work_dir: Path, scans: S3Bucket, s3_bucket: S3Bucket
) -> None:
    def renamed(text: str) -> str:
        return text.replace("s3://scans/", f"s3://{scans.name}/")

    put_all(scans, ["in/1911/a.pdf", "in/1911/b.pdf"])
    put_all(scans, ["in/ledgers.csv"], body=lambda _: renamed(MANIFEST[1]).encode())
    store = open_store(s3_bucket)

    with listing_in_thread(served_api.database, store, rules_for(scans, lease_s=60)):
        done = sh(work_dir, served_api, renamed(BLOCKS[2]))
    store.close()

    assert done.returncode == 0, done.stderr
    assert {batch.name: batch.documents for batch in served_api.client.batches()} == {
        "letters 1911": 3,  # the manifest lies under the prefix too
        "ledgers": 2,
    }


def test_the_guide_has_no_other_commands() -> None:
    assert len(BLOCKS) == 3
    assert len(MANIFEST) == 2
