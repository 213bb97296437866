"""Markdown: a heading for each page, a paragraph for each block, a line for each line."""

from collections.abc import Iterable, Iterator

from workers.ocr.exports.escaping import markdown_text
from workers.ocr.exports.page_view import Header, Page, blocks_of, notices


def markdown(header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield the document, a page a part; what is missing stands in a quotation under its page."""
    yield f"# {markdown_text(header['source']['filename'])}\n"
    for page in pages:
        yield "".join(_page(page))


def _page(page: Page) -> Iterator[str]:
    yield f"\n## Page {page['page_number']}\n"
    for notice in notices(page):
        yield f"\n> {markdown_text(notice)}\n"
    for block in blocks_of(page):
        yield "\n"
        for line in block.lines:
            yield f"{markdown_text(line.text)}\n"
