"""What plugins register: a change has a newest object, and no pod is apart unless they say so."""

from __future__ import annotations

import pytest

from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

EVENT = ClusterEvent(Resource.NODE, Action.ADD)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, "new", "new", id="added"),
        pytest.param("old", "new", "new", id="updated"),
        pytest.param("old", None, "old", id="deleted"),
        pytest.param(None, None, None, id="a custom event"),
    ],
)
def test_the_newest_object_is_the_last_one_that_was_there(
    old: str | None, new: str | None, want: str | None
) -> None:
    assert Change(EVENT, old, new).newest == want


def test_a_registration_without_functions_is_for_all_pods() -> None:
    registration = Registration(EVENT)

    assert registration.hint is None
    assert registration.signature_hint is None
    assert registration.pre_hint is None
    assert registration.screen is None
    assert not registration.apart(Change(EVENT))
