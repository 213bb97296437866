"""The commands of the guides: every fenced block of shell or Python, and who runs it.

A comment on the line before a block, which no reader sees, says what is not usual about it:

- ``<!-- given: WHAT -->``: it is run like the others, after ``tests/acceptance/test_guides.py`` has
  made what it needs;
- ``<!-- run by tests/… -->``: another module of the tests runs it;
- ``<!-- not run: REASON -->``: nobody does, for one of ``REASONS``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import ROOT

LANGUAGES = {"sh", "python"}
# For contributors, who have the checkers and tests of CONTRIBUTING.md.
_NOT_FOR_USERS = {"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"}
REASONS = {
    "it sets the machine up",
    "it fetches models",
    "it needs a GPU",
    "it needs a cluster",
    "it needs Docker",
    "it needs a MinIO",
    "it takes hours",
}
_BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        guide: its file, from the checkout's root.
        line: of its fence, from 1.
        language: as the fence says; empty where it says none.
        code: what stands in it.
        note: the comment before it; empty where there is none.
    """

    guide: str
    line: int
    language: str
    code: str
    note: str

    def __str__(self) -> str:
        return f"{self.guide}:{self.line}"

    @property
    def is_command(self) -> bool:
        return self.language in LANGUAGES

    @property
    def given(self) -> str | None:
        """What it needs; None: nothing."""
        return self.note.removeprefix("given: ") if self.note.startswith("given: ") else None

    @property
    def runner(self) -> str | None:
        """The module that runs it; None: nobody does, or the one that runs all that has no note."""
        return self.note.removeprefix("run by ") if self.note.startswith("run by ") else None

    @property
    def reason(self) -> str | None:
        """Why nobody runs it; None: somebody does."""
        return self.note.removeprefix("not run: ") if self.note.startswith("not run: ") else None

    @property
    def is_run_in_its_guide(self) -> bool:
        return self.is_command and self.runner is None and self.reason is None


def guides() -> list[str]:
    """Return the files that users and operators read, from the checkout's root."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]
    names = sorted(str(path.relative_to(ROOT)) for path in found)
    return [name for name in names if name not in _NOT_FOR_USERS]


def blocks_of(guide: str) -> list[Block]:
    """Return the fenced blocks of a guide in their order."""
    text = (ROOT / guide).read_text("utf-8")
    return [
        Block(
            guide=guide,
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            code=found["code"],
            note=found["note"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def all_blocks() -> list[Block]:
    return [block for guide in guides() for block in blocks_of(guide)]


def blocks_run_by(module: str) -> list[Block]:
    """Return the blocks whose note names a module of the tests, given as its ``__file__``."""
    name = str(Path(module).relative_to(ROOT))
    return [block for block in all_blocks() if block.runner == name]
