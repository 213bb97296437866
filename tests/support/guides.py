"""Tables of the guides, and what the settings classes say should stand in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import api.settings  # noqa: F401 - defines settings, as the next does
import cli.settings  # noqa: F401
from workers.settings import PREFIX, CheckedSettings

DOCS = Path(__file__).parents[2] / "docs"


def table_rows(guide: str) -> list[list[str]]:
    """Return the cells of every table row of a guide."""
    lines = (DOCS / guide).read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


def settings_classes(
    cls: type[CheckedSettings] = CheckedSettings,
) -> Iterator[type[CheckedSettings]]:
    """Yield every settings class of the program; the modules that define them are imported."""
    for each in cls.__subclasses__():
        yield each
        yield from settings_classes(each)


def setting_rows() -> list[list[str]]:
    """Return what the code says of each setting: variable, default, range, meaning.

    A setting of two classes that do not say the same is there twice.
    """
    rows = {
        (
            f"`{PREFIX}{name.upper()}`",
            _default(field),
            _range(field),
            field.description or "",
        )
        for cls in settings_classes()
        for name, field in cls.model_fields.items()
    }
    return sorted(map(list, rows))


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "see there"
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None or field.default in (frozenset(), ()):
        return "none"
    return f"`{field.default}`"


def _range(field: FieldInfo) -> str:
    choices = _choices(field.annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    parts = [_bound(each) for each in field.metadata]
    return ", ".join(filter(None, parts))


def _bound(constraint: object) -> str:
    match constraint:
        case Ge(ge=limit):
            return f"at least {limit}"
        case Gt(gt=limit):
            return f"more than {limit}"
        case Le(le=limit):
            return f"at most {limit}"
        case Lt(lt=limit):
            return f"less than {limit}"
        case MinLen(min_length=length):
            return f"{length} characters or more"
    return ""


def _choices(annotation: Any) -> tuple[str, ...]:
    is_literal = str(get_origin(annotation)) == "typing.Literal"
    return get_args(annotation) if is_literal else ()
