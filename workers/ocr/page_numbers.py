"""How people count pages."""


def page_number(page_index: int) -> int:
    """Return the number, from 1, by which people call the page at a 0-based position."""
    return page_index + 1


def page_index(page_number: int) -> int:
    """Return the 0-based position of the page that people call by this number."""
    return page_number - 1
