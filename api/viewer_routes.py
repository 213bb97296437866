"""The viewer: a page without a build step, that talks to this API and to nobody else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Response

from api import etags
from api.document_routes import IfNoneMatch
from api.errors import ApiError

_FOLDER: Final = Path(__file__).with_name("viewer")
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_NOT_MODIFIED = 304
# What the page shows comes from documents of strangers. Should any of it ever be taken for markup,
# nothing of it may run, load or be sent anywhere.
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _Asset:
    body: bytes
    media_type: str
    etag: str


def _read_assets() -> dict[str, _Asset]:
    return {
        path.name: _Asset(body, _MEDIA_TYPES[path.suffix], etags.etag_of(body))
        for path in sorted(_FOLDER.iterdir())
        if (body := path.read_bytes())
    }


# By name: no path of a request ever reaches the disk.
_ASSETS: Final = _read_assets()


@router.get("/")
def read_viewer(if_none_match: IfNoneMatch = None) -> Response:
    """Return the page that shows documents and takes new ones."""
    return _answer(_ASSETS["index.html"], if_none_match)


@router.get("/viewer/{name}")
def read_viewer_asset(name: str, if_none_match: IfNoneMatch = None) -> Response:
    """Return a script or style of the viewer.

    Raises:
        ApiError: there is none of this name.
    """
    asset = _ASSETS.get(name)
    if asset is None:
        raise ApiError("not_found")
    return _answer(asset, if_none_match)


def _answer(asset: _Asset, if_none_match: str | None) -> Response:
    headers = {
        "ETag": asset.etag,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _PAGE_POLICY,
    }
    if etags.matches(if_none_match, asset.etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
