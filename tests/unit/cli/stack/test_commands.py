from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.stack.commands import stack_errors, start_detached
from cli.stack.state import logs_folder

FULL_DISK = Path("/dev/full")


@pytest.mark.skipif(not FULL_DISK.exists(), reason="a system without /dev/full")
def test_a_disk_that_is_full_is_named_when_the_stack_starts_in_the_background(
    tmp_path: Path,
) -> None:
    logs_folder(tmp_path).mkdir(parents=True)
    (logs_folder(tmp_path) / "up.log").symlink_to(FULL_DISK)

    with pytest.raises(CommandError, match="No space left on device"), stack_errors():
        start_detached(tmp_path, report=print)


def test_why_a_stack_in_the_background_does_not_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEFLEET_NONSENSE", "1")
    lines: list[str] = []

    with pytest.raises(CommandError, match="ended with 2 before it served") as refused:
        start_detached(tmp_path, report=lines.append)

    assert any("PAGEFLEET_NONSENSE is not a setting" in line for line in lines)
    assert str(logs_folder(tmp_path)) in refused.value.remedy
