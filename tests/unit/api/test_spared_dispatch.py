from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from api.broker_rest import BrokerRest
from api.spared_dispatch import SparedDispatch
from db.ids import new_id
from db.states import Priority
from tests.support.clock import Clock
from workers.dispatch import DispatchError


class Broker:
    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    def send_split(self, document_id: UUID, *, priority: Priority) -> None:
        self.asked += 1
        if self.is_away:
            raise DispatchError(f"{document_id} {priority}")

    @contextmanager
    def place_for_split(self) -> Iterator[bool]:
        self.asked += 1
        if self.is_away:
            raise DispatchError
        yield True

    def send_drawing(self, document_id: UUID, page_index: int, *, tenant: str) -> bool:  # noqa: ARG002 - the door's
        self.asked += 1
        if self.is_away:
            raise DispatchError
        return True

    def send_export(self, export_id: UUID, document_id: UUID, *, priority: Priority) -> bool:  # noqa: ARG002 - the door's
        self.asked += 1
        if self.is_away:
            raise DispatchError
        return True


def spared(broker: Broker, clock: Clock) -> SparedDispatch:
    return SparedDispatch(
        broker.send_split,
        broker.place_for_split,
        broker.send_drawing,
        broker.send_export,
        rest=BrokerRest(rest_s=5, clock=clock),
    )


def send(dispatch: SparedDispatch) -> None:
    dispatch.send_split(new_id(), priority=Priority.BULK)


def has_place(dispatch: SparedDispatch) -> bool:
    with dispatch.place_for_split() as found:
        return found


def test_a_broker_that_did_not_answer_is_not_asked_again_at_once() -> None:
    broker, clock = Broker(), Clock()
    dispatch = spared(broker, clock)
    broker.is_away = True
    for _ in range(3):
        with pytest.raises(DispatchError):
            send(dispatch)
    assert broker.asked == 1

    broker.is_away = False
    clock.now_s += 5
    send(dispatch)

    assert broker.asked == 2


def test_a_broker_that_is_away_has_no_place_and_is_not_waited_for_twice() -> None:
    broker, clock = Broker(), Clock()
    dispatch = spared(broker, clock)
    broker.is_away = True

    assert [has_place(dispatch) for _ in range(3)] == [False] * 3
    assert broker.asked == 1

    broker.is_away = False
    clock.now_s += 5

    assert has_place(dispatch)


def test_a_broker_that_did_not_take_a_split_is_not_asked_for_a_drawing() -> None:
    broker, clock = Broker(), Clock()
    dispatch = spared(broker, clock)
    broker.is_away = True
    with pytest.raises(DispatchError):
        send(dispatch)
    with pytest.raises(DispatchError):
        dispatch.send_drawing(new_id(), 0, tenant="a")
    assert broker.asked == 1

    broker.is_away = False
    clock.now_s += 5

    assert dispatch.send_drawing(new_id(), 0, tenant="a")


def test_an_export_that_no_broker_hears_of_is_left_to_the_sweep() -> None:
    broker, clock = Broker(), Clock()
    dispatch = spared(broker, clock)
    broker.is_away = True

    said = [dispatch.send_export(new_id(), new_id(), priority=Priority.BULK) for _ in range(3)]

    assert said == [False, False, False]
    assert broker.asked == 1
    broker.is_away = False
    clock.now_s += 5
    assert dispatch.send_export(new_id(), new_id(), priority=Priority.BULK)
