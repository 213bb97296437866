"""Signatures as Standard Webhooks has them (https://www.standardwebhooks.com)."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

_PREFIX = "whsec_"


def sign(message_id: str, timestamp_s: int, body: bytes, *, secrets: Sequence[str]) -> str:
    """Return the header ``webhook-signature``: one signature a secret, with spaces between.

    Args:
        message_id: the header ``webhook-id``.
        timestamp_s: the header ``webhook-timestamp``, seconds since 1970.
        body: exactly what is sent.
        secrets: as ``whsec_`` and base64; two while a secret is being rotated.
    """
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return " ".join(
        f"v1,{base64.b64encode(hmac.digest(_key_of(secret), signed, hashlib.sha256)).decode()}"
        for secret in secrets
    )


def _key_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX))
