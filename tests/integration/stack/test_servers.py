import http.client
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
import redis

from cli.stack.errors import FolderLockedError, ServerStartError
from cli.stack.leash import Leash
from cli.stack.ports import free_ports
from cli.stack.postgres import Postgres
from cli.stack.remembered import Remembered
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.servers import ChildServer
from cli.stack.valkey import Valkey
from storage.errors import ObjectNotFoundError
from storage.s3 import S3ObjectStore
from tests.support.processes import are_gone, read_line, running_python, wait_until
from tests.support.services import running

SERVERS: list[type[ChildServer]] = [Valkey, Postgres, SeaweedFS]
READY_TIMEOUT_S = 60.0

START_THEM_AND_WAIT = """
import sys
from pathlib import Path
from cli.stack.leash import Leash
from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.valkey import Valkey

leash = Leash()
leash.start()
folder = Path(sys.argv[1])
servers = [made(folder / made.name, leash=leash) for made in (Valkey, Postgres, SeaweedFS)]
for server in servers:
    server.start()
for server in servers:
    server.wait_ready(60)
print(*(server.pid for server in servers))
sys.stdin.read()
"""


@pytest.fixture
def folder(services_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A new folder that the server's user can reach."""
    folder = services_folder / f"own-{abs(hash(request.node.nodeid))}"
    folder.mkdir()
    yield folder
    Postgres(folder / Postgres.name).remove_data()
    Postgres(folder).remove_data()


@pytest.fixture(params=["valkey", "postgres", "object_storage"])
def lasting_server(request: pytest.FixtureRequest) -> ChildServer:
    """Each of the servers that all tests share."""
    server: ChildServer = request.getfixturevalue(request.param)
    return server


def store_of(object_storage: SeaweedFS) -> S3ObjectStore:
    return S3ObjectStore(
        bucket="kept",
        endpoint_url=object_storage.endpoint_url,
        access_key_id=object_storage.access_key_id,
        secret_access_key=object_storage.secret_access_key,
    )


def write(server: ChildServer) -> None:
    match server:
        case Valkey():
            with redis.Redis.from_url(server.url()) as client:
                client.set("kept", "value")
        case Postgres():
            with psycopg.connect(server.url()) as connection:
                connection.execute("CREATE TABLE kept AS SELECT 'value' AS body")
        case SeaweedFS():
            store_of(server).ensure_bucket()
            store_of(server).put("key", b"value", media_type="text/plain")


def read(server: ChildServer) -> object:
    match server:
        case Valkey():
            with redis.Redis.from_url(server.url()) as client:
                return client.get("kept")
        case Postgres():
            with psycopg.connect(server.url()) as connection:
                row = connection.execute("SELECT body FROM kept").fetchone()
                return row and row[0].encode()
        case _:
            assert isinstance(server, SeaweedFS)
            return store_of(server).get("key")


@pytest.mark.parametrize("made", SERVERS)
def test_data_and_address_survive_a_restart(made: type[ChildServer], folder: Path) -> None:
    with running(made(folder)) as server:
        first_address = server.address
        write(server)

    with running(made(folder)) as server:
        assert server.address == first_address
        assert read(server) == b"value"


@pytest.mark.parametrize("made", SERVERS)
def test_data_survive_a_kill_and_the_server_comes_back_at_its_address(
    made: type[ChildServer], folder: Path
) -> None:
    with running(made(folder)) as server:
        write(server)
        first_pid, first_ports = server.pid, server.ports
        server.kill()
        server.restart(READY_TIMEOUT_S)

        assert server.pid != first_pid
        assert server.ports == first_ports
        assert read(server) == b"value"


def test_a_second_server_on_the_same_folder_is_refused(lasting_server: ChildServer) -> None:
    second = type(lasting_server)(lasting_server._folder)

    with pytest.raises(FolderLockedError) as refused:
        second.start()

    assert lasting_server.exit_code() is None
    assert refused.value.owner_pid is not None
    assert f"process {refused.value.owner_pid}" in str(refused.value)


@pytest.mark.parametrize("made", SERVERS)
def test_a_server_moves_when_its_ports_were_taken(made: type[ChildServer], folder: Path) -> None:
    taken = free_ports(made.port_count)
    Remembered(password="made-up", ports=tuple(taken)).save(folder)  # noqa: S106 - made up

    with socket.create_server(("127.0.0.1", taken[0])), running(made(folder)) as server:
        assert server.port != taken[0]


@pytest.mark.parametrize("made", SERVERS)
def test_a_server_whose_port_is_taken_after_a_crash_waits_for_it(
    made: type[ChildServer], folder: Path
) -> None:
    with running(made(folder)) as server:
        first_ports = server.ports
        server.kill()
        with socket.create_server(("127.0.0.1", server.port)):
            with pytest.raises(ServerStartError, match="another process listens"):
                server.restart(READY_TIMEOUT_S)
            ports_meanwhile = server.ports

        server.restart(READY_TIMEOUT_S)

        assert (ports_meanwhile, server.ports) == (first_ports, first_ports)


class UnluckyValkey(Valkey):
    """Its first port is taken between the choice and the start."""

    taken_port: int | None = None

    def _choose_ports(self, preferred: Sequence[int]) -> Sequence[int]:
        if self.taken_port is not None:
            port, self.taken_port = self.taken_port, None
            return [port]
        return super()._choose_ports(preferred)


def test_a_server_whose_port_was_taken_meanwhile_tries_another(folder: Path) -> None:
    server = UnluckyValkey(folder)
    with socket.create_server(("127.0.0.1", 0)) as quicker:
        server.taken_port = quicker.getsockname()[1]

        with running(server):
            assert server.port != quicker.getsockname()[1]


@pytest.mark.parametrize("made", SERVERS)
def test_two_servers_of_a_kind_run_side_by_side(made: type[ChildServer], folder: Path) -> None:
    first, second = folder / "1", folder / "2"

    with running(made(first)) as one, running(made(second)) as other:
        assert not set(one.ports) & set(other.ports)
        write(one)
        write(other)

    Postgres(first).remove_data()
    Postgres(second).remove_data()


def test_only_the_owner_can_read_what_holds_the_password(lasting_server: ChildServer) -> None:
    holding = [
        file
        for file in lasting_server._folder.iterdir()
        if file.is_file() and lasting_server.password in file.read_text("utf-8", "replace")
    ]

    assert holding
    assert {stat.S_IMODE(file.stat().st_mode) for file in holding} == {0o600}


@pytest.mark.parametrize("made", SERVERS)
def test_nobody_else_can_read_what_a_server_keeps(made: type[ChildServer], folder: Path) -> None:
    own_folder = folder / made.name
    own_folder.mkdir()
    own_folder.chmod(0o755)  # as an older version left it
    with running(made(own_folder)) as server:
        write(server)

    kept = [path for path in own_folder.iterdir() if path != server.log_file]
    is_root_for_postgres = made is Postgres and os.geteuid() == 0
    assert [path for path in kept if _mode(path) & 0o077] == []
    assert _mode(own_folder) == (0o711 if is_root_for_postgres else 0o700)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_no_port_of_the_object_storage_answers_strangers_over_http(folder: Path) -> None:
    secret = b"a document of somebody"
    with running(SeaweedFS(folder)) as server:
        store = store_of(server)
        store.ensure_bucket()
        store.put("secret", secret, media_type="text/plain")
        store.put("large", secret * 100_000, media_type="text/plain")  # in a volume of its own
        answers = [
            _ask(port, method, path)
            for port in server.ports
            for method, path in [
                ("GET", "/buckets/kept/secret"),
                ("GET", "/buckets/kept/large"),
                ("GET", "/buckets/kept/?limit=10"),
                ("GET", "/kept/secret"),
                ("POST", "/buckets/kept/planted"),
            ]
        ]

        assert store.get("secret") == secret
        with pytest.raises(ObjectNotFoundError):
            store.get("planted")
    assert [answer for answer in answers if secret in answer or b"large" in answer] == []


def _ask(port: int, method: str, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, body=b"x" if method == "POST" else None)
        answer = connection.getresponse()
        return answer.read() if answer.status < 300 else b""
    except (OSError, http.client.HTTPException):
        return b""  # a port that speaks something else
    finally:
        connection.close()


def test_no_password_is_on_a_command_line(
    valkey: Valkey, postgres: Postgres, object_storage: SeaweedFS
) -> None:
    servers: list[ChildServer] = [valkey, postgres, object_storage]

    lines = {server: Path(f"/proc/{server.pid}/cmdline").read_text("utf-8") for server in servers}

    assert [server.name for server, line in lines.items() if server.password in line] == []


def test_servers_listen_on_the_loopback_address_only(
    valkey: Valkey, postgres: Postgres, object_storage: SeaweedFS
) -> None:
    ports = {*valkey.ports, *postgres.ports, *object_storage.ports}

    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    rows += [line.split() for line in Path("/proc/net/tcp6").read_text("ascii").splitlines()[1:]]
    listening = [row[1].split(":") for row in rows if row[3] == "0A"]
    addresses = {address for address, port in listening if int(port, 16) in ports}

    assert addresses == {"0100007F"}


def test_a_wrong_password_opens_nothing(valkey: Valkey, postgres: Postgres) -> None:
    with pytest.raises(redis.AuthenticationError), redis.Redis(port=valkey.port) as client:
        client.ping()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url().replace(postgres.password, "wrong"))


def test_the_log_of_the_database_holds_no_values_of_statements(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE keys (key text PRIMARY KEY)")
        connection.execute("INSERT INTO keys VALUES ('hush-1')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO keys VALUES (%s)", ["hush-1"])

    log = postgres.log_file.read_text("utf-8", "replace")
    assert "duplicate key value" in log
    assert "hush-1" not in log
    assert "INSERT INTO keys" not in log


def test_a_server_that_cannot_start_says_why(folder: Path, leash: Leash) -> None:
    server = Valkey(folder, leash=leash)
    (folder / "data" / "appendonlydir").mkdir(parents=True)
    (folder / "data" / "appendonlydir" / "appendonly.aof.manifest").write_text("broken")
    server.start()

    with pytest.raises(ServerStartError, match="AOF"):
        server.wait_ready()

    server.stop()


class MissingProgram(Valkey):
    """Its program was taken away, as by an upgrade of the wheel."""

    is_there = True

    def _argv(self) -> Sequence[str]:
        return super()._argv() if self.is_there else [str(self._folder / "no-such-program")]


def test_a_server_whose_program_is_gone_does_not_start_and_says_so(folder: Path) -> None:
    with running(MissingProgram(folder)) as server:
        server.kill()
        server.is_there = False
        with pytest.raises(ServerStartError, match="cannot be run"):
            server.restart(READY_TIMEOUT_S)

        server.is_there = True
        server.restart(READY_TIMEOUT_S)

        assert server.exit_code() is None


class SlowClients(Postgres):
    """The first client that asks whether it is ready takes too long, as on a busy machine."""

    slow_clients = 1

    def _program(self, name: str) -> str:
        if name == "psql" and self.slow_clients:
            self.slow_clients -= 1
            slow = self._folder / "slow-psql"
            slow.write_text("#!/bin/sh\nexec sleep 60\n")
            slow.chmod(0o755)
            return str(slow)
        return super()._program(name)


def test_a_database_whose_clients_are_slow_is_asked_again(folder: Path) -> None:
    with running(SlowClients(folder, client_timeout_s=4)) as server:
        assert server.slow_clients == 0
        assert server.exit_code() is None


def test_servers_end_when_their_parent_is_killed_and_start_again_at_once(folder: Path) -> None:
    with running_python(START_THEM_AND_WAIT, str(folder)) as parent:
        pids = [int(pid) for pid in read_line(parent).split()]
        parent.kill()
        parent.wait()

    with running_python(START_THEM_AND_WAIT, str(folder)) as parent:
        again = [int(pid) for pid in read_line(parent).split()]
        assert are_gone(pids)

    assert len(again) == len(SERVERS)
    wait_until(lambda: are_gone(again))
