from pathlib import Path
from typing import Any

from cli.sample_check import refusal_problems, result_problems, similarity
from cli.samples import Sample

LINES = ("Shelf 1: pilot books, 1858 to 1870", "Shelf 2: ships' registers, 1871 to 1884")
LETTER = Sample(Path("letter.pdf"), page_lines=(LINES,))
DAMAGED = Sample(Path("damaged.pdf"), error_code="damaged")


def page_of(*lines: str, **changes: Any) -> dict[str, Any]:
    page: dict[str, Any] = {
        "page_number": 1,
        "state": "ok",
        "truncated": False,
        "crops_found": len(lines),
        "crops_kept": len(lines),
        "blocks": [{"lines": list(range(len(lines)))}],
        "lines": [{"text": line} for line in lines],
    }
    return page | changes


def test_the_text_that_was_drawn_is_right() -> None:
    assert result_problems(LETTER, {"pages": [page_of(*LINES)]}) == []


def test_spaces_do_not_count() -> None:
    assert similarity("ships' registers", "ships'\nregis ters") == 1


def test_one_wrong_letter_is_tolerated() -> None:
    assert result_problems(LETTER, {"pages": [page_of(LINES[0], LINES[1][:-1] + "9")]}) == []


def test_a_missing_line_is_a_problem() -> None:
    (problem,) = result_problems(LETTER, {"pages": [page_of(LINES[0])]})

    assert problem.startswith("page 1: its text agrees to 0.")


def test_lines_in_the_wrong_order_are_a_problem() -> None:
    assert result_problems(LETTER, {"pages": [page_of(LINES[1], LINES[0])]}) != []


def test_a_missing_page_is_a_problem() -> None:
    assert result_problems(LETTER, {"pages": []}) == ["has 0 pages, expected 1"]


def test_a_failed_page_is_a_problem() -> None:
    assert len(result_problems(LETTER, {"pages": [page_of(state="failed")]})) == 1


def test_a_file_that_had_to_be_refused_and_was_read_is_a_problem() -> None:
    assert result_problems(DAMAGED, {"pages": []}) == ["was read, expected the error damaged"]


def test_the_named_error_is_right() -> None:
    assert refusal_problems(DAMAGED, "damaged") == []


def test_another_error_is_a_problem() -> None:
    assert len(refusal_problems(DAMAGED, "internal")) == 1


def test_an_error_of_a_readable_file_is_a_problem() -> None:
    assert len(refusal_problems(LETTER, "worker_lost")) == 1


DENSE_WORDS = tuple(f"word{number:04}" for number in range(2_208))
DENSE = Sample(Path("dense.png"), page_lines=(DENSE_WORDS,))


def test_a_dense_page_is_right_when_it_is_cut_openly() -> None:
    page = page_of(*DENSE_WORDS[:2_000], truncated=True, crops_found=2_208)

    assert result_problems(DENSE, {"pages": [page]}) == []


def test_a_dense_page_that_is_cut_in_silence_is_a_problem() -> None:
    page = page_of(*DENSE_WORDS[:2_000])

    (problem,) = result_problems(DENSE, {"pages": [page]})

    assert "truncated: False" in problem


def test_a_dense_page_of_other_words_is_a_problem() -> None:
    words = [word.upper() for word in DENSE_WORDS[:2_000]]
    page = page_of(*words, truncated=True, crops_found=2_208)

    (problem,) = result_problems(DENSE, {"pages": [page]})

    assert "0.00 of its words" in problem
