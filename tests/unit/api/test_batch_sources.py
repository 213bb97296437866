from typing import Any

import pytest
from pydantic import ValidationError

from api.batch_sources import NamedObject, NewBatch, PrefixSource

TOO_LONG = "ü" * 513  # characters, and twice as many bytes


def problems_of_batch(**fields: Any) -> list[tuple[object, ...]]:
    with pytest.raises(ValidationError) as raised:
        NewBatch(name="boxes", **fields)
    return [problem["loc"] for problem in raised.value.errors()]


def test_a_cursor_goes_with_a_count_alone() -> None:
    assert problems_of_batch(cursor="aW4v") == [("cursor",)]
    assert NewBatch(name="boxes", dry_run=True, cursor="aW4v").cursor == "aW4v"


@pytest.mark.parametrize("field", ["bucket", "key", "version_id"])
def test_a_name_has_as_many_bytes_as_s3_takes(field: str) -> None:
    named = {"bucket": "scans", "key": "in/a.pdf"}

    with pytest.raises(ValidationError, match="no object of S3 has"):
        NamedObject.model_validate({**named, field: TOO_LONG})

    assert NamedObject.model_validate({**named, field: TOO_LONG[:512]})


def test_a_prefix_has_as_many_bytes_as_s3_takes() -> None:
    with pytest.raises(ValidationError, match="no object of S3 has"):
        PrefixSource(bucket="scans", prefix=TOO_LONG)

    assert PrefixSource(bucket="scans", prefix=TOO_LONG[:512])
