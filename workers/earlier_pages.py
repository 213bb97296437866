"""Read the stored pages of an earlier document, whole or not at all, to serve them once more."""

import gzip
import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from db.pages import PagePlace
from storage.errors import StorageError, StorageUnavailableError
from storage.object_store import ObjectStore


class EarlierPagesLostError(Exception):
    """The pages are gone, damaged, or not handed out; whoever asked has to read for itself."""


def read_earlier(
    store: ObjectStore, places: Sequence[PagePlace]
) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the bytes of pages that lie one behind the other, and their page objects.

    Every page is unpacked, which checks it: a fault must not go on from document to document.

    Args:
        store: of the page results.
        places: in one object, in its order, without gaps; not empty.

    Raises:
        EarlierPagesLostError: they cannot be read, or are no pages.
        StorageUnavailableError: the store is away.
    """
    key, start, stop = places[0].result_key, places[0].start, places[-1].stop
    try:
        body = store.read_range(key, start=start, stop=stop)
        pages = [
            orjson.loads(gzip.decompress(body[place.start - start : place.stop - start]))
            for place in places
        ]
    except StorageUnavailableError:
        raise
    except (StorageError, EOFError, OSError, zlib.error, orjson.JSONDecodeError) as error:
        raise EarlierPagesLostError from error
    return body, pages
