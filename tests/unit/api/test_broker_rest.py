import pytest

from api.broker_rest import BrokerRest
from tests.support.clock import Clock
from workers.dispatch import DispatchError


class Broker:
    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    def ask(self) -> str:
        self.asked += 1
        if self.is_away:
            raise DispatchError("away")
        return "answer"


def test_a_broker_that_failed_is_not_asked_until_the_rest_is_over() -> None:
    broker, clock = Broker(), Clock()
    ask = BrokerRest(rest_s=5, clock=clock).spared(broker.ask)
    broker.is_away = True
    for _ in range(3):
        with pytest.raises(DispatchError):
            ask()
    assert broker.asked == 1

    broker.is_away = False
    clock.now_s += 5

    assert [ask(), ask()] == ["answer"] * 2


def test_all_that_share_a_rest_learn_of_a_failure_together() -> None:
    failing, other, clock = Broker(), Broker(), Clock()
    rest = BrokerRest(rest_s=5, clock=clock)
    failing.is_away = True
    with pytest.raises(DispatchError):
        rest.spared(failing.ask)()

    with pytest.raises(DispatchError, match="just now"), rest.asking():
        other.ask()

    assert other.asked == 0


def test_after_a_rest_one_asks_and_the_others_do_not_wait_for_it() -> None:
    broker, clock = Broker(), Clock()
    rest = BrokerRest(rest_s=5, clock=clock)
    ask = rest.spared(broker.ask)
    broker.is_away = True
    with pytest.raises(DispatchError):
        ask()
    clock.now_s += 5
    broker.is_away = False

    with rest.asking(), pytest.raises(DispatchError):
        ask()

    assert broker.asked == 1
    assert ask() == "answer"


def test_a_broker_that_still_fails_after_a_rest_is_given_another() -> None:
    broker, clock = Broker(), Clock()
    ask = BrokerRest(rest_s=5, clock=clock).spared(broker.ask)
    broker.is_away = True
    for _ in range(3):
        with pytest.raises(DispatchError):
            ask()
        clock.now_s += 4

    assert broker.asked == 2
