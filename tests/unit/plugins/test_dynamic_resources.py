"""DynamicResources, which turns pods with claims away until it can serve them."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Code
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


def claiming(each: Pod) -> Pod:
    return replace(each, spec=replace(each.spec, resource_claims=(PodResourceClaim(name="gpu"),)))


def post_filter(lab: Lab, asking: Pod, state: CycleState) -> tuple[Code, str]:
    plugin = lab.plugin("DynamicResources")
    status = plugin.post_filter(state, lab.pending(asking), lab.diagnosis(asking)).status
    return status.code, status.message


def test_a_pod_without_claims_is_not_its_business() -> None:
    assert Lab(node("n1")).feasible(pod("p")) == ["n1"]


def test_a_pod_with_claims_is_turned_away_with_a_reason() -> None:
    lab = Lab(node("n1"))
    assert lab.message(claiming(pod("p"))) == (
        "0/1 nodes are available: resource claims are not supported by this version of kubesched."
    )
    assert lab.diagnosis(claiming(pod("p"))).unschedulable_plugins == {"DynamicResources"}


def test_that_there_are_no_claims_to_take_back_is_not_worth_a_word() -> None:
    lab, state, asking = Lab(node("n1", cpu="1")), CycleState(), pod("p", cpu="2")
    assert isinstance(lab.find(asking, state), Diagnosis)
    assert post_filter(lab, asking, state) == (Code.UNSCHEDULABLE, "")


def test_a_pod_that_it_never_saw_is_an_error_as_in_kube_scheduler() -> None:
    """PreFilter of an earlier plugin turned the pod away; preemption is then not tried either."""
    lab, asking = Lab(node("n1", cpu="1")), pod("p", cpu="2")
    assert post_filter(lab, asking, CycleState()) == (Code.ERROR, "not found")
