"""The plain text of a page object; without numpy, so that the API can use it too."""

from collections.abc import Mapping
from typing import Any


def page_text(page: Mapping[str, Any]) -> str:
    """Return a page object's text: a line a line, a blank line between blocks.

    Args:
        page: a page object; one of a failed page has no text.
    """
    lines = page.get("lines", ())
    return "\n\n".join(
        "\n".join(lines[line_id]["text"] for line_id in block["lines"])
        for block in page.get("blocks", ())
    )
