from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.stack.folder_lock import FolderLock
from cli.stack.state import stack_folder
from tests.support.commands import run_pagefleet

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run every command in an environment that names nothing."""
    for name in ("DATABASE_URL", "REDIS_URL", "S3_BUCKET", "CLIENT_API_URL", "CLIENT_API_KEY"):
        monkeypatch.delenv(f"PAGEFLEET_{name}", raising=False)
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))


def test_every_command_has_help() -> None:
    listed = runner.invoke(app, ["--help"])

    assert listed.exit_code == 0
    assert "ocr" in listed.output
    assert "Run the stack on this machine" in listed.output
    assert "The parts, one by one" in listed.output


def test_an_unknown_command_exits_with_2() -> None:
    assert runner.invoke(app, ["ocrr"]).exit_code == 2


def test_a_missing_setting_is_listed_and_exits_with_2() -> None:
    result = runner.invoke(app, ["worker"])

    assert result.exit_code == 2
    assert "PAGEFLEET_DATABASE_URL" in result.stderr
    assert "PAGEFLEET_S3_BUCKET" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_misspelt_setting_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_DEVISE", "cpu")

    result = runner.invoke(app, ["ocr", "a.pdf"])

    assert result.exit_code == 2
    assert "PAGEFLEET_DEVISE is not a setting" in result.stderr


def test_an_unknown_queue_exits_with_2() -> None:
    result = runner.invoke(app, ["worker", "--queues", "recognise"])

    assert result.exit_code == 2
    assert "recognise" in result.stderr


def test_an_unknown_format_exits_with_2() -> None:
    result = runner.invoke(app, ["ocr", "a.pdf", "--format", "docx"])

    assert result.exit_code == 2
    assert "json, text" in result.stderr


def test_an_unknown_mode_exits_with_2() -> None:
    result = runner.invoke(app, ["ocr", "a.pdf", "--mode", "fast"])

    assert result.exit_code == 2
    assert "auto, ocr, text" in result.stderr


def test_an_unknown_text_order_exits_with_2() -> None:
    result = runner.invoke(app, ["ocr", "a.pdf", "--text-order", "rows"])

    assert result.exit_code == 2
    assert "reading, file" in result.stderr


def test_an_unknown_engine_of_a_benchmark_exits_with_2(tmp_path: Path) -> None:
    result = runner.invoke(app, ["bench", "ocr", "--engines", "onnx", "--corpus", str(tmp_path)])

    assert result.exit_code == 2
    assert "onnxruntime, openvino" in result.stderr


def test_a_folder_without_documents_is_an_error(tmp_path: Path) -> None:
    result = runner.invoke(app, ["ocr", str(tmp_path)])

    assert result.exit_code == 1
    assert "no documents were found" in result.stderr


def test_what_a_folder_holds_besides_documents_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no document")

    result = runner.invoke(app, ["ocr", str(tmp_path)])

    assert result.exit_code == 1
    assert "notes.txt)" in result.stderr


def test_status_without_an_api_says_how_to_start_one() -> None:
    result = runner.invoke(app, ["status"])

    assert result.exit_code == 2
    assert "pagefleet up" in result.stderr


@pytest.mark.parametrize("command", [["status"], ["keys", "list"]])
def test_a_stack_that_was_stopped_is_named_where_it_is_needed(
    tmp_path: Path, command: list[str]
) -> None:
    stack_folder(tmp_path).mkdir()

    result = runner.invoke(app, command)

    assert result.exit_code == 2
    assert f"the stack in {tmp_path} is not running" in result.stderr
    assert "pagefleet up" in result.stderr


def test_a_stack_that_starts_is_said_to_start(tmp_path: Path) -> None:
    stack_folder(tmp_path).mkdir()
    lock = FolderLock(stack_folder(tmp_path))
    lock.acquire()

    result = runner.invoke(app, ["status"])
    lock.release()

    assert result.exit_code == 2
    assert "does not serve: it is starting" in result.stderr


def test_status_of_something_that_is_no_id_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_URL", "http://127.0.0.1:9")

    result = runner.invoke(app, ["status", "latest"])

    assert result.exit_code == 2
    assert "'latest' is no id" in result.stderr
    assert "pagefleet status --batches" in result.stderr


def test_a_key_that_no_header_carries_exits_with_2() -> None:
    result = runner.invoke(app, ["status", "--api-url", "http://127.0.0.1:9", "--api-key", "pf_é"])

    assert result.exit_code == 2
    assert "the API key holds" in result.stderr
    assert "pf_" not in result.stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRETPW",
        "postgresql://u:p@SECRETPW:port/d",
        "mysql://u:SECRETPW@h/d",
        "SECRETPW",
        "postgresql://u:p@h:5432x/SECRETPW",
    ],
)
def test_a_database_address_that_is_none_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", url)

    result = runner.invoke(app, ["migrate"])

    assert result.exit_code == 2
    assert "PAGEFLEET_DATABASE_URL: Value error, must be an address of Postgres" in result.stderr
    assert "SECRETPW" not in result.output + result.stderr + str(result.exception)


INTERRUPT_AN_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


def test_ctrl_c_before_the_commands_are_imported_exits_with_130(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT_AN_IMPORT)

    done = run_pagefleet("--help", PYTHONPATH=str(tmp_path))

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_api_that_does_not_answer_exits_with_1() -> None:
    result = runner.invoke(app, ["status", "--api-url", "http://127.0.0.1:9"])

    assert result.exit_code == 1
    assert "does not answer" in result.stderr


def test_a_home_that_cannot_be_made_is_an_error_of_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path / "taken" / "home"))

    result = runner.invoke(app, ["up"])

    assert result.exit_code == 1
    assert "PAGEFLEET_HOME" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["ocr", "status"])
def test_help_does_not_recommend_secrets_as_arguments(command: str) -> None:
    shown = runner.invoke(app, [command, "--help"], terminal_width=200).output

    assert "'-' asks for the" in shown
    assert "TEXT" not in next(line for line in shown.splitlines() if "'-' asks" in line)


def test_an_unknown_profile_is_told_which_there_are_before_files_are_looked_for() -> None:
    result = runner.invoke(app, ["ocr", "a.pdf", "--profile", "tiny"])

    assert result.exit_code == 2
    assert "no profile is called 'tiny'" in result.stderr
    assert "The profiles are: balanced, fast; or a folder of your own models" in result.stderr


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_a_stack_without_models_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str]
) -> None:
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(tmp_path / "none"))

    result = runner.invoke(app, ["up", *options])

    assert result.exit_code == 1
    assert "pagefleet models fetch" in result.stderr
    assert not (tmp_path / "stack" / "postgres").exists()
