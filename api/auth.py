"""Who is asking: an API key, and the tenant that it belongs to."""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.errors import ApiError
from api.request_log import note_tenant
from db import api_keys
from db.engine import Transaction

# A little wider than what db.api_keys makes. Anything else does not reach the database.
_WELL_FORMED_KEY = re.compile(rf"{api_keys.PREFIX}_[0-9a-zA-Z]{{1,64}}_[0-9a-zA-Z]{{1,128}}")
_CACHED_KEYS = 10_000

bearer = HTTPBearer(
    scheme_name="ApiKey",
    bearerFormat="pf_<id>_<secret>",
    description="An API key of the tenant whose documents are meant.",
    auto_error=False,
)


class Keyring:
    """Knows the tenant of a key; asks the database at most once in ``cache_s`` seconds a key.

    So a key that is revoked works on for at most that long. Only valid keys are remembered,
    and only as their hash.
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
        self._tenants: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._lock = Lock()

    def tenant_of(self, key: str) -> str | None:
        """Return the tenant of a key; None when it is not valid.

        Raises:
            DatabaseError: the database cannot be asked.
        """
        if not _WELL_FORMED_KEY.fullmatch(key):
            return None
        digest = hashlib.sha256(key.encode()).digest()
        now = self._clock()
        with self._lock:
            tenant, valid_until = self._tenants.get(digest, ("", 0.0))
        if now < valid_until:
            return tenant
        with self._transaction() as session:
            found = api_keys.tenant_of(session, key)
        if found is not None:
            self._remember(digest, found, now + self._cache_s)
        return found

    def _remember(self, digest: bytes, tenant: str, valid_until: float) -> None:
        with self._lock:
            self._tenants[digest] = (tenant, valid_until)
            self._tenants.move_to_end(digest)
            if len(self._tenants) > _CACHED_KEYS:
                self._tenants.popitem(last=False)


def tenant_of_request(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> str:
    """Return the tenant whose key came with the request.

    Raises:
        ApiError: there is no key, or it is not valid.
    """
    if credentials is None:
        raise ApiError("unauthenticated", headers={"WWW-Authenticate": 'Bearer realm="pagefleet"'})
    keyring: Keyring = request.app.state.services.keyring
    tenant = keyring.tenant_of(credentials.credentials)
    if tenant is None:
        raise ApiError(
            "unauthenticated",
            headers={"WWW-Authenticate": 'Bearer realm="pagefleet", error="invalid_token"'},
        )
    note_tenant(request.scope, tenant)
    return tenant


Tenant = Annotated[str, Depends(tenant_of_request)]


def key_id_of_request(
    _tenant: Tenant, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
) -> str:
    """Return the id of the key that came with the request, once it is known to be valid."""
    return api_keys.id_of(credentials.credentials)


KeyId = Annotated[str, Depends(key_id_of_request)]
