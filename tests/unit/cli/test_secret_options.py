from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.secret_options import read_secret


def test_the_first_line_of_a_file_is_the_secret(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("pf_hush  \nmore\n")

    assert read_secret(None, tmp_path / "key", label="API key") == "pf_hush  "


def test_without_an_option_there_is_no_secret() -> None:
    assert read_secret(None, None, label="API key") is None


@pytest.mark.parametrize("content", ["", "\n", b"\xff"])
def test_a_file_without_a_secret_is_an_error_that_names_it(
    tmp_path: Path, content: str | bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(CommandError, match=str(file)) as refused:
        read_secret(None, file, label="API key")

    assert refused.value.exit_code == 2


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=str(tmp_path / "none")):
        read_secret(None, tmp_path / "none", label="API key")


def test_a_secret_that_is_given_twice_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="given twice") as refused:
        read_secret("hush", tmp_path / "key", label="API key")

    assert "hush" not in str(refused.value)
