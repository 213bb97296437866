from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from api.auth import Keyring
from db import api_keys
from db.api_keys import Grant, Refusal
from db.engine import Database, Session
from db.errors import DatabaseError
from db.key_models import ApiKey
from tests.support.api_server import RunningApi, client_of, make_key
from tests.support.clock import Clock

DAY_S = 86_400.0


def revoke_all(database: Database) -> None:
    with database.transaction() as session:
        session.execute(text("UPDATE api_keys SET revoked_at = now()"))


def rotate(database: Database, key: str, *, grace: timedelta) -> str:
    with database.transaction() as session:
        found = api_keys.get(session, api_keys.id_of(key))
        return api_keys.rotate(session, found, grace=grace)


def with_another_secret(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


def row_of(database: Database, key: str) -> ApiKey:
    with database.transaction() as session:
        return api_keys.get(session, api_keys.id_of(key))


def look_up(database: Database, key: str) -> Grant | Refusal:
    return Keyring(database.transaction, cache_s=0).look_up(key)


def tenant_of(found: Grant | Refusal) -> str | None:
    return found.tenant if isinstance(found, Grant) else None


def code_of(api: RunningApi, key: str) -> tuple[int, str]:
    with client_of(api.url, key) as client:
        answer = client.get("/v1/documents")
    return answer.status_code, answer.json().get("code", "")


@pytest.fixture
def key(database: Database) -> str:
    return make_key(database, "archive")


def test_a_key_gives_its_tenant_and_everything_that_it_may_do(database: Database, key: str) -> None:
    found = look_up(database, key)

    assert isinstance(found, Grant)
    assert (found.tenant, found.key_id) == ("archive", api_keys.id_of(key))
    assert found.scopes == {"read", "write", "webhooks"}
    assert (found.expires_in_s, found.max_requests_per_minute) == (None, None)


def test_a_key_with_another_secret_gives_nobody(database: Database, key: str) -> None:
    assert look_up(database, with_another_secret(key)) is Refusal.UNKNOWN


def test_a_known_key_is_not_asked_for_again(database: Database, key: str) -> None:
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10, clock=clock)
    keyring.look_up(key)
    revoke_all(database)

    clock.now_s += 9

    assert tenant_of(keyring.look_up(key)) == "archive"


def test_a_revoked_key_is_refused_once_it_is_forgotten(database: Database, key: str) -> None:
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10, clock=clock)
    keyring.look_up(key)
    revoke_all(database)

    clock.now_s += 10

    assert keyring.look_up(key) is Refusal.REVOKED


def test_a_key_is_believed_no_longer_than_it_is_valid(database: Database) -> None:
    with database.transaction() as session:
        key = api_keys.create(session, tenant="archive", name="x", expires_in=timedelta(days=1))
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10 * DAY_S, clock=clock)
    keyring.look_up(key)
    revoke_all(database)  # which shows whether it is asked for again

    clock.now_s += DAY_S - 60
    before = keyring.look_up(key)
    clock.now_s += 61

    assert tenant_of(before) == "archive"
    assert keyring.look_up(key) is Refusal.REVOKED


def test_an_old_secret_is_believed_no_longer_than_its_grace(database: Database, key: str) -> None:
    rotate(database, key, grace=timedelta(days=1))
    clock = Clock()
    keyring = Keyring(database.transaction, cache_s=10 * DAY_S, clock=clock)
    keyring.look_up(key)
    revoke_all(database)

    clock.now_s += DAY_S + 1

    assert keyring.look_up(key) is Refusal.REVOKED


@pytest.mark.parametrize(
    ("change", "code"),
    [("expires_at = now()", "key_expired"), ("revoked_at = now()", "key_revoked")],
)
def test_what_became_of_a_key_is_told_to_those_alone_who_have_its_secret(
    api: RunningApi, key: str, change: str, code: str
) -> None:
    with api.database.transaction() as session:
        session.execute(text(f"UPDATE api_keys SET {change}"))  # noqa: S608 - from above

    assert code_of(api, key) == (401, code)
    assert code_of(api, with_another_secret(key)) == (401, "unauthenticated")


@pytest.mark.parametrize("key", ["pf_0123456789ab_" + "0" * 48, "pf_x_y"])
def test_a_key_that_nobody_has_is_unauthenticated(api: RunningApi, key: str) -> None:
    with client_of(api.url, key) as client:
        response = client.get("/v1/documents")

    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


def test_both_secrets_open_the_same_until_the_grace_ends(api: RunningApi, key: str) -> None:
    new = rotate(api.database, key, grace=timedelta(hours=1))

    during = [code_of(api, each) for each in (key, new)]
    with api.database.transaction() as session:
        session.execute(text("UPDATE api_keys SET previous_secret_until = now()"))
    after = [code_of(api, each) for each in (key, new)]

    assert api_keys.id_of(new) == api_keys.id_of(key)
    assert during == [(200, ""), (200, "")]
    assert after == [(401, "key_expired"), (200, "")]


def test_an_old_secret_can_be_ended_at_once(api: RunningApi, key: str) -> None:
    new = rotate(api.database, key, grace=timedelta())

    assert [code_of(api, each) for each in (key, new)] == [(401, "key_expired"), (200, "")]


def test_a_key_has_two_secrets_at_most(api: RunningApi, key: str) -> None:
    second = rotate(api.database, key, grace=timedelta(hours=1))
    third = rotate(api.database, second, grace=timedelta(hours=1))

    assert [code_of(api, each)[0] for each in (key, second, third)] == [401, 200, 200]


def test_a_key_that_expires_takes_both_secrets_with_it(api: RunningApi, key: str) -> None:
    new = rotate(api.database, key, grace=timedelta(hours=1))
    with api.database.transaction() as session:
        session.execute(text("UPDATE api_keys SET expires_at = now()"))

    assert [code_of(api, each) for each in (key, new)] == [(401, "key_expired")] * 2


def test_a_revoked_key_gets_no_new_secret(database: Database, key: str) -> None:
    revoke_all(database)

    with pytest.raises(ValueError, match="revoked"):
        rotate(database, key, grace=timedelta())


def test_a_use_is_noted_and_then_not_for_five_minutes(database: Database, key: str) -> None:
    keyring = Keyring(database.transaction, cache_s=0)
    keyring.look_up(key)
    noted = row_of(database, key).last_used_at

    keyring.look_up(key)
    again = row_of(database, key).last_used_at
    with database.transaction() as session:
        session.execute(text("UPDATE api_keys SET last_used_at = now() - interval '6 minutes'"))
    keyring.look_up(key)
    later = row_of(database, key).last_used_at

    assert noted is not None
    assert datetime.now(UTC) - noted < timedelta(minutes=1)
    assert again == noted
    assert later is not None
    assert later > noted


def test_a_wrong_secret_is_no_use_of_a_key(database: Database, key: str) -> None:
    look_up(database, with_another_secret(key))

    assert row_of(database, key).last_used_at is None


def test_whoever_asks_does_not_wait_for_those_who_send(database: Database, key: str) -> None:
    with database.transaction() as holder:
        holder.execute(text("SELECT FROM api_keys FOR NO KEY UPDATE"))

        found = look_up(database, key)

    assert tenant_of(found) == "archive"
    assert row_of(database, key).last_used_at is None


def test_a_database_that_takes_no_writes_is_no_reason_to_refuse(
    database: Database, key: str
) -> None:
    @contextmanager
    def read_only() -> Iterator[Session]:
        with database.transaction() as session:
            session.execute(text("SET TRANSACTION READ ONLY"))
            yield session

    with capture_logs() as lines:
        found = Keyring(read_only, cache_s=10).look_up(key)

    with pytest.raises(DatabaseError), read_only() as session:
        api_keys.note_use(session, api_keys.id_of(key))
    assert tenant_of(found) == "archive"
    assert [line["event"] for line in lines] == ["use of a key not noted"]
