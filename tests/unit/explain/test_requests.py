"""A pod that requests less, however its requests are made up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api import amounts, quantity
from kubesched.api.core import Pod
from kubesched.api.requests import pod_requests
from kubesched.explain.requests import lacking, with_requests
from kubesched.framework.status import unschedulable
from tests.support.objects import container, pod

GI = 1 << 30


def _cpus(of: Pod) -> list[object]:
    resources = (each.resources for each in of.spec.containers)
    return [each.requests["cpu"] for each in resources if each is not None and each.requests]


def test_containers_share_what_there_is() -> None:
    two = pod(containers=[container("a", cpu="3"), container("b", cpu="1")])

    changed = with_requests(two, {"cpu": 2000})

    assert changed is not None
    assert _cpus(changed) == ["1500m", "500m"]


def test_overhead_is_left_as_it_is() -> None:
    changed = with_requests(pod(cpu="3", overhead={"cpu": "500m"}), {"cpu": 2000})

    assert changed is not None
    assert _cpus(changed) == ["1500m"]
    assert with_requests(pod(cpu="3", overhead={"cpu": "2"}), {"cpu": 2000}) is None


def test_what_the_pod_requests_as_a_whole_is_what_changes() -> None:
    changed = with_requests(pod(cpu="1", pod_level={"cpu": "3"}), {"cpu": 2000})

    assert changed is not None
    assert changed.spec.resources is not None
    assert changed.spec.resources.requests == {"cpu": "2"}
    assert _cpus(changed) == ["1"]


def test_nothing_at_all_is_no_request() -> None:
    assert with_requests(pod(cpu="1"), {"cpu": 0}) is None


@given(
    running=st.lists(st.integers(1, 4000), min_size=1, max_size=3),
    first=st.lists(st.tuples(st.integers(1, 4000), st.booleans()), max_size=3),
    overhead=st.integers(0, 300),
    target=st.integers(1, 6000),
)
@settings(max_examples=100)
def test_never_more_than_the_target(
    running: list[int], first: list[tuple[int, bool]], overhead: int, target: int
) -> None:
    wanted = pod(
        containers=[container(f"c{n}", cpu=f"{each}m") for n, each in enumerate(running)],
        init_containers=[
            container(f"i{n}", cpu=f"{each}m", sidecar=sidecar)
            for n, (each, sidecar) in enumerate(first)
        ],
        overhead={"cpu": f"{overhead}m"},
    )

    changed = with_requests(wanted, {"cpu": target})

    if changed is None:
        assert target <= overhead or any(sidecar for _, sidecar in first)
    else:
        assert pod_requests(changed)["cpu"] <= target


def test_only_resources_are_lacking() -> None:
    assert lacking(unschedulable("Insufficient cpu", "Insufficient memory")) == ("cpu", "memory")
    assert lacking(unschedulable("Too many pods", "Insufficient cpu")) == ()


# --- amounts ----------------------------------------------------------------------------------


@given(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(1, 1 << 50))
def test_a_quantity_is_exact(resource: str, amount: int) -> None:
    text = amounts.quantity(resource, amount)

    read = quantity.milli_value if resource == "cpu" else quantity.value
    assert read(text) == amount


def test_people_see_what_it_comes_to() -> None:
    assert amounts.readable("memory", 6349 << 20) == "6349Mi (6.2Gi)"
    assert amounts.readable("memory", 8 * GI) == "8Gi"
    assert amounts.readable("cpu", 1500) == "1500m"
    assert amounts.rounded_down("memory", 8 * GI - 1) == 8191 << 20
    assert amounts.rounded_down("memory", 1000) == 1000
