import pytest

from cli.client import UNREACHABLE
from cli.errors import ApiError
from cli.watch import follow


class Answers:
    """Gives its answers one by one; an exception among them is raised."""

    def __init__(self, *answers: int | ApiError) -> None:
        self._answers = iter(answers)

    def __call__(self) -> int:
        answer = next(self._answers)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def is_final(value: int) -> bool:
    return value == 0


def test_the_final_state_is_the_last_that_is_seen() -> None:
    assert list(follow(Answers(2, 1, 0), is_final=is_final, interval_s=0)) == [2, 1, 0]


def test_an_api_that_is_restarted_is_waited_for() -> None:
    answers = Answers(
        1, ApiError("gone", "", code=UNREACHABLE), ApiError("", "", code="x", status=503), 0
    )

    assert list(follow(answers, is_final=is_final, interval_s=0)) == [1, 0]


def test_a_refusal_ends_the_watch() -> None:
    answers = Answers(1, ApiError("no such document", "", code="not_found", status=404))

    with pytest.raises(ApiError, match="no such document"):
        list(follow(answers, is_final=is_final, interval_s=0))
