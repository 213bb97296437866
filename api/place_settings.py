"""Settings that name places in object storage: JSON in one variable, checked field by field."""

import json
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_settings import NoDecode

from api.upload_form import Priority
from workers.ocr.options import OcrOptions

P = TypeVar("P", bound=BaseModel)


class Place(BaseModel):
    """A bucket, or what lies under one prefix of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bucket: str = Field(min_length=1)
    prefix: str = ""

    def holds(self, bucket: str, key: str) -> bool:
        return bucket == self.bucket and key.startswith(self.prefix)

    def overlaps(self, bucket: str, prefix: str) -> bool:
        """Say whether an object can lie in both places."""
        return bucket == self.bucket and (
            prefix.startswith(self.prefix) or self.prefix.startswith(prefix)
        )


class AllowedSource(Place):
    """Whence clients may send documents; ``tenants`` None: all of them."""

    tenants: frozenset[str] | None = None


class WatchedPlace(Place):
    """What becomes of the objects that arrive there: whose documents, and how they are read."""

    tenant: str = Field(min_length=1)
    batch_id: UUID | None = None
    priority: Priority = "bulk"
    options: OcrOptions = OcrOptions()


def _list_of(kind: type[P]) -> BeforeValidator:
    """Return what reads a JSON list of places; its messages never repeat a value."""
    places: TypeAdapter[tuple[P, ...]] = TypeAdapter(tuple[kind, ...])  # type: ignore[valid-type] # made at run time

    def read(value: Any) -> Any:  # noqa: ANN401 - whatever a setting is given
        if not isinstance(value, str):
            return value
        try:
            return places.validate_python(json.loads(value))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
                for each in error.errors(include_input=False, include_url=False)
            ]
            raise ValueError("; ".join(problems)) from None
        except ValueError:
            raise ValueError("must be a JSON list of objects") from None

    return BeforeValidator(read)


AllowedSources = Annotated[tuple[AllowedSource, ...], NoDecode, _list_of(AllowedSource)]
WatchedPlaces = Annotated[tuple[WatchedPlace, ...], NoDecode, _list_of(WatchedPlace)]
