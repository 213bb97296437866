"""Numbers of things, as people say them."""


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with the word for what it counts: ``1 document``, ``2,000 documents``.

    Args:
        number: of things.
        singular: the word for one.
        plural: the word for any other number; None: the singular with an s.
    """
    word = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {word}"
