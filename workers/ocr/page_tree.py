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

    Raises:
        ValueError: a branch stands in two places, so that it is no tree.

    Source: ISO 32000-2, 7.7.3, "Page tree".
    """
    pages: list[int] = []
    above: set[int] = set()
    done: set[int] = set()
    is_counted_right = True
    # Numbers to visit, and below the kids of a node its own, what it says and the pages before it.
    waiting: list[int | tuple[int, int | None, int]] = [root]
    while waiting:
        visited = waiting.pop()
        if isinstance(visited, tuple):
            number, count, before = visited
            is_counted_right &= count == len(pages) - before
            above.remove(number)
            done.add(number)
            continue
        node = node_at(visited)
        if node is None:
            pages.append(visited)
        elif visited in done:
            raise ValueError(f"the branch {visited} of the page tree stands in two places")
        elif visited in above:
            is_counted_right = False  # a reader that counts would go round here
        else:
            above.add(visited)
            waiting.append((visited, node.count, len(pages)))
            waiting.extend(reversed(node.kids))
    return PageTree(tuple(pages), is_counted_right)
