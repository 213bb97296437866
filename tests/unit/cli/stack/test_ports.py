import socket

from cli.stack.ports import free_ports, is_free


def test_ports_are_free_and_different() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(map(is_free, ports))


def test_a_preferred_port_is_used_where_it_is_free() -> None:
    wish = free_ports(1)[0]

    assert free_ports(2, preferred=[wish])[0] == wish


def test_a_preferred_port_that_is_taken_is_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wish = taken.getsockname()[1]

        assert not is_free(wish)
        assert free_ports(1, preferred=[wish])[0] != wish


def test_more_wishes_than_ports_are_no_more_ports() -> None:
    assert len(free_ports(1, preferred=free_ports(3))) == 1


def test_one_wish_for_two_ports_is_met_once() -> None:
    wish = free_ports(1)[0]

    assert len(set(free_ports(2, preferred=[wish, wish]))) == 2
