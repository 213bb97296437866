"""The page tree of a PDF: do its counts say how many pages it has?"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeNode:
    """An inner node.

    Attributes:
        kids: numbers of the objects below it, in their order.
        count: how many pages it says that it has; None where it does not say.
    """

    kids: tuple[int, ...]
    count: int | None


@dataclass(frozen=True, slots=True)
class PageTree:
    """What a walk through the tree found.

    Attributes:
        pages: numbers of the page objects, in their order.
        is_counted_right: whether every node says how many pages it has.
    """

    pages: tuple[int, ...]
    is_counted_right: bool


def walk_page_tree(root: int, node_at: Callable[[int], TreeNode | None]) -> PageTree:
    """Visit all nodes once.

    Args:
        root: object number of the tree's root.
        node_at: gives an inner node, None for a page.

    Source: ISO 32000-2, 7.7.3, "Page tree".
    """
    pages: list[int] = []
    seen: set[int] = set()
    is_counted_right = True
    # Numbers to visit, and below the kids of a node what it says and the pages found before it.
    waiting: list[int | tuple[int | None, int]] = [root]
    while waiting:
        visited = waiting.pop()
        if isinstance(visited, tuple):
            count, before = visited
            is_counted_right &= count == len(pages) - before
            continue
        node = node_at(visited)
        if node is None:
            pages.append(visited)
        elif visited not in seen:
            seen.add(visited)
            waiting.append((node.count, len(pages)))
            waiting.extend(reversed(node.kids))
    return PageTree(tuple(pages), is_counted_right)
