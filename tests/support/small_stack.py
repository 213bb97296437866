"""A stack of real servers and one small program, run in a process of its own.

Writes a line of JSON once everything serves: the pids of supervisor, program and grandchild.
"""

import json
import os
import sys
from pathlib import Path

from cli.stack.program import ProgramSpec
from cli.stack.stack import StackPlan, run_stack
from cli.stack.state import StackState
from cli.stop_signals import stop_on_signals

# Like a worker with its pool: has a child that does not care about being asked to end.
PROGRAM = """
import os, signal, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
time.sleep(600)
'''])
partial = Path(sys.argv[1] + ".partial")
partial.write_text(f"{os.getpid()} {child.pid}")
partial.rename(sys.argv[1])
time.sleep(600)
"""


def main(home: Path) -> None:
    """Run the stack until a signal comes."""
    pids_file = home / "pids"

    def plan(state: StackState) -> StackPlan:
        environment = {**state.environment(), "PATH": os.defpath}

        def spec(name: str, code: str) -> ProgramSpec:
            return ProgramSpec(
                name=name,
                argv=[sys.executable, "-c", code, str(pids_file)],
                environment=environment,
                folder=home,
                grace_s=5,
            )

        return StackPlan(
            steps=[spec("step", "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()")],
            programs=[spec("program", PROGRAM)],
            key_argv=[sys.executable, "-c", "import os; print('pf_' + os.urandom(8).hex())"],
            environment=environment,
        )

    with stop_on_signals() as stop:
        run_stack(
            home,
            plan,
            report=lambda line: print(line, file=sys.stderr),  # noqa: T201 - for a failing test
            stop=stop,
            ready=lambda state: print(json.dumps({"pid": state.pid}), flush=True),  # noqa: T201 - same
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
