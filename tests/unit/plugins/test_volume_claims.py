"""The claims of a pod: which of them cannot be used, and what is to be done about the others."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.errors import ObjectError
from kubesched.plugins.volume_claims import is_fully_bound, sort_claims, usable_claims
from tests.support.objects import node, pod
from tests.support.storage_objects import ephemeral_volume, using, with_volumes
from tests.support.volume_scheduling import VolumeLab, claim, storage_class

PLAIN, EPHEMERAL = using(pod("p"), "c"), with_volumes(pod("p"), ephemeral_volume("scratch"))


def refusal(asking: Pod, *claims: PersistentVolumeClaim) -> str:
    lab = VolumeLab(node("n")).have(*claims)
    with pytest.raises(ObjectError) as refused:
        usable_claims(lab.pending(asking), lab.storage)
    return str(refused.value)


@pytest.mark.parametrize(
    ("asking", "there", "want"),
    [
        pytest.param(PLAIN, [], 'persistentvolumeclaim "c" not found', id="missing"),
        pytest.param(
            EPHEMERAL,
            [],
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            '"p-scratch"',
            id="not made yet",
        ),
        pytest.param(
            PLAIN,
            [claim("c", volume="v", phase="Lost")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="lost",
        ),
        pytest.param(
            PLAIN,
            [claim("c", deleting=True)],
            'persistentvolumeclaim "c" is being deleted',
            id="deleting",
        ),
        pytest.param(
            EPHEMERAL,
            [claim("p-scratch", owner="another")],
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
            id="of another pod",
        ),
    ],
)
def test_claims_that_cannot_be_used(
    asking: Pod, there: list[PersistentVolumeClaim], want: str
) -> None:
    assert refusal(asking, *there) == want


def test_usable_claims_are_in_the_pod_s_order() -> None:
    asking = with_volumes(using(pod("p"), "b", "a"), ephemeral_volume("scratch"))
    lab = VolumeLab(node("n")).have(claim("a"), claim("b"), claim("p-scratch", owner="p"))

    found = usable_claims(lab.pending(asking), lab.storage)

    assert [each.metadata.name for each in found] == ["b", "a", "p-scratch"]


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (claim("c", volume="v", bound=True), True),
        (claim("c", volume="v"), False),
        (claim("c", volume="v", selected="n1"), False),
        (claim("c", bound=True), False),
    ],
)
def test_a_claim_has_its_volume_for_good_once_the_controller_says_so(
    made: PersistentVolumeClaim, want: bool
) -> None:
    assert is_fully_bound(made) is want


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(claim("c", volume="v", bound=True), "bound", id="bound"),
        pytest.param(claim("c"), "delayed", id="waits for its pod"),
        pytest.param(claim("c", volume="v"), "immediate", id="being bound"),
        pytest.param(claim("c", storage_class="now"), "immediate", id="bound at once"),
        pytest.param(claim("c", storage_class="unknown"), "immediate", id="class unknown"),
        pytest.param(claim("c", storage_class=None), "immediate", id="no class"),
    ],
)
def test_what_is_to_be_done_about_a_claim(made: PersistentVolumeClaim, want: str) -> None:
    lab = VolumeLab(node("n")).have(storage_class(), storage_class("now", mode="Immediate"))

    found = sort_claims([made], lab.storage)

    assert {
        "bound": list(found.bound),
        "delayed": list(found.delayed),
        "immediate": list(found.immediate),
    } == {"bound": [], "delayed": [], "immediate": [], want: [made]}


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    lab = VolumeLab(node("n")).have(storage_class(mode=None))
    with pytest.raises(ObjectError, match='VolumeBindingMode not set for StorageClass "wait"'):
        sort_claims([claim("c")], lab.storage)
