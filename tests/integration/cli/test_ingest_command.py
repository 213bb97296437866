"""``pagefleet ingest`` on a real API: what becomes of each file of a source."""

import csv
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from cli.ingest import content
from cli.main import app
from db.documents import fail
from tests.support.api_server import ServedApi
from tests.support.commands import measure_pagefleet
from tests.support.ingest import documents, ingest, pdf, report, report_lines, runner, states
from tests.support.rows import claim_split

pytestmark = pytest.mark.usefixtures("client_settings", "ingest_work_dir")


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


def test_what_failed_is_reported_with_its_message_and_the_remedy_is_named(
    served_api: ServedApi, folder: Path
) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.pdf").write_bytes(pdf(name))
    (folder / "copy.pdf").write_bytes(pdf("a"))
    ingest(folder)
    for document in documents(served_api):
        with served_api.database.transaction() as session:
            claim = claim_split(session, document.id)
            fail(session, claim, code="encrypted", detail="Send it with its password.")

    result = runner.invoke(app, ["ingest", str(folder), "--batch", "boxes"])

    assert result.exit_code == 1
    assert report()["a.pdf"]["message"] == "Send it with its password."
    assert "encrypted, 2 files: Send it with its password." in result.stderr
    assert "1 file is the same as another" in result.stdout
    assert f"report: {Path('ingest-report.csv').absolute()}" in result.stdout


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
