import numpy as np
import pytest
from numpy.typing import NDArray

from workers.ocr.inked_window import inked_window

HEIGHT_PX, WIDTH_PX = 2_200, 1_700
WHOLE = (slice(0, HEIGHT_PX), slice(0, WIDTH_PX))


def paper(value: int = 255) -> NDArray[np.uint8]:
    return np.full((HEIGHT_PX, WIDTH_PX, 3), value, dtype=np.uint8)


@pytest.mark.parametrize(("paper_value", "ink_value"), [(255, 0), (0, 255), (230, 210)])
def test_the_window_is_all_that_differs_from_the_paper_and_a_margin(
    paper_value: int, ink_value: int
) -> None:
    page = paper(paper_value)
    page[301:320, 400:521] = ink_value

    rows, columns = inked_window(page)

    assert 230 <= rows.start < 290
    assert 330 < rows.stop <= 390
    assert 330 <= columns.start < 390
    assert 530 < columns.stop <= 590


def test_a_window_ends_at_the_edge_of_the_page() -> None:
    page = paper()
    page[:20, -90:] = 0

    rows, columns = inked_window(page)

    assert (rows.start, columns.stop) == (0, WIDTH_PX)


def test_a_hair_is_seen() -> None:
    """What is cut away is lost, so that nothing may be too thin."""
    page = paper()
    page[300, 300:310] = 0
    page[700:710, 900] = 0

    rows, columns = inked_window(page)

    assert rows.start < 300
    assert rows.stop > 710
    assert columns.start < 300
    assert columns.stop > 901


def test_a_page_with_ink_all_over_is_looked_at_whole() -> None:
    page = paper()
    page[100:120, 100:300] = 0
    page[-120:-100, -300:-100] = 0

    assert inked_window(page) == WHOLE


def test_noise_is_no_blank_paper() -> None:
    page = paper(230)
    noise = np.random.default_rng(5).normal(0, 12, page.shape[:2])
    page = np.clip(page + noise[..., None], 0, 255).astype(np.uint8)
    page[300:320, 400:520] = 0

    assert inked_window(page) == WHOLE


def test_a_blank_page_is_looked_at_whole() -> None:
    assert inked_window(paper()) == WHOLE


@pytest.mark.parametrize("size", [(1, 1), (3, 2_000), (2_000, 3), (1_001, 999)])
def test_any_size_will_do(size: tuple[int, int]) -> None:
    page = np.full((*size, 3), 255, dtype=np.uint8)
    page[-1, -1] = 0

    rows, columns = inked_window(page)

    assert (rows.stop, columns.stop) == size
