import pytest

from api.prefer import wait_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], None),
        (["wait=20"], 20),
        (["respond-async, WAIT = 5"], 5),
        (['wait="7"'], 7),
        (["return=minimal", "wait=9"], 9),
        (["wait=3; x=1, wait=4"], 3),
        (["wait=999999"], 60),
        (["wait=0"], None),
        (["wait=-1"], None),
        (["wait=soon"], None),
        (["wait"], None),
        (["await=20"], None),
    ],
)
def test_the_first_wait_that_is_understood_counts(headers: list[str], expected: int | None) -> None:
    assert wait_s(headers, most_s=60) == expected


def test_where_nobody_may_wait_the_preference_is_passed_over() -> None:
    assert wait_s(["wait=20"], most_s=0) is None
