"""What makes two pages the same page to a reader, wherever they come from."""

import hashlib
from typing import Final

import numpy as np
import orjson

from workers.ocr.rendered_page import RenderedPage, page_to_json

READING: Final = 1
"""To be raised when the same models, or the same options, give a page or a document another text.

Nothing that was read before is served then: it is part of the keys of both caches.
"""


def page_digest(page: RenderedPage) -> bytes:
    """Return a SHA-256 over all of a page that its text follows from.

    That is its pixels, its size and resolution, its route, and the lines that its file states.
    Where it stands in its document, and how long it took to draw, is no part of it.
    """
    values = page_to_json(page)
    del values["render_s"]
    digest = hashlib.sha256(orjson.dumps(values))
    if page.pixels is not None:
        digest.update(np.ascontiguousarray(page.pixels).reshape(-1).data)
    return digest.digest()
