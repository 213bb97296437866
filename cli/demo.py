"""``pagefleet demo``: the whole system at work on its sample documents."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import notices, output
from cli.errors import EXIT_FAILED, CommandError

if TYPE_CHECKING:
    from cli.demo_run import DemoOutcome
    from cli.stack.state import StackState


def demo(
    *,
    exit_when_done: Annotated[
        bool, typer.Option("--exit", help="Stop everything that was started, and exit.")
    ] = False,
) -> None:
    """Read the sample documents over API, storage, queue and database, and check the texts.

    Uses the stack that runs, or starts one, which stays until Ctrl-C. Exits with 0 only when each
    sample ended as it must: with its text, or with its named error.
    """
    from cli.demo_run import DemoProgress, run_samples, show_addresses, show_outcomes
    from cli.stack.state import read_stack
    from cli.stop_signals import sigterm_as_ctrl_c, told_when_stopped
    from workers.settings import home_dir

    home = home_dir()
    running = read_stack(home)
    if running is None:
        outcomes = _run_with_own_stack(home, exit_when_done=exit_when_done)
    else:
        notices().print(f"Using the stack that runs at {running.api_url}.")
        progress = DemoProgress()
        with sigterm_as_ctrl_c(), told_when_stopped(progress.say_stopped):
            outcomes = run_samples(running, home, progress)
        show_outcomes(outcomes)
        show_addresses(running)
        output().print("The stack goes on; `pagefleet down` stops it.", markup=False)
    if not outcomes or any(outcome.problems for outcome in outcomes):
        raise typer.Exit(EXIT_FAILED)


class _Visitor(threading.Thread):
    """Runs the samples while the main thread looks after the stack, which only it may do."""

    def __init__(
        self, state: "StackState", home: Path, stop: threading.Event, *, exit_when_done: bool
    ) -> None:
        # A daemon: Ctrl-C stops the stack, and nobody waits for documents that cannot end then.
        from cli.demo_run import DemoProgress

        super().__init__(name="demo", daemon=True)
        self.outcomes: list[DemoOutcome] = []
        self.error: CommandError | None = None
        self.progress = DemoProgress()
        self._state = state
        self._home = home
        self._stop = stop
        self._exit_when_done = exit_when_done

    def run(self) -> None:
        from cli.demo_run import run_samples, show_addresses, show_outcomes

        try:
            self.outcomes = run_samples(self._state, self._home, self.progress)
            show_outcomes(self.outcomes)
            if not self._exit_when_done:
                show_addresses(self._state)
        except CommandError as error:
            if not self._stop.is_set():  # else the API went away because it was told to
                self.error = error
        except OSError as error:
            self.error = CommandError(
                f"the samples cannot be written: {error}",
                "Free some space or choose another folder with PAGEFLEET_HOME.",
            )
        finally:
            if self._exit_when_done or not self.outcomes:
                self._stop.set()
        if not self._stop.is_set():
            output().print("Ctrl-C stops everything; the data stay.", markup=False)


def _run_with_own_stack(home: Path, *, exit_when_done: bool) -> "list[DemoOutcome]":
    """Start a stack, run the samples on it, and stop it: at once, or when asked to.

    Raises:
        CommandError: the stack does not start, or the samples could not be run.
    """
    from cli.required_models import require_models
    from cli.settings import own_environment
    from cli.stack.commands import stack_errors
    from cli.stack.stack import project_plan, run_stack
    from cli.stop_signals import stop_on_signals

    require_models()
    visitors: list[_Visitor] = []
    with stack_errors(), stop_on_signals() as stop:

        def visit(state: "StackState") -> None:
            visitors.append(_Visitor(state, home, stop, exit_when_done=exit_when_done))
            visitors[0].start()

        run_stack(
            home,
            lambda state: project_plan(state, home=home, inherited=own_environment()),
            report=lambda line: notices().print(line, markup=False),
            stop=stop,
            ready=visit,
        )
    if not visitors:
        return []
    if visitors[0].error is not None:
        raise visitors[0].error
    if visitors[0].outcomes:
        _say_how_to_return()
    else:
        visitors[0].progress.say_stopped()
    return visitors[0].outcomes


def _say_how_to_return() -> None:
    output().print(
        "All servers are stopped; the data stay. `pagefleet up --detach` starts them again: the"
        " results are\nthen at the addresses above, and `pagefleet status` lists their documents.",
        markup=False,
    )
