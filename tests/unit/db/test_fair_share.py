from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from db.fair_share import Lane, Turns

LANES = st.dictionaries(
    st.builds(Lane, st.sampled_from("abcd"), st.sampled_from(["", "1", "2", "3"])),
    st.integers(0, 30),
    max_size=16,
)
ROOM = st.integers(0, 40)


def test_tenants_take_turns_whatever_their_number_of_lanes() -> None:
    waiting = {Lane("a", name): 100 for name in ("1", "2", "3")} | {Lane("b", ""): 100}

    turns = Turns().plan(waiting, room=6)

    assert turns == [
        Lane("a", "1"),
        Lane("b", ""),
        Lane("a", "2"),
        Lane("b", ""),
        Lane("a", "3"),
        Lane("b", ""),
    ]


def test_room_that_one_tenant_does_not_need_goes_to_the_others() -> None:
    turns = Turns().plan({Lane("a", ""): 1, Lane("b", ""): 100}, room=10)

    assert Counter(turns) == {Lane("a", ""): 1, Lane("b", ""): 9}


@given(waiting=LANES, room=ROOM)
def test_all_room_is_used_that_somebody_waits_for(waiting: dict[Lane, int], room: int) -> None:
    turns = Turns().plan(waiting, room)

    assert len(turns) == min(room, sum(waiting.values()))
    assert all(count <= waiting[lane] for lane, count in Counter(turns).items())


@given(waiting=LANES, room=ROOM)
def test_no_tenant_that_waits_on_has_a_turn_less_than_another_one(
    waiting: dict[Lane, int], room: int
) -> None:
    turns = Counter(lane.tenant for lane in Turns().plan(waiting, room))
    demand: Counter[str] = Counter()
    for lane, count in waiting.items():
        demand[lane.tenant] += count

    waits_on = [turns[tenant] for tenant in demand if turns[tenant] < demand[tenant]]

    assert min(waits_on, default=room) >= max(turns.values(), default=0) - 1


@given(waiting=LANES, room=st.integers(1, 5))
def test_every_lane_is_served_however_little_room_there_is(
    waiting: dict[Lane, int], room: int
) -> None:
    waiting = {lane: count + 1 for lane, count in waiting.items()}
    turns = Turns()
    served: set[Lane] = set()

    # A tenant's lanes wait for one another and for the other tenants.
    for _ in range(len({lane.tenant for lane in waiting}) * 4):
        planned = turns.plan(waiting, room)
        turns.remember(planned, waiting)
        served.update(planned)

    assert served == set(waiting)


def test_whoever_waits_no_more_is_forgotten() -> None:
    turns = Turns()
    waiting = {Lane(f"tenant {number}", ""): 1 for number in range(100)}
    turns.remember(turns.plan(waiting, room=100), waiting)

    turns.remember([], {Lane("tenant 1", ""): 1})

    assert len(turns._last_lane) == 1
