"""What a running stack tells other commands: addresses, passwords and the way to stop it."""

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cli.stack.folder_lock import locked_by
from cli.stack.remembered import write_private
from storage.s3 import S3ObjectStore

_FILE = "stack.json"


@dataclass(frozen=True, kw_only=True)
class StackState:
    """A stack that serves; kept in a file that only its owner reads.

    Attributes:
        pid: the supervisor; SIGTERM stops the stack.
        started_at: with time zone.
        api_key: None when the stack has no API.
    """

    pid: int
    started_at: datetime
    api_url: str
    api_key: str | None = dataclasses.field(default=None, repr=False)
    flower_url: str
    flower_user: str
    flower_password: str = dataclasses.field(repr=False)
    database_url: str = dataclasses.field(repr=False)
    redis_url: str = dataclasses.field(repr=False)
    s3_endpoint_url: str
    s3_bucket: str
    s3_region: str
    s3_access_key_id: str
    s3_secret_access_key: str = dataclasses.field(repr=False)

    @property
    def viewer_url(self) -> str:
        """The address that opens the viewer with the key; what follows # is sent to no server."""
        return f"{self.api_url}/#key={self.api_key}"

    def environment(self) -> dict[str, str]:
        """Return the settings with which a program of ours uses this stack's servers."""
        return {
            "PAGEFLEET_DATABASE_URL": self.database_url,
            "PAGEFLEET_REDIS_URL": self.redis_url,
            "PAGEFLEET_S3_ENDPOINT_URL": self.s3_endpoint_url,
            "PAGEFLEET_S3_BUCKET": self.s3_bucket,
            "PAGEFLEET_S3_REGION": self.s3_region,
            "PAGEFLEET_S3_ACCESS_KEY_ID": self.s3_access_key_id,
            "PAGEFLEET_S3_SECRET_ACCESS_KEY": self.s3_secret_access_key,
        }

    def make_store(self) -> S3ObjectStore:
        """Return the stack's bucket; whoever asks closes it."""
        return S3ObjectStore(
            bucket=self.s3_bucket,
            endpoint_url=self.s3_endpoint_url,
            region=self.s3_region,
            access_key_id=self.s3_access_key_id,
            secret_access_key=self.s3_secret_access_key,
        )


def stack_folder(home: Path) -> Path:
    """Return where the stack of a home keeps its data and its lock."""
    return home / "stack"


def logs_folder(home: Path) -> Path:
    """Return where each server and program of a home has its log."""
    return home / "logs"


def running_pid(home: Path) -> int | None:
    """Return the supervisor of a home's stack, serving or not yet; None when there is none."""
    return locked_by(stack_folder(home))


def write_stack(home: Path, state: StackState) -> None:
    """Tell other commands that the stack serves."""
    fields = {**dataclasses.asdict(state), "started_at": state.started_at.isoformat()}
    write_private(home / _FILE, json.dumps(fields, indent=2) + "\n")


def remove_stack(home: Path) -> None:
    """Tell other commands that the stack serves no longer."""
    (home / _FILE).unlink(missing_ok=True)


def read_stack(home: Path) -> StackState | None:
    """Return the stack that serves at ``home``; None when none does, whatever a crash left."""
    try:
        fields = json.loads((home / _FILE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    state = StackState(**{**fields, "started_at": datetime.fromisoformat(fields["started_at"])})
    return state if running_pid(home) == state.pid else None
