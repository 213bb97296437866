"""What a server keeps beside its data: its password and the ports it had last."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

_FILE = "server.json"


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """Kept in a file that only its owner reads, so that data and addresses survive a restart."""

    password: str
    ports: tuple[int, ...] = ()

    @staticmethod
    def load(folder: Path) -> "Remembered":
        """Read what is kept in ``folder``, or make a new password; nothing is written yet."""
        file = folder / _FILE
        if not file.exists():
            return Remembered(password=secrets.token_urlsafe(24))
        fields = json.loads(file.read_text("utf-8"))
        return Remembered(password=fields["password"], ports=tuple(fields["ports"]))

    def save(self, folder: Path) -> None:
        """Replace the file whole, so that a crash leaves the old one or the new one."""
        write_private(folder / _FILE, json.dumps(asdict(self)))


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    partial = file.with_name(file.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    partial.replace(file)


def make_private_folder(folder: Path, *, is_passable: bool = False) -> None:
    """Make a folder that only its owner may enter, or close one that an older version made.

    Args:
        folder: made with its parents.
        is_passable: another user of ours, as whom Postgres runs under root, goes through it to
            what is its own; nobody else can list it either.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711 if is_passable and os.geteuid() == 0 else 0o700)
