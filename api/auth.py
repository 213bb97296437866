"""Who is asking: an API key, the tenant that it belongs to, and what it may do."""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Annotated

import structlog
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.errors import ApiError
from api.request_log import add_headers, note_tenant
from api.scopes import SCOPE_DESCRIPTIONS, SCOPE_OF_OPERATION
from db import api_keys
from db.api_keys import Grant, Refusal
from db.engine import Transaction
from db.errors import DatabaseError

# A little wider than what db.api_keys makes. Anything else does not reach the database.
_WELL_FORMED_KEY = re.compile(rf"{api_keys.PREFIX}_[0-9a-zA-Z]{{1,64}}_[0-9a-zA-Z]{{1,128}}")
_CACHED_KEYS = 10_000
_CODES = {
    Refusal.UNKNOWN: "unauthenticated",
    Refusal.EXPIRED: "key_expired",
    Refusal.REVOKED: "key_revoked",
}
_CHALLENGE = 'Bearer realm="pagefleet"'

log = structlog.get_logger(__name__)

bearer = HTTPBearer(
    scheme_name="ApiKey",
    bearerFormat="pf_<id>_<secret>",
    description="An API key of the tenant whose documents are meant. It has one or more of the "
    f"scopes {'; '.join(f'`{scope}`: {text}' for scope, text in SCOPE_DESCRIPTIONS.items())}.",
    auto_error=False,
)


class Keyring:
    """Knows what a key allows; asks the database at most once in ``cache_s`` seconds a key.

    So a key that is revoked or changed works on as before for at most that long; one that expires
    does not. Only valid keys are remembered, and only as their hash.
    """

    def __init__(
        self,
        transaction: Transaction,
        *,
        cache_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transaction = transaction
        self._cache_s = cache_s
        self._clock = clock
        self._grants: OrderedDict[bytes, tuple[Grant, float]] = OrderedDict()
        self._lock = Lock()

    def look_up(self, key: str) -> Grant | Refusal:
        """Return what a key allows, or why it allows nothing.

        Raises:
            DatabaseError: the database cannot be asked.
        """
        if not _WELL_FORMED_KEY.fullmatch(key):
            return Refusal.UNKNOWN
        digest = hashlib.sha256(key.encode()).digest()
        now = self._clock()
        with self._lock:
            known = self._grants.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        with self._transaction() as session:
            found = api_keys.look_up(session, key)
        if isinstance(found, Grant):
            if found.is_use_due:
                self._note_use(found)
            self._remember(digest, found, now)
        return found

    def _note_use(self, grant: Grant) -> None:
        try:
            with self._transaction() as session:
                api_keys.note_use(session, grant.key_id)
        except DatabaseError:
            # Of a database that can be read and not written, documents can be read too.
            log.warning("use of a key not noted", key_id=grant.key_id)

    def _remember(self, digest: bytes, grant: Grant, now: float) -> None:
        cache_s = self._cache_s
        if grant.expires_in_s is not None:
            cache_s = min(cache_s, grant.expires_in_s)
        with self._lock:
            self._grants[digest] = (grant, now + cache_s)
            self._grants.move_to_end(digest)
            if len(self._grants) > _CACHED_KEYS:
                self._grants.popitem(last=False)


def grant_of_request(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Grant:
    """Return what the key that came with the request allows, if that includes the request.

    Raises:
        ApiError: there is no key, or it is not valid, asks too often, or may not do this.
    """
    services = request.app.state.services
    keyring: Keyring = services.keyring
    found = Refusal.UNKNOWN if credentials is None else keyring.look_up(credentials.credentials)
    if isinstance(found, Refusal):
        fault = "" if credentials is None else ', error="invalid_token"'
        raise ApiError(_CODES[found], headers={"WWW-Authenticate": f"{_CHALLENGE}{fault}"})
    note_tenant(request.scope, found.tenant)
    add_headers(request.scope, services.request_rates.require(found))
    # An operation that is not listed fails here: none is open by mistake.
    needed = SCOPE_OF_OPERATION[request.scope["route"].name]
    if needed is not None and needed not in found.scopes:
        raise ApiError(
            "missing_scope",
            detail=f"This key lacks the scope '{needed}', which this operation needs. Use a key "
            "that has it, or ask the operator for one.",
            headers={
                "WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{needed}"'
            },
            extra={"scope": needed},
        )
    return found


async def tenant_of_request(grant: Annotated[Grant, Depends(grant_of_request)]) -> str:
    """Return the tenant whose key came with the request."""
    return grant.tenant


async def key_id_of_request(grant: Annotated[Grant, Depends(grant_of_request)]) -> str:
    """Return the id of the key that came with the request."""
    return grant.key_id


Tenant = Annotated[str, Depends(tenant_of_request)]
KeyId = Annotated[str, Depends(key_id_of_request)]
