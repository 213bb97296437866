from uuid import UUID

import pytest

from api.spared_dispatch import SparedDispatch
from db.ids import new_id
from db.states import Priority
from workers.dispatch import DispatchError


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


class Broker:
    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    def __call__(self, document_id: UUID, *, priority: Priority) -> None:
        self.asked += 1
        if self.is_away:
            raise DispatchError(f"{document_id} {priority}")


def send(dispatch: SparedDispatch) -> None:
    dispatch(new_id(), priority=Priority.BULK)


def test_a_broker_that_did_not_answer_is_not_asked_again_at_once() -> None:
    broker, clock = Broker(), Clock()
    dispatch = SparedDispatch(broker, rest_s=5, clock=clock)
    broker.is_away = True
    for _ in range(3):
        with pytest.raises(DispatchError):
            send(dispatch)
    assert broker.asked == 1

    broker.is_away = False
    clock.now_s += 5
    send(dispatch)

    assert broker.asked == 2
