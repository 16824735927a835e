"""Events that come while pods are being scheduled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.queue.events import NODE_ADD, NODE_DELETE, ClusterEvent, custom
from kubesched.queue.hints import Change
from kubesched.queue.in_flight import InFlight


def _since(in_flight: InFlight, uid: str) -> list[ClusterEvent]:
    return [change.event for change in in_flight.events_since(uid)]


def test_an_event_is_not_recorded_while_no_pod_is_in_flight() -> None:
    in_flight = InFlight()
    in_flight.record(Change(NODE_ADD))
    assert in_flight.event_count == 0
    in_flight.begin("a")
    assert _since(in_flight, "a") == []


def test_a_pod_sees_the_events_since_it_was_popped() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(Change(NODE_ADD))
    in_flight.begin("b")
    in_flight.record(Change(NODE_DELETE))
    assert _since(in_flight, "a") == [NODE_ADD, NODE_DELETE]
    assert _since(in_flight, "b") == [NODE_DELETE]
    assert _since(in_flight, "unknown") == []


def test_events_older_than_every_pod_in_flight_are_dropped() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(Change(NODE_ADD))
    in_flight.begin("b")
    in_flight.record(Change(NODE_DELETE))
    in_flight.end("a")
    assert in_flight.event_count == 1
    assert _since(in_flight, "b") == [NODE_DELETE]
    in_flight.end("b")
    assert (len(in_flight), in_flight.event_count) == (0, 0)


def test_the_pod_popped_first_retains_all_events() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(Change(NODE_ADD))
    in_flight.begin("b")
    in_flight.end("b")
    assert in_flight.event_count == 1
    assert "a" in in_flight
    assert "b" not in in_flight


def test_a_pod_that_is_done_takes_no_event_away_from_those_before_it() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(Change(NODE_ADD))
    in_flight.begin("b")
    in_flight.begin("c")
    in_flight.end("c")
    assert _since(in_flight, "a") == [NODE_ADD]
    assert _since(in_flight, "b") == []


def test_a_pod_that_is_done_twice_changes_nothing() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.end("b")
    in_flight.end("a")
    in_flight.end("a")
    assert len(in_flight) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "event", "event", "end"]), st.integers(0, 4)),
        min_size=10,
        max_size=40,
    )
)
def test_every_pod_sees_exactly_the_events_since_it_was_popped(
    steps: list[tuple[str, int]],
) -> None:
    in_flight = InFlight()
    model: dict[str, list[ClusterEvent]] = {}
    for number, (what, which) in enumerate(steps):
        uid = f"p{which}"
        if what == "begin" and uid not in model:
            in_flight.begin(uid)
            model[uid] = []
        elif what == "event":
            event = custom(f"event {number}")
            in_flight.record(Change(event))
            for seen in model.values():
                seen.append(event)
        elif what == "end":
            in_flight.end(uid)
            model.pop(uid, None)
        assert {each: _since(in_flight, each) for each in model} == model
        assert in_flight.event_count == max(map(len, model.values()), default=0)
