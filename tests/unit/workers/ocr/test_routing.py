import pytest

from workers.ocr.geometry import Box
from workers.ocr.routing import LayerEvidence, RouteDecision, decide_early, decide_route

TEXT = "The keeper of the lamp wrote down every ship that passed."
LETTERS = sum(not character.isspace() for character in TEXT)
REGION = Box(0, 0, 100, 100)
PLACE = Box(1, 1, 2, 2)


def test_a_sound_layer_is_taken() -> None:
    assert decide_route(LayerEvidence(TEXT)) == RouteDecision("text", "sound_layer")


def test_images_beside_a_sound_layer_are_recognized() -> None:
    decision = decide_route(LayerEvidence(TEXT, regions=(REGION,)))

    assert decision == RouteDecision("mixed", "image_regions", (REGION,))


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (LayerEvidence("", invisible=50), "invisible_text"),
        (LayerEvidence(TEXT, invisible=LETTERS), "invisible_text"),
        (LayerEvidence(TEXT, invisible=3 * LETTERS, regions=(REGION,)), "invisible_text"),
        (LayerEvidence(TEXT, under_image=LETTERS), "text_under_image"),
        (LayerEvidence(TEXT, inkless=LETTERS), "text_without_ink"),
        (LayerEvidence("", invisible=2), "no_visible_layer"),
        (LayerEvidence(TEXT, unmapped=10), "unmapped_font"),
        (LayerEvidence(TEXT + "\ufffd" * 9), "unknown_characters"),
        (LayerEvidence("#$%&/()=?" * 5), "implausible_text"),
        (LayerEvidence(TEXT, unexplained_shapes=40), "ink_without_text"),
    ],
)
def test_a_doubt_sends_the_page_to_recognition(evidence: LayerEvidence, reason: str) -> None:
    decision = decide_route(evidence)

    assert (decision.route, decision.reason) == ("ocr", reason)


@pytest.mark.parametrize(
    "evidence",
    [
        LayerEvidence(TEXT * 3, invisible=10),
        LayerEvidence(TEXT, invisible=2),
        LayerEvidence(TEXT * 9, inkless=20),
        LayerEvidence(TEXT * 9, unmapped=20),
        LayerEvidence(TEXT * 9, unexplained_shapes=50),
        LayerEvidence(TEXT, unexplained_shapes=39),
    ],
)
def test_a_little_is_no_doubt(evidence: LayerEvidence) -> None:
    assert decide_route(evidence).route == "text"


def test_recognized_images_in_a_page_that_was_set_do_not_cost_its_layer() -> None:
    decision = decide_route(LayerEvidence(TEXT * 3, invisible=LETTERS, regions=(REGION,)))

    assert decision.route == "mixed"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], ("blank", "no_ink")),
        (["fill-path", "fill-image"], ("ocr", "no_layer")),
        (["fill-image", "ignore-text"], ("ocr", "invisible_text")),
    ],
)
def test_what_a_page_draws_may_tell_all(kinds: list[str], expected: tuple[str, str]) -> None:
    decision = decide_early([(kind, PLACE) for kind in kinds])

    assert decision is not None
    assert (decision.route, decision.reason) == expected


def test_visible_text_has_to_be_weighed() -> None:
    assert decide_early([("ignore-text", PLACE), ("stroke-text", PLACE)]) is None
