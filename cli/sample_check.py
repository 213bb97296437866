"""Whether a sample document became what it must: its text, or its named error."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from cli.counting import count_of
from cli.samples import Sample
from workers.ocr.page_text import page_text
from workers.settings import OcrSettings

# Characters that agree in order. The samples read at 0.99 and better on a CPU; a page that is
# missing, turned or mixed up with another is far below.
LEAST_SIMILARITY: Final = 0.95
# Of words that are read right, of those that were recognized: tiny type on a dense page.
LEAST_WORD_SHARE: Final = 0.9
_MAX_CROPS: Final = int(OcrSettings.model_fields["max_crops_per_page"].default)


def refusal_problems(sample: Sample, error_code: str) -> list[str]:
    """Say what is wrong with a sample that ended in an error; empty when it had to."""
    if sample.error_code == error_code:
        return []
    wanted = f"the error {sample.error_code}" if sample.error_code else "its text"
    return [f"ended with the error {error_code}, expected {wanted}"]


def result_problems(sample: Sample, result: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with the result of a sample; empty when it is as it must be.

    Args:
        sample: what was drawn.
        result: a document of the schema ``pagefleet/1``.
    """
    if sample.error_code is not None:
        return [f"was read, expected the error {sample.error_code}"]
    pages = result["pages"]
    if len(pages) != sample.page_count:
        return [f"has {count_of(len(pages), 'page')}, expected {sample.page_count}"]
    return [
        f"page {page['page_number']}: {problem}"
        for page, lines in zip(pages, sample.page_lines, strict=True)
        for problem in _page_problems(page, lines)
    ]


def similarity(expected: str, found: str) -> float:
    """Return how many characters agree in order, 0 to 1, whatever the spaces and line ends."""
    return SequenceMatcher(None, _squeezed(expected), _squeezed(found), autojunk=False).ratio()


def _page_problems(page: Mapping[str, Any], lines: Sequence[str]) -> list[str]:
    if page["state"] != "ok":
        return [f"is {page['state']}: {page.get('error')}"]
    if len(lines) > _MAX_CROPS:
        return _dense_problems(page, lines)
    likeness = similarity("\n".join(lines), page_text(page))
    if likeness < LEAST_SIMILARITY:
        return [f"its text agrees to {likeness:.2f}, expected {LEAST_SIMILARITY}"]
    return []


def _dense_problems(page: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Look at a page with more text than is recognized: it has to say so, and read the rest."""
    problems = []
    if not page["truncated"] or page["crops_kept"] != _MAX_CROPS:
        problems.append(
            f"keeps {page['crops_kept']} of {page['crops_found']} text lines and says"
            f" truncated: {page['truncated']}; expected {_MAX_CROPS} and true"
        )
    found = Counter(page_text(page).split())
    share = sum((Counter(words) & found).values()) / max(page["crops_kept"], 1)
    if share < LEAST_WORD_SHARE:
        problems.append(f"{share:.2f} of its words are right, expected {LEAST_WORD_SHARE}")
    return problems


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())
