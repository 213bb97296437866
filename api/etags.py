"""Entity tags and the question whether the client has the newest version already."""

import hashlib


def etag_of(*parts: str | bytes) -> str:
    """Return a strong entity tag that is equal exactly when the parts are."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return f'"{digest.hexdigest()[:32]}"'


def headers_of(etag: str) -> dict[str, str]:
    """Return the headers of an answer that only its reader may keep, and has to ask about first."""
    return {"ETag": etag, "Cache-Control": "private, no-cache"}


def matches(if_none_match: str | None, etag: str) -> bool:
    """Say whether an ``If-None-Match`` header names the tag.

    The comparison is weak, as RFC 9110, section 13.1.2 asks: a proxy that compresses a body
    makes its tag weak.
    """
    if if_none_match is None:
        return False
    named = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return "*" in named or etag in named
