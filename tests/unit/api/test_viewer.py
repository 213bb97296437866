"""The files of the viewer, as they are served."""

import re
from pathlib import Path

import pytest

from api.app import describe_only
from tests.support.asgi import ask

FOLDER = Path(__file__).parents[3] / "api/viewer"
APP = describe_only()


def test_the_page_is_served_without_a_key_and_may_load_from_here_alone() -> None:
    answer = ask(APP, "GET", "/")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_every_file_is_served_and_asks_nobody_else(path: Path) -> None:
    answer = ask(APP, "GET", f"/viewer/{path.name}")
    again = ask(
        APP, "GET", f"/viewer/{path.name}", headers={"If-None-Match": answer.headers["ETag"]}
    )

    assert (answer.status_code, answer.content) == (200, path.read_bytes())
    assert again.status_code == 304
    addresses = set(re.findall(r"https?://[^\s\"'<]+", path.read_text()))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_every_file_that_the_page_names_is_there() -> None:
    named = set()
    for path in FOLDER.iterdir():
        named |= set(re.findall(r"/viewer/([\w.]+)", path.read_text()))
        named |= set(re.findall(r"from \"\./([\w.]+)\"", path.read_text()))

    assert named == {path.name for path in FOLDER.iterdir()} - {"index.html"}


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fapp.py", "%2e%2e/app.py"])
def test_no_other_file_is_served(name: str) -> None:
    assert ask(APP, "GET", f"/viewer/{name}").status_code == 404


def test_no_text_is_ever_made_markup() -> None:
    for path in FOLDER.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", path.read_text()
        )
