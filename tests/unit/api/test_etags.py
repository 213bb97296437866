import pytest

from api.etags import etag_of, matches

ETAG = etag_of("a")


def test_parts_are_not_run_together() -> None:
    assert etag_of("ab", "c") != etag_of("a", "bc")


@pytest.mark.parametrize("header", [ETAG, f"W/{ETAG}", "*", f'"other", {ETAG}'])
def test_a_tag_that_is_named_matches(header: str) -> None:
    assert matches(header, ETAG)


@pytest.mark.parametrize("header", [None, "", '"other"', ETAG.strip('"')])
def test_a_tag_that_is_not_named_does_not_match(header: str | None) -> None:
    assert not matches(header, ETAG)
