import pytest
from sqlalchemy import text

from api.auth import Keyring
from db.engine import Database
from tests.support.api_server import RunningApi, client_of, make_key


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def revoke_all(database: Database) -> None:
    with database.transaction() as session:
        session.execute(text("UPDATE api_keys SET revoked_at = now()"))


def test_a_key_gives_its_tenant(database: Database) -> None:
    key = make_key(database, "archive")

    assert Keyring(database.transaction, cache_s=0).tenant_of(key) == "archive"


def test_a_key_with_another_secret_gives_nobody(database: Database) -> None:
    key = make_key(database, "archive")
    other = key[:-1] + ("0" if key[-1] != "0" else "1")

    assert Keyring(database.transaction, cache_s=60).tenant_of(other) is None


def test_a_known_key_is_not_asked_for_again(database: Database) -> None:
    key = make_key(database, "archive")
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10, clock=clock)
    keyring.tenant_of(key)
    revoke_all(database)

    clock.now_s += 9

    assert keyring.tenant_of(key) == "archive"


def test_a_revoked_key_is_refused_once_it_is_forgotten(database: Database) -> None:
    key = make_key(database, "archive")
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10, clock=clock)
    keyring.tenant_of(key)
    revoke_all(database)

    clock.now_s += 10

    assert keyring.tenant_of(key) is None


def test_an_expired_key_is_refused(database: Database) -> None:
    key = make_key(database, "archive")
    with database.transaction() as session:
        session.execute(text("UPDATE api_keys SET expires_at = now()"))

    assert Keyring(database.transaction, cache_s=10).tenant_of(key) is None


@pytest.mark.parametrize("key", ["pf_0123456789ab_" + "0" * 48, "pf_x_y"])
def test_a_key_that_nobody_has_is_unauthenticated(api: RunningApi, key: str) -> None:
    with client_of(api.url, key) as client:
        response = client.get("/v1/documents")

    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
