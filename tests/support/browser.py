"""A real browser for the viewer: Chromium without a window."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import ConsoleMessage, Page, Request, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SIZE = {"width": 1400, "height": 900}


@dataclass
class Visit:
    """A page of a browser, and what happened in it."""

    page: Page
    addresses: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def require_chromium() -> str:
    """Return the program's path; skip on a laptop without it, fail where CI is set."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    if os.environ.get("CI"):
        pytest.fail("CI has no Chromium; .ci/run installs it")
    pytest.skip("no Chromium is installed (Debian: apt install chromium)")


@contextmanager
def browser_page() -> Iterator[Visit]:
    """Open an empty page; errors of scripts, and all addresses that are asked for, are noted."""
    program = require_chromium()
    with sync_playwright() as playwright:
        # As root, as in a container, its own sandbox cannot start; the pages are ours.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            page = browser.new_context(viewport=_SIZE, accept_downloads=True).new_page()  # type: ignore[arg-type]
            visit = Visit(page)
            page.on("pageerror", lambda error: visit.errors.append(str(error)))
            page.on("console", lambda message: _note_refusal(visit, message))
            page.on("request", lambda request: _note_address(visit, request))
            yield visit
        finally:
            browser.close()


def _note_refusal(visit: Visit, message: ConsoleMessage) -> None:
    # Answers of the server that are errors are told here too, and are not the page's.
    if message.type == "error" and "Content Security Policy" in message.text:
        visit.errors.append(message.text)


def _note_address(visit: Visit, request: Request) -> None:
    visit.addresses.append(request.url)
