import pytest

from workers.ocr.page_tree import PageTree, TreeNode, walk_page_tree


def walked(**nodes: TreeNode) -> PageTree:
    """Walk a tree whose inner nodes are these: n1 is the root."""
    return walk_page_tree(1, lambda number: nodes.get(f"n{number}"))


def test_pages_come_in_the_order_of_the_tree() -> None:
    tree = walked(n1=TreeNode((2, 9, 3), 4), n2=TreeNode((8, 7), 2), n3=TreeNode((6,), 1))

    assert tree == PageTree((8, 7, 9, 6), is_counted_right=True)


def test_a_wrong_count_of_a_branch_is_seen_where_the_sum_is_right() -> None:
    tree = walked(n1=TreeNode((2, 3), 3), n2=TreeNode((8, 7), 1), n3=TreeNode((6,), 2))

    assert tree == PageTree((8, 7, 6), is_counted_right=False)


def test_a_node_without_a_count_does_not_count_right() -> None:
    assert not walked(n1=TreeNode((8,), None)).is_counted_right


def test_a_tree_that_comes_back_to_itself_ends() -> None:
    tree = walked(n1=TreeNode((2, 8), 2), n2=TreeNode((1, 2, 9), 1))

    assert tree.pages == (9, 8)


def test_a_tree_that_comes_back_to_itself_does_not_count_right() -> None:
    assert walked(n1=TreeNode((8, 1, 9), 2)) == PageTree((8, 9), is_counted_right=False)


def test_a_branch_in_two_places_is_no_tree() -> None:
    with pytest.raises(ValueError, match="branch 2"):
        walked(n1=TreeNode((2, 2), 4), n2=TreeNode((8, 7), 2))


def test_a_page_that_stands_twice_is_there_twice() -> None:
    assert walked(n1=TreeNode((8, 8), 2)) == PageTree((8, 8), is_counted_right=True)


def test_a_branch_without_pages_is_none_of_them() -> None:
    assert walked(n1=TreeNode((2, 8), 1), n2=TreeNode((), 0)).pages == (8,)


def test_a_tree_of_any_depth_is_walked() -> None:
    depth = 100_000

    tree = walk_page_tree(1, lambda number: TreeNode((number + 1,), 1) if number < depth else None)

    assert tree == PageTree((depth,), is_counted_right=True)
