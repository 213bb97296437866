"""What is said where a command needs the stack of this machine and that does not serve."""

from pathlib import Path

from cli.errors import EXIT_USAGE, CommandError
from cli.stack.state import logs_folder, running_pid, stack_folder


def absent_stack(home: Path, *, otherwise: str) -> CommandError | None:
    """Return why the stack of a home does not serve; None where there never was one.

    Args:
        home: its folder.
        otherwise: what helps besides starting it.
    """
    if running_pid(home) is not None:
        return CommandError(
            f"the stack in {home} does not serve: it is starting, or being stopped",
            f"Try again in a moment, or see what it waits for in {logs_folder(home)}.",
            exit_code=EXIT_USAGE,
        )
    if stack_folder(home).is_dir():
        return CommandError(
            f"the stack in {home} is not running",
            f"Start it with `pagefleet up`, or {otherwise}.",
            exit_code=EXIT_USAGE,
        )
    return None
