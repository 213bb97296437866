"""The viewer in a real browser, on a whole fleet, with clicks and keys."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pymupdf
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.support.browser import Visit, browser_page
from tests.support.fleet import READY_TIMEOUT_S, Fleet
from tests.support.text_pdfs import PROSE, prose_page, write_lines

TIMEOUT_MS = READY_TIMEOUT_S * 1_000
MARKUP = '<img src=x onerror="document.title=1"> & <b>bold</b>'
HOSTILE_NAME = '"><img src=x onerror="document.title=1">.pdf'


@pytest.fixture
def visit(fleet: Fleet) -> Iterator[Visit]:
    """The viewer, open and with the key that it was given."""
    fleet.start("exporter", "worker", "--queues", "export", "--slots", "1")
    with browser_page() as visit:
        visit.page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        visit.page.goto(f"{fleet.api_url}/")
        visit.page.get_by_label("API key").fill(fleet.key)
        visit.page.keyboard.press("Enter")
        yield visit


def two_pages() -> bytes:
    """Return a PDF whose first page is prose, and whose second one is words that are markup."""
    document, _ = prose_page()
    write_lines(document.new_page(width=595, height=842), [MARKUP, *PROSE])
    return bytes(document.tobytes())


def drop(page: Page, name: str, body: bytes) -> None:
    """Let a file fall onto the page, as a hand that holds it would."""
    content = base64.b64encode(body).decode()
    files = page.evaluate_handle(
        """([name, content]) => {
          const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
          const files = new DataTransfer();
          files.items.add(new File([bytes], name, { type: "application/pdf" }));
          return files;
        }""",
        [name, content],
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": files})


def shown_size(page: Page) -> tuple[int, int]:
    width, height = page.locator("#page-image").evaluate("e => [e.naturalWidth, e.naturalHeight]")
    return width, height


def test_a_document_is_dropped_watched_and_read_beside_its_image(
    fleet: Fleet, visit: Visit, tmp_path: Path
) -> None:
    page = visit.page

    drop(page, "logbook.pdf", two_pages())
    row = page.locator("#documents tr")
    expect(row.locator("td").nth(1)).to_have_text("read")
    page.get_by_role("link", name="logbook.pdf").click()

    expect(page.locator("#frame")).to_be_visible()
    document_id = page.url.split("/")[-2]
    result = fleet.result(document_id)  # type: ignore[arg-type] # as it stands in an address
    first = result["pages"][0]
    assert shown_size(page) == (first["width_px"], first["height_px"])
    texts = page.locator("#lines li").all_text_contents()
    assert texts == [first["lines"][each]["text"] for each in first["reading_order"]]
    assert texts[0] == PROSE[0]
    assert page.locator("#polygons polygon").count() == len(texts)

    # The second line, by keys; its polygon lies where the line is on the image.
    page.mouse.move(1, 1)  # where it rested, another line may be
    page.keyboard.press("t")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#lines li").nth(1)).to_be_focused()
    marked = page.locator("#polygons .is-marked")
    expect(marked).to_have_count(1)
    corner_x, corner_y = marked.evaluate(
        "e => { const p = e.points[0].matrixTransform(e.getScreenCTM()); return [p.x, p.y]; }"
    )
    frame = page.locator("#page-image").bounding_box()
    assert frame is not None
    left, top = first["lines"][first["reading_order"][1]]["polygon"][0]
    scale = frame["width"] / first["width_px"]
    assert (corner_x - frame["x"], corner_y - frame["y"]) == pytest.approx(
        (left * scale, top * scale), abs=1
    )
    # And from the image to the text, by hand.
    page.locator("#polygons polygon").nth(3).hover()
    expect(page.locator("#lines li").nth(3)).to_have_class("is-marked")

    screenshot = page.screenshot(path=tmp_path / "viewer.png")
    with Image.open(io.BytesIO(screenshot)) as image:
        assert len(image.convert("RGB").getcolors(2**24) or ()) > 20

    # What is recognized is text and nothing else.
    page.keyboard.press("n")
    expect(page.locator("#lines li").first).to_have_text(MARKUP)
    assert page.locator("#lines b, #lines img").count() == 0

    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    assert json.loads(Path(download.value.path()).read_text()) == result
    assert download.value.suggested_filename == "logbook.json"
    # One that a worker has to make first.
    page.get_by_label("Save as").select_option("pdf")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    with pymupdf.open(download.value.path(), filetype="pdf") as searchable:
        assert PROSE[0] in searchable[0].get_text()
    assert download.value.suggested_filename == "logbook.searchable.pdf"

    assert visit.errors == []
    outside = [each for each in visit.addresses if not each.startswith((fleet.api_url, "blob:"))]
    assert outside == []
    assert not any(fleet.key in each for each in visit.addresses)


def test_files_that_are_refused_or_fail_say_why_and_keys_are_enough(
    fleet: Fleet, visit: Visit
) -> None:
    page = visit.page
    encrypted = pymupdf.open("pdf", two_pages())
    locked = encrypted.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="a", owner_pw="b")

    page.locator("#files").set_input_files({
        "name": HOSTILE_NAME,
        "mimeType": "application/pdf",
        "buffer": b"no PDF",
    })
    expect(page.locator("#uploads")).to_contain_text("neither a PDF")
    expect(page.locator("#uploads")).to_contain_text("<img src=x")
    assert page.locator("#uploads img").count() == 0
    drop(page, "locked.pdf", locked)
    expect(page.locator("#documents tr td").nth(1)).to_have_text("failed")
    expect(page.locator("#documents small")).to_contain_text("password")

    # From the list into the document, and back, without a mouse.
    page.locator("#files").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#document-name")).to_be_focused()
    expect(page.locator("#document-error")).to_contain_text("password")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("u")
    expect(page.locator("#list-view")).to_be_visible()

    # The file is still at hand: with its password it is sent again.
    page.get_by_label("Password").fill("a")
    page.keyboard.press("Enter")
    expect(page.locator("#documents tr")).to_have_count(2)
    expect(page.locator("#documents tr").first.locator("td").nth(1)).to_have_text("read")
    assert page.get_by_label("Password").count() == 0

    page.get_by_role("button", name="Forget key").click()
    page.get_by_label("API key").fill("pf_wrong_key")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("valid key")
    expect(page.get_by_label("API key")).to_be_focused()
    page.goto(f"{fleet.api_url}/#key={fleet.key}")
    page.reload()
    expect(page.locator("#list-view")).to_be_visible()
    assert page.url == f"{fleet.api_url}/#/"

    # A link of somebody else's brings a key that is not taken unasked.
    page.goto(f"{fleet.api_url}/#key=pf_other_key")
    expect(page.get_by_label("API key")).to_have_value("pf_other_key")
    expect(page.locator("#notice")).to_contain_text("only if it is yours")
    page.reload()
    expect(page.locator("#list-view")).to_be_visible()
    elsewhere = page.context.new_page()
    elsewhere.goto(f"{fleet.api_url.replace('127.0.0.1', 'archive.localhost')}/#key={fleet.key}")
    expect(elsewhere.locator("#key-view")).to_be_visible()
    elsewhere.keyboard.press("Enter")
    expect(elsewhere.locator("#list-view")).to_be_visible()
    assert visit.errors == []
