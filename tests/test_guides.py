"""What stands in the guides is run by tests, leads somewhere, and is complete."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.guide_blocks import REASONS, Block, all_blocks, guides

BLOCKS = all_blocks()
COMMANDS = [block for block in BLOCKS if block.is_command]
OTHERS = [block for block in BLOCKS if not block.is_command]
# What only a shell reads; a block with such a line has to say that it is one.
COMMAND_LINE = re.compile(
    r"^\s*(\$ )?(\.venv/bin/)?(pagefleet|curl|scripts/\w+|mc|export|python3?|pip) ", re.MULTILINE
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PAGES = [*guides(), "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_a_command_is_run_or_says_why_not(block: Block) -> None:
    assert block.runner is None or (ROOT / block.runner).is_file()
    assert block.reason is None or block.reason in REASONS
    assert not block.note or block.given or block.runner or block.reason


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_the_module_that_is_said_to_run_a_command_looks_for_it(block: Block) -> None:
    code = "" if block.runner is None else (ROOT / block.runner).read_text("utf-8")

    asks = ("blocks_run_by(__file__)", Path(block.guide).name)
    assert block.runner is None or any(each in code for each in asks)


@pytest.mark.parametrize("block", OTHERS, ids=str)
def test_no_command_hides_in_a_block_of_another_kind(block: Block) -> None:
    assert not COMMAND_LINE.search(block.code)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")

    dead = [
        f"{path}#{anchor}"
        for path, anchor in LINK.findall(text)
        if not leads_somewhere((ROOT / page).parent / path if path else ROOT / page, anchor)
    ]

    assert dead == []


def leads_somewhere(target: Path, anchor: str) -> bool:
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    """Return what GitHub makes of the headings of a page."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_guides_that_are_looked_at_are_all() -> None:
    assert {"README.md", "docs/README.md", "docs/api.md", "docs/quickstart.md"} <= set(guides())
    assert len(COMMANDS) > 50


def test_no_sentence_stands_in_two_guides() -> None:
    """What is said twice is mended once: a guide names the other, and leaves it to it."""
    pages_of: defaultdict[str, set[str]] = defaultdict(set)
    for page in PAGES:
        for sentence in sentences(page):
            pages_of[sentence].add(page)

    assert {sentence: pages for sentence, pages in pages_of.items() if len(pages) > 1} == {}


def sentences(page: str) -> list[str]:
    """Return the sentences of a page that are long enough not to be alike by chance."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    paragraphs = re.split(r"\n\s*\n|\n(?=[-|#\d])", text)
    found = [
        sentence
        for paragraph in paragraphs
        for sentence in re.split(r"(?<=[.;:|]) ", " ".join(paragraph.split()))
    ]
    return [each for each in found if len(each) >= 60]
