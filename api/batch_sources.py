"""What a batch may be filled from, as a request names it and as its row keeps it."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic import model_validator as checks_all
from pydantic.json_schema import WithJsonSchema

from api.accept_source import require_allowed
from api.cursor import PLACE_PATTERN
from api.errors import FieldProblem, InvalidFieldsError
from api.filenames import MAX_LENGTH
from api.place_settings import AllowedSources
from api.source_reference import ObjectName, require_usable
from api.upload_form import require_keepable, require_printable, resolve_options
from storage.source_object import MAX_KEY_BYTES, SourceAddress

MAX_OBJECTS = 1_000
ManifestFormat = Literal["csv", "ndjson"]
_FORMATS: dict[str, ManifestFormat] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
_ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"

Options = Annotated[
    dict[str, Any], WithJsonSchema({"allOf": [{"$ref": "#/components/schemas/OcrOptions"}]})
]


class NamedObject(ObjectName):
    """An object that becomes a document, and what goes with it."""

    external_id: str | None = Field(default=None, max_length=MAX_LENGTH)
    metadata: dict[str, Any] | None = Field(
        default=None, description="Of up to 16 KiB, returned as given."
    )
    options: Options = Field(
        default_factory=dict, description="Options (see OcrOptions) above those of the batch."
    )

    @field_validator("external_id")
    @classmethod
    def _is_printable(cls, given: str | None) -> str | None:
        return require_printable(given)

    @field_validator("metadata")
    @classmethod
    def _can_be_kept(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return require_keepable(given)


class ObjectSources(BaseModel):
    """Objects by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objects: list[NamedObject] = Field(min_length=1, max_length=MAX_OBJECTS)


class ManifestSource(ObjectName):
    """A manifest in a bucket: a row for each object, as `s3://bucket/key`."""

    format: ManifestFormat | None = Field(
        default=None, description="None: as the key ends in `.csv`, `.ndjson` or `.jsonl`."
    )


class PrefixSource(BaseModel):
    """All that lies under a prefix of a bucket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bucket: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]+$")]
    prefix: Annotated[
        str,
        StringConstraints(max_length=MAX_KEY_BYTES, pattern=r"^[^\x00]*$"),
        AfterValidator(require_usable),
    ] = ""


class BatchSource(BaseModel):
    """What a batch is filled from: one of three, or nothing yet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objects: list[NamedObject] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_OBJECTS,
        description="Objects by name; `POST …/objects` adds more.",
    )
    manifest: ManifestSource | None = None
    prefix: PrefixSource | None = None

    @checks_all(mode="after")
    def _is_one(self) -> Self:
        if sum(each is not None for each in (self.objects, self.manifest, self.prefix)) > 1:
            raise ValueError("names more than one of objects, manifest and prefix")
        return self


class NewBatch(BatchSource):
    """A batch to be created, and what it is filled from; by uploads, where that is left out."""

    name: str = Field(
        min_length=1,
        max_length=200,
        description="For people; need not be unique.",
        json_schema_extra={"pattern": _ONE_LINE},
    )
    options: Options = Field(
        default_factory=dict,
        description="Options (see OcrOptions) of those documents of the batch that do not say "
        "otherwise.",
    )
    dry_run: bool = Field(
        default=False, description="Create nothing, and count what it would be filled with."
    )
    cursor: str | None = Field(
        default=None,
        pattern=PLACE_PATTERN,
        description="With `dry_run`: `next_cursor` of the count before.",
    )

    @field_validator("name")
    @classmethod
    def _is_one_line(cls, name: str) -> str:
        if not re.fullmatch(_ONE_LINE, name):
            raise ValueError("must not have control characters or line breaks")
        return name

    @field_validator("cursor")
    @classmethod
    def _is_of_a_count(cls, cursor: str | None, others: ValidationInfo) -> str | None:
        if cursor is not None and not others.data.get("dry_run"):
            raise ValueError("goes with dry_run alone")
        return cursor


def source_to_row(
    source: BatchSource, options: dict[str, Any], allowed: AllowedSources, *, tenant: str
) -> dict[str, Any] | None:
    """Return what a batch is filled from, as its listing keeps it; None: nothing.

    Args:
        source: as the request names it.
        options: of the batch.
        allowed: whence documents may come.
        tenant: whose documents they become.

    Raises:
        ApiError: a place is not allowed.
        InvalidFieldsError: options of an object are wrong, or nothing tells the manifest's format.
    """
    if source.prefix is not None:
        _require(SourceAddress(source.prefix.bucket, source.prefix.prefix), allowed, tenant)
        return {"kind": "prefix", **source.prefix.model_dump(mode="json")}
    if source.manifest is not None:
        _require(SourceAddress(source.manifest.bucket, source.manifest.key), allowed, tenant)
        return {
            "kind": "manifest",
            **source.manifest.model_dump(mode="json"),
            "format": format_of(source.manifest),
        }
    if source.objects is not None:
        return objects_to_row(source.objects, options, allowed, tenant=tenant)
    return None


def objects_to_row(
    objects: list[NamedObject],
    options: dict[str, Any],
    allowed: AllowedSources,
    *,
    tenant: str,
) -> dict[str, Any]:
    """Return objects by name as a listing keeps them; see ``source_to_row``."""
    for named in objects:
        _require(SourceAddress(named.bucket, named.key), allowed, tenant)
        resolve_options(options, named.options)
    return {"kind": "objects", "objects": [each.model_dump(mode="json") for each in objects]}


def format_of(manifest: ManifestSource) -> ManifestFormat:
    """Return what a manifest is written in.

    Raises:
        InvalidFieldsError: neither the request nor the key says so.
    """
    told = manifest.format or _FORMATS.get(PurePosixPath(manifest.key).suffix.lower())
    if told is None:
        raise InvalidFieldsError(
            FieldProblem("manifest.format", "is missing, and the key ends in no known way")
        )
    return told


def _require(address: SourceAddress, allowed: AllowedSources, tenant: str) -> None:
    # A prefix lies in a place as a key does: whatever begins with it does so too.
    require_allowed(address, allowed, tenant=tenant)
