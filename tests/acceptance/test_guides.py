"""The commands of the guides, run as they stand there on a stack of ``pagefleet up``."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.samples import Sample
from tests.support.embedded_stack import EmbeddedStack, embedded_stack, lent_home
from tests.support.guide_blocks import Block, blocks_of, guides
from tests.support.guide_givens import FILE_PASSWORD, SCANS, Givens, write_files
from tests.support.guide_shell import GuideShell
from tests.support.models import require_bundle, share_prepared_graphs

pytestmark = pytest.mark.timeout(1_800)

# It starts a stack of its own, and stops it.
QUICKSTART = "docs/quickstart.md"
RUN = {
    guide: [block for block in blocks_of(guide) if block.is_run_in_its_guide] for guide in guides()
}
# What a guide says that it fetches: not an answer that speaks of it.
LEFT = {
    "docs/api.md": {
        "ledger.json": b"{",
        "page.jpg": b"\xff\xd8",
        "ledger.searchable.pdf": b"%PDF-",
    },
    "docs/python.md": {"first.searchable.pdf": b"%PDF-"},
}
GUIDES = sorted(guide for guide, blocks in RUN.items() if blocks and guide != QUICKSTART)


@pytest.fixture(scope="module")
def stack(services_folder: Path) -> Iterator[EmbeddedStack]:
    places = json.dumps([{"bucket": SCANS, "prefix": "in/"}])
    with embedded_stack(services_folder, PAGEFLEET_API_SOURCES=places) as stack:
        yield stack


def test_a_stack_in_the_background_says_what_starts_and_when_it_serves(
    stack: EmbeddedStack,
) -> None:
    lines = stack.notices.splitlines()
    assert lines[0] == "starting valkey, postgres, seaweedfs"
    assert [line for line in lines if line.startswith("api: running (")]
    assert [line for line in lines if line.startswith("flower: running (")]
    assert "pagefleet down" in stack.output
    # Without the key: this is no terminal, and a log must not have it.
    api_url = stack.state.api_url
    assert stack.output.startswith(f"Viewer   {api_url}/ (asks for the key")
    assert stack.state.api_key not in stack.output


@pytest.mark.parametrize("guide", GUIDES)
def test_the_commands_of_a_guide_do_what_they_say(
    stack: EmbeddedStack, samples: dict[str, Sample], tmp_path: Path, guide: str
) -> None:
    state = stack.state
    shell = GuideShell(
        tmp_path,
        variables={"PAGEFLEET_HOME": str(stack.home), "COLUMNS": "200"},
        replaced={
            r"/srv/models/ppocrv5-server": "$MODELS",
            r"(?<![$\w{])(BATCH|DOCUMENT)\b(?!=)": r"$\1",
            r"019ab8e2-[0-9a-f-]+": "$DOCUMENT",
            r" …(?= |$)": "",
        },
    )
    write_files(tmp_path, samples)
    (tmp_path / ".pagefleet").symlink_to(stack.home)
    givens = Givens(stack, samples, tmp_path)
    shell.give({"API": state.api_url, "KEY": str(state.api_key)})
    if any(block.given is None for block in RUN[guide]):
        shell.give(givens.make("a document that was read, and a batch that was read"))

    for block in RUN[guide]:
        if block.given is not None:
            shell.give(givens.make(block.given))
        if block.language == "sh":
            require_success(block, shell.sh(block.code, stdin=FILE_PASSWORD + "\n"))
    run_program(shell, [block for block in RUN[guide] if block.language == "python"])

    for name, start in LEFT.get(guide, {}).items():
        assert (tmp_path / name).read_bytes().startswith(start)


def test_the_quickstart_leads_to_a_result(services_folder: Path) -> None:
    require_bundle()
    with lent_home(services_folder) as home:
        share_prepared_graphs(home)
        folder = services_folder / f"{home.name}-work"
        shell = GuideShell(
            folder, variables={"PAGEFLEET_HOME": str(home), "COLUMNS": "200"}, replaced={}
        )
        (folder / ".pagefleet").symlink_to(home)

        for block in RUN[QUICKSTART]:
            require_success(block, shell.sh(block.code))

        assert (folder / "out" / "label.txt").read_text("utf-8").strip()
        assert len(list((folder / "searchable").glob("*.searchable.pdf"))) == 2
        assert not (home / "stack.json").exists()


def require_success(block: Block, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, f"{block}\n{block.code}\n{done.stdout}\n{done.stderr}"


def run_program(shell: GuideShell, blocks: list[Block]) -> None:
    """Run the blocks of Python of a guide, which are one program."""
    if not blocks:
        return
    code = "\n".join(block.code for block in blocks)
    require_success(blocks[0], shell.python(code))
