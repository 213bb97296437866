"""What the viewer says to somebody whose key does not do."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from db import api_keys
from db.scopes import Scope
from tests.support.browser import Visit, browser_page
from tests.support.fleet import READY_TIMEOUT_S, TENANT, Fleet
from tests.support.text_pdfs import prose_page

TIMEOUT_MS = READY_TIMEOUT_S * 1_000


@pytest.fixture
def visit(idle_fleet: Fleet) -> Iterator[Visit]:
    """The viewer of an API that is alone."""
    idle_fleet.start("api", "api", PAGEFLEET_API_KEY_CACHE_S="0")
    idle_fleet.wait_for_api()
    with browser_page() as visit:
        visit.page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        visit.page.goto(f"{idle_fleet.api_url}/")
        yield visit
        assert visit.errors == []


def make_key(fleet: Fleet, **values: Any) -> str:
    with fleet.database.transaction() as session:
        return api_keys.create(session, tenant=TENANT, name="viewer", **values)


def enter(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")


def test_an_expired_key_is_named_and_another_one_asked_for(idle_fleet: Fleet, visit: Visit) -> None:
    page = visit.page
    key = make_key(idle_fleet, expires_in=timedelta(seconds=0.001))

    enter(page, key)

    expect(page.locator("#notice")).to_contain_text("has expired")
    expect(page.get_by_label("API key")).to_be_focused()
    enter(page, idle_fleet.key)
    expect(page.locator("#no-documents")).to_be_visible()
    expect(page.locator("#notice")).to_have_text("")


def test_a_key_without_the_scope_is_told_which_one_and_may_still_send(
    idle_fleet: Fleet, visit: Visit
) -> None:
    page = visit.page
    page.clock.install()
    page.reload()
    document, _ = prose_page()

    enter(page, make_key(idle_fleet, scopes=[Scope.WRITE]))
    expect(page.locator("#notice")).to_contain_text("lacks the scope 'read'")
    asked = len(visit.addresses)
    page.locator("#files").set_input_files({
        "name": "a.pdf",
        "mimeType": "application/pdf",
        "buffer": document.tobytes(),
    })

    expect(page.locator("#uploads li")).to_contain_text("sent")
    # What will be refused again is not asked for again.
    page.clock.run_for(3_500)
    page.evaluate("null")  # whatever was asked for before is noted by now
    assert len(visit.addresses) == asked + 1

    page.get_by_role("button", name="Forget key").click()
    enter(page, make_key(idle_fleet, scopes=[Scope.READ]))
    page.get_by_role("link", name="a.pdf").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#notice")).to_contain_text("lacks the scope 'write'")


def test_a_key_that_asks_too_often_is_told_so_and_the_page_goes_on(
    idle_fleet: Fleet, visit: Visit
) -> None:
    page = visit.page
    # The page asks every second and a half.
    enter(page, make_key(idle_fleet, max_requests_per_minute=12))
    expect(page.locator("#no-documents")).to_be_visible()

    expect(page.locator("#notice")).to_contain_text("12 requests a minute")
    expect(page.locator("#notice")).to_contain_text("goes on in")

    expect(page.locator("#notice")).to_have_text("")
    expect(page.locator("#list-view")).to_be_visible()
