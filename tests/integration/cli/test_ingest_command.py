"""``pagefleet ingest`` on a real API."""

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from cli.client import ApiClient
from cli.ingest import content
from cli.ingest.archives import ArchiveLimits
from cli.ingest.journal import Journal
from cli.ingest.patience import Patience
from cli.ingest.run import run
from cli.ingest.source import source_of
from cli.ingest.upload import Uploader
from cli.main import app
from db.models import Batch, Document
from tests.integration.cli.conftest import ServedApi
from tests.support.commands import ROOT, measure_pagefleet
from tests.support.processes import wait_until

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings", "_work_dir")


@pytest.fixture
def _work_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder


def pdf(text: object) -> bytes:
    return b"%PDF-1.7\n" + f"{text}".encode() * 50


def ingest(source: Path, *options: str, exit_code: int = 0) -> str:
    result = runner.invoke(app, ["ingest", str(source), "--batch", "boxes", *options])
    assert result.exit_code == exit_code, result.output
    return result.stdout


def report_lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("ingest-report.ndjson").read_text().splitlines()]


def report() -> dict[str, dict[str, Any]]:
    """Return the lines of the report by path; the test fails where a path is there twice."""
    lines = report_lines()
    with Path("ingest-report.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["document_id"] or None for row in rows] == [each["document_id"] for each in lines]
    assert len({each["path_bytes"] or each["path"] for each in lines}) == len(lines)
    return {each["path"]: each for each in lines}


def states() -> dict[str, tuple[str, str | None]]:
    return {path: (each["state"], each["error_code"]) for path, each in report().items()}


def documents(api: ServedApi) -> list[Document]:
    with api.database.transaction() as session:
        return session.query(Document).order_by(Document.filename).all()


def test_a_folder_is_sent_and_every_file_accounted_for(served_api: ServedApi, folder: Path) -> None:
    (folder / "1911").mkdir()
    (folder / "1911" / "a.pdf").write_bytes(pdf("a"))
    (folder / "b.pdf").write_bytes(pdf("b"))
    (folder / "copy-of-b.pdf").write_bytes(pdf("b"))
    (folder / "empty.pdf").touch()
    (folder / "notes.txt").write_text("no document")
    (folder / "link.pdf").symlink_to("b.pdf")
    os.mkfifo(folder / "pipe.pdf")

    ingest(folder, exit_code=1)

    assert states() == {
        "1911/a.pdf": ("queued", None),
        "b.pdf": ("queued", None),
        "copy-of-b.pdf": ("duplicate", None),
        "empty.pdf": ("refused", "empty"),
        "link.pdf": ("refused", "link"),
        "notes.txt": ("skipped", "unsupported_media_type"),
        "pipe.pdf": ("refused", "not_a_file"),
    }
    assert report()["copy-of-b.pdf"]["document_id"] == report()["b.pdf"]["document_id"]
    assert [(each.filename, each.priority) for each in documents(served_api)] == [
        ("a.pdf", "bulk"),
        ("b.pdf", "bulk"),
    ]


def test_a_second_run_sends_what_is_new_and_nothing_twice(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    before = report()
    (folder / "b.pdf").write_bytes(pdf("b"))
    (folder / "c.pdf").write_bytes(pdf("a"))

    ingest(folder)

    assert report()["a.pdf"] == before["a.pdf"]
    assert states()["c.pdf"] == ("duplicate", None)
    assert [each.filename for each in documents(served_api)] == ["a.pdf", "b.pdf"]
    with served_api.database.transaction() as session:
        assert session.query(Batch).count() == 1


def test_a_file_that_was_written_again_is_another_document(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    (folder / "a.pdf").write_bytes(pdf("another"))

    ingest(folder)

    assert len(report()) == 1
    assert len(documents(served_api)) == 2


def test_odd_names_are_sent_and_told_apart(served_api: ServedApi, folder: Path) -> None:
    names = [
        b"a\nb.pdf",
        b"\xff.pdf",
        b"\xfe.pdf",
        b"=1+1.pdf",
        b'q"uote.pdf',
        b"back\\slash%41\r.pdf",
        b"x" * 240 + b".pdf",
    ]
    for number, name in enumerate(names):
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_bytes(pdf(number))

    ingest(folder)

    lines = report_lines()
    known = {
        bytes.fromhex(each["path_bytes"]) if each["path_bytes"] else each["path"].encode()
        for each in lines
    }
    assert known == set(names)
    assert {each["state"] for each in lines} == {"queued"}
    with Path("ingest-report.csv").open(newline="", encoding="utf-8") as file:
        assert "'=1+1.pdf" in {row["path"] for row in csv.DictReader(file)}
    assert len(documents(served_api)) == len(names)


def test_a_manifest_says_what_goes_with_each_file(served_api: ServedApi, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.pdf").write_bytes(pdf(name))
    (folder / "notes.txt").write_text("no document")
    manifest = folder / "manifest.csv"
    manifest.write_text(
        "path,id,metadata,options\n"
        'a.pdf,box-1,"{""shelf"": 3}","{""dpi"": 300}"\n'
        "b.pdf,box-2,,\n"
        "b.pdf,box-3,,\n"
        "b.pdf,box-3,,\n"
        "missing.pdf,,,\n"
        "notes.txt,,,\n"
        "s3://bucket/key.pdf,,,\n"
        'a.pdf,,"[1]",\n'
        'a.pdf,,,"{""dpi"": 7}"\n'
        "a.pdf,too,many,cells,\n",
    )

    ingest(manifest, exit_code=1)

    lines = report_lines()
    assert [(each["external_id"], each["state"], each["error_code"]) for each in lines] == [
        ("box-1", "queued", None),
        ("box-2", "queued", None),
        ("box-3", "queued", None),
        ("box-3", "duplicate", None),
        (None, "refused", "unreadable"),
        (None, "refused", "unsupported_media_type"),
        (None, "refused", "unsupported_source"),
        (None, "refused", "invalid_row"),
        (None, "refused", "invalid_request"),
        (None, "refused", "invalid_row"),
    ]
    sent = {each.external_id: each for each in documents(served_api)}
    assert set(sent) == {"box-1", "box-2", "box-3"}
    assert (sent["box-1"].user_metadata, sent["box-1"].options["dpi"]) == ({"shelf": 3}, 300)


def test_rows_of_a_manifest_may_move_between_two_runs(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    manifest = folder / "m.ndjson"
    row = json.dumps({"path": "a.pdf", "id": 7, "metadata": {"x": "ä"}})
    manifest.write_text(f"{row}\n")
    ingest(manifest)
    manifest.write_text(f'{{"path": "a.pdf"}}\nno json\n\n{row}\n')

    ingest(manifest, exit_code=1)

    assert sorted(each["state"] for each in report_lines()) == ["queued", "queued", "refused"]
    assert sorted(each.external_id or "" for each in documents(served_api)) == ["", "7"]


@pytest.mark.parametrize("name", ["box.zip", "box.tar", "box.tar.gz", "box.tar.xz"])
def test_the_members_of_an_archive_are_sent(
    served_api: ServedApi, tmp_path: Path, name: str
) -> None:
    archive = tmp_path / name
    members = {"1911/a.pdf": pdf("a"), "../../b.pdf": pdf("b"), "c.pdf": pdf("b"), "e.pdf": b""}
    write_archive(archive, members)

    ingest(archive, exit_code=1)
    again = ingest(archive, exit_code=1)

    assert states() == {
        f"{name}!/1911/a.pdf": ("queued", None),
        f"{name}!/../../b.pdf": ("queued", None),
        f"{name}!/c.pdf": ("duplicate", None),
        f"{name}!/e.pdf": ("refused", "empty"),
    }
    assert "4 files" in again
    assert [each.filename for each in documents(served_api)] == ["a.pdf", "b.pdf"]


def write_archive(archive: Path, members: dict[str, bytes]) -> None:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in members.items():
                packed.writestr(name, content)
        return
    mode = {".tar": "w", ".gz": "w:gz", ".xz": "w:xz"}[archive.suffix]
    with tarfile.open(archive, mode) as packed:  # type: ignore[call-overload] # one of its modes
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))


def test_archives_in_a_folder_and_in_archives_are_opened(
    served_api: ServedApi, folder: Path
) -> None:
    inner = folder / "inner.zip"
    write_archive(inner, {"a.pdf": pdf("a")})
    write_archive(folder / "outer.tar.gz", {"inner.zip": inner.read_bytes(), "b.pdf": pdf("b")})
    (folder / "office.docx").write_bytes(inner.read_bytes())
    (folder / "false.zip").write_bytes(pdf("c"))

    ingest(folder, "--max-nesting", "2")

    assert states() == {
        "false.zip": ("queued", None),
        "inner.zip!/a.pdf": ("queued", None),
        "office.docx": ("skipped", "unsupported_media_type"),
        "outer.tar.gz!/inner.zip!/a.pdf": ("duplicate", None),
        "outer.tar.gz!/b.pdf": ("queued", None),
    }
    assert len(documents(served_api)) == 3


def test_a_dry_run_sends_nothing(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    (folder / "b.pdf").write_bytes(pdf("a"))
    (folder / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "empty.pdf").touch()
    (folder / "notes.txt").write_text("no document")

    lines = [json.loads(line) for line in ingest(folder, "--dry-run", "--json").splitlines()]

    assert lines[-1] == {
        "files": 2,
        "size_bytes": 108 + (folder / "a.pdf").stat().st_size,
        "pages": 1,
        "estimated_pages": 1,
        "duplicates": 1,
        "refused": {"empty": 1},
        "skipped": 1,
        "seconds": None,
    }
    assert {line["path"] for line in lines[:-1]} == {"empty.pdf", "notes.txt"}
    assert documents(served_api) == []
    assert list(Path().iterdir()) == []


def test_a_file_that_changes_while_it_is_sent_is_named_and_leaves_no_document(
    served_api: ServedApi, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    opened = content.FileContent.open

    def change_first(self: content.FileContent, digest: content.Digest) -> content.CheckedStream:
        self.path.write_bytes(pdf("b"))
        return opened(self, digest)

    monkeypatch.setattr(content.FileContent, "open", change_first)

    ingest(folder, exit_code=1)

    assert states() == {"a.pdf": ("failed", "changed")}
    assert documents(served_api) == []


@pytest.mark.parametrize("name", ["nothing", "a.pdf", "broken.zip", "columns.csv"])
def test_what_is_no_source_is_a_wrong_command_line(folder: Path, name: str) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    (folder / "broken.zip").write_bytes(b"no archive")
    (folder / "columns.csv").write_text("path,colour\na.pdf,red\n")

    ingest(folder / name, exit_code=2)


def test_a_batch_goes_on_with_its_options(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))

    ingest(folder, "--options", '{"dpi": 300}')
    ingest(folder, exit_code=2)

    assert [each.options["dpi"] for each in documents(served_api)] == [300]


def test_a_cancelled_batch_ends_the_run_with_a_remedy(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    (batch,) = served_api.client.batches()
    served_api.client.cancel_batch(batch.id)
    (folder / "b.pdf").write_bytes(pdf("b"))

    result = runner.invoke(app, ["ingest", str(folder), "--batch", "boxes"])

    assert result.exit_code == 1
    assert "takes no further documents" in result.stderr


def forget(*statements: str) -> None:
    """Put the journal into the state that a kill between two of its lines leaves."""
    (path,) = (Path.cwd().parent / "ingest").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize(
    "statements",
    [
        [
            "UPDATE contents SET document_id = NULL, owner = NULL",
            "UPDATE entries SET state = 'pending'",
        ],
        ["UPDATE entries SET state = 'pending', identity = NULL", "DELETE FROM contents"],
        [
            "DELETE FROM entries",
            "DELETE FROM contents",
            "DELETE FROM facts WHERE name = 'batch_id'",
        ],
    ],
    ids=["after the upload", "before the claim", "after the batch"],
)
def test_what_was_not_noted_is_found_again(
    served_api: ServedApi, folder: Path, statements: list[str]
) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.pdf").write_bytes(pdf(name))
    (folder / "copy.pdf").write_bytes(pdf("a"))
    ingest(folder)
    before = report()
    forget(*statements)

    ingest(folder)

    assert {path: each["document_id"] for path, each in report().items()} == {
        path: each["document_id"] for path, each in before.items()
    }
    assert len(documents(served_api)) == 2
    assert len(list(served_api.client.batches())) == 1


def test_the_first_name_of_a_content_stands_though_its_file_has_gone(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    (folder / "b.pdf").write_bytes(pdf("a"))
    ingest(folder)
    forget(
        "UPDATE contents SET document_id = NULL, owner = NULL",
        "UPDATE entries SET state = 'pending'",
    )
    (folder / "a.pdf").unlink()

    ingest(folder)

    assert states() == {"b.pdf": ("queued", None)}
    assert [each.filename for each in documents(served_api)] == ["a.pdf"]


def test_a_second_process_with_the_same_journal_is_refused(
    served_api: ServedApi, folder: Path, tmp_path: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))

    with Journal(tmp_path / "journal.sqlite"):
        result = runner.invoke(
            app,
            ["ingest", str(folder), "--batch", "b", "--journal", str(tmp_path / "journal.sqlite")],
        )

    assert result.exit_code == 1
    assert "another process" in result.stderr
    assert documents(served_api) == []


@pytest.mark.parametrize("name", ["box.zip", "box.tar.gz"])
def test_a_large_archive_takes_little_memory(
    served_api: ServedApi, tmp_path: Path, name: str
) -> None:
    archive = tmp_path / name
    write_archive(
        archive, {f"{number}.pdf": pdf(number) + os.urandom(25 * 2**20) for number in range(4)}
    )

    done = measure_pagefleet(
        "ingest",
        archive,
        *("--batch", "large", "--api-url", served_api.url),
        work_dir=tmp_path,
        PAGEFLEET_HOME=str(tmp_path),
        PAGEFLEET_CLIENT_API_KEY=served_api.key,
    )

    assert done.returncode == 0, done.stderr
    assert archive.stat().st_size > 100 * 10**6
    assert done.peak_mib < 300
    assert len(documents(served_api)) == 4


def test_a_full_api_is_waited_for(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    refusals = [503, 429]

    def refuse_first(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path == "/v1/documents" and refusals:
            request.read()
            return httpx.Response(
                refusals.pop(), json={"code": "system_full"}, headers={"Retry-After": "1"}
            )
        return network.handle_request(request)

    network = httpx.HTTPTransport()
    journal = folder.parent / "journal.sqlite"
    with (
        network,
        ApiClient(
            served_api.url, served_api.key, transport=httpx.MockTransport(refuse_first)
        ) as client,
        Journal(journal) as kept,
    ):
        batch = client.create_batch("boxes")
        stop = threading.Event()
        said: list[str] = []
        tally = run(
            source_of(folder, ArchiveLimits()),
            journal=kept,
            uploader=Uploader(
                client, kept, batch.id, Patience(stop, max_wait_s=60, report=said.append)
            ),
            senders=2,
            stop=stop,
            report=lambda *_: None,
        )

    assert tally.states == {"sent": 1}
    assert len(said) == 2
    assert refusals == []
    assert len(documents(served_api)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_was_stopped_goes_on(
    served_api: ServedApi, folder: Path, number: signal.Signals
) -> None:
    for each in range(60):
        (folder / f"{each}.pdf").write_bytes(pdf(each % 50) + bytes(2**18))
    with subprocess.Popen(  # noqa: S603 - our own program
        [
            *(sys.executable, "-m", "cli", "ingest"),
            str(folder),
            *("--batch", "boxes", "--jobs", "2"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: len(documents(served_api)) > 3, timeout_s=60)
        process.send_signal(number)
        process.communicate(timeout=60)
    stopped_at = len(documents(served_api))

    ingest(folder)

    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert stopped_at < 50
    assert len(documents(served_api)) == 50
    assert len(report()) == 60
    assert len(list(served_api.client.batches())) == 1
