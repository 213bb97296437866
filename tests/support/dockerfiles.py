"""What a Dockerfile says, instruction by instruction."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_CONTINUED = re.compile(r"\\\n\s*")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its keyword, what follows it, and the stage that it belongs to, from 0."""

    keyword: str
    text: str
    stage: int

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def instructions(dockerfile: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile in their order; those before a stage are of -1."""
    lines = [
        line
        for line in dockerfile.read_text("utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    found: list[Instruction] = []
    stage = -1
    for line in _CONTINUED.sub(" ", "\n".join(lines)).splitlines():
        keyword, _, text = line.partition(" ")
        stage += keyword == "FROM"
        found.append(Instruction(keyword, text.strip(), stage))
    return found


def of(keyword: str, dockerfile: Path, *, stage: int | None = None) -> list[Instruction]:
    return [
        each
        for each in instructions(dockerfile)
        if each.keyword == keyword and stage in {None, each.stage}
    ]
