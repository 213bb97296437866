import pytest

from api.answer_places import AnswerPlaces
from api.errors import ApiError


def test_an_owner_that_has_all_its_places_leaves_those_of_others() -> None:
    places = AnswerPlaces("too_many_streams", per_owner=1, total=2)
    with places.place("a"):
        with pytest.raises(ApiError, match="too_many_streams"):
            places.place("a").__enter__()
        with places.place("b"), pytest.raises(ApiError, match="too_many_streams"):
            places.place("c").__enter__()


def test_a_place_is_free_again_when_its_answer_is_over() -> None:
    places = AnswerPlaces("too_many_streams", per_owner=1, total=1)
    for _ in range(2):
        with places.place("a"):
            pass
