"""A recognizer's charset: which character each class of its output stands for."""

from collections.abc import Sequence

from workers.ocr.ctc import SPACE
from workers.ocr.errors import ModelFileError


def split_charset(listed: str, *, has_space_class: bool = True) -> tuple[str, ...]:
    r"""Take a charset apart.

    Characters are separated by ``\n`` alone: other line separators, spaces of every width and
    control characters are members of the charset. A file whose every line ends with ``\r\n`` was
    written on Windows; there the ``\r`` is no member. One line end at the end ends the last line.

    Args:
        listed: one character a line, from a model's metadata or a file of its own.
        has_space_class: the model has a last class for the space, which is never listed.

    Returns:
        The characters of classes 1, 2, …; class 0 is the CTC blank.
    """
    lines = listed.removesuffix("\n").split("\n")
    ended = lines if listed.endswith("\n") else lines[:-1]
    if ended and all(len(line) > 1 and line.endswith("\r") for line in ended):
        lines = [line.removesuffix("\r") for line in lines]
    return (*lines, SPACE) if has_space_class else tuple(lines)


def check_charset(
    charset: Sequence[str], class_count: int | None, *, has_space_class: bool
) -> None:
    """Check a charset against the size of the recognizer's output.

    Raises:
        ModelFileError: the output has not one class a character and one for the blank.
    """
    if class_count == len(charset) + 1:
        return
    counted = "with the space" if has_space_class else "without a space"
    reason = (
        f"the charset has {len(charset)} characters {counted}, but the recognizer has"
        f" {class_count} classes, one of them the blank"
    )
    if has_space_class and class_count == len(charset):
        reason += '; a model without a class for the space says "has_space_class": false'
    raise ModelFileError(reason)
