"""What pods ask for: which pods count, how requests and limits add up, units, zeros."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from kubesched.api.core import (
    Container,
    Pod,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from kubesched.api.meta import ObjectMeta
from kubesched.metrics.pod_resources import render_pod_resources, unit_of
from tests.support.exposed_metrics import Exposed

Amounts = dict[str, float]

REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"


def needs(requests: ResourceList | None = None, limits: ResourceList | None = None) -> Container:
    return Container(name="c", resources=ResourceRequirements(requests=requests, limits=limits))


def sidecar(limits: ResourceList) -> Container:
    return replace(needs(limits=limits), restart_policy="Always")


def pod(*containers: Container, init: tuple[Container, ...] = (), **spec: object) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p1", namespace="default"),
        spec=replace(PodSpec(containers=containers, init_containers=init), **spec),
    )


def render(*pods: Pod) -> Exposed:
    return Exposed(b"".join(render_pod_resources(pods)))


def amounts(family: str, of: Pod) -> Amounts:
    """What the only pod asks for, by resource."""
    text = render(of)
    if family not in text.types:
        return {}
    found = {}
    for labels in text.samples(family):
        value = text.value(family, **labels)
        assert value is not None
        found[labels["resource"]] = value
    return found


def test_labels() -> None:
    container = needs({"cpu": "1500m"}, {"memory": "1Gi"})
    text = render(pod(container, node_name="n1", scheduler_name="mine", priority=-5))
    common = {"namespace": "default", "pod": "p1", "node": "n1", "scheduler": "mine"}
    cpu = {**common, "priority": "-5", "resource": "cpu", "unit": "cores"}
    memory = {**common, "priority": "-5", "resource": "memory", "unit": "bytes"}
    assert text.types == {LIMIT: "gauge", REQUEST: "gauge"}
    assert text.samples(REQUEST) == [cpu]
    assert text.samples(LIMIT) == [memory]
    assert text.value(REQUEST, **cpu) == 1.5
    assert text.value(LIMIT, **memory) == 2**30


def test_pod_without_priority_and_node_has_empty_labels() -> None:
    (labels,) = render(pod(needs({"cpu": "1"}))).samples(REQUEST)
    assert (labels["priority"], labels["node"], labels["scheduler"]) == ("", "", "")


def test_label_values_are_escaped() -> None:
    (labels,) = render(pod(needs({"cpu": "1"}), scheduler_name='a"b\\')).samples(REQUEST)
    assert labels["scheduler"] == 'a"b\\'


@pytest.mark.parametrize(
    ("resource", "want"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("storage", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-aws-ebs", "integer"),
        ("nvidia.com/gpu", ""),
    ],
)
def test_units(resource: str, want: str) -> None:
    assert unit_of(resource) == want


def test_zeros_are_left_out() -> None:
    container = needs({"cpu": "0", "memory": "1"}, {"cpu": "0"})
    assert amounts(REQUEST, pod(container)) == {"memory": 1}
    assert amounts(LIMIT, pod(container)) == {}


@pytest.mark.parametrize(
    ("node", "phase", "counts"),
    [
        ("", "Pending", True),
        ("n1", "Pending", True),
        ("n1", "Running", True),
        ("n1", "Succeeded", False),
        ("n1", "Failed", False),
        # Nobody but a node can end a pod, so this one has not ended.
        ("", "Failed", True),
    ],
)
def test_pods_that_ended_on_their_node_do_not_count(node: str, phase: str, counts: bool) -> None:
    ended = replace(pod(needs({"cpu": "1"}), node_name=node), status=PodStatus(phase=phase))
    assert amounts(REQUEST, ended) == ({"cpu": 1} if counts else {})


def test_nothing_to_say_is_no_text() -> None:
    assert b"".join(render_pod_resources([])) == b""
    assert b"".join(render_pod_resources([pod(Container(name="c"))])) == b""


def test_containers_add_up_and_init_containers_are_the_least() -> None:
    limits = pod(
        needs({"cpu": "1"}, {"cpu": "2"}),
        needs({"cpu": "500m"}, {"cpu": "1"}),
        init=(needs({"cpu": "4"}, {"cpu": "2500m", "memory": "1Ki"}),),
    )
    assert amounts(REQUEST, limits) == {"cpu": 4}
    assert amounts(LIMIT, limits) == {"cpu": 3, "memory": 1024}


def test_sidecars_run_beside_everything_that_starts_after_them() -> None:
    limited = pod(
        needs(limits={"cpu": "1"}),
        init=(
            needs(limits={"cpu": "3"}),
            sidecar({"cpu": "2"}),
            needs(limits={"cpu": "1500m"}),
        ),
    )
    assert amounts(LIMIT, limited) == {"cpu": 3.5}


def test_overhead_comes_on_top_of_what_is_limited_only() -> None:
    container = needs({"cpu": "1"}, {"memory": "100"})
    heavy = pod(container, overhead={"cpu": "250m", "memory": "28"})
    assert amounts(REQUEST, heavy) == {"cpu": 1.25, "memory": 28}
    assert amounts(LIMIT, heavy) == {"memory": 128}


def test_limits_of_the_pod_replace_those_of_containers() -> None:
    whole = ResourceRequirements(requests={"cpu": "2"}, limits={"cpu": "5", "storage": "9"})
    container = needs({"cpu": "1"}, {"cpu": "1", "memory": "1Ki"})
    assert amounts(REQUEST, pod(container, resources=whole)) == {"cpu": 2}
    assert amounts(LIMIT, pod(container, resources=whole)) == {"cpu": 5, "memory": 1024}


def test_amounts_are_exact() -> None:
    tiny = pod(needs({"cpu": "1n", "memory": "9007199254740993"}))
    assert f"{1e-09}\n" in render(tiny).text
    assert "9007199254740993\n" in render(tiny).text


def test_pod_that_nobody_can_count_is_left_out() -> None:
    assert amounts(REQUEST, pod(needs({"cpu": "much"}))) == {}


def test_many_pods_come_in_pieces_and_each_family_in_one_go() -> None:
    many = [
        replace(pod(needs({"cpu": "1"}, {"cpu": "2"})), metadata=ObjectMeta(name=f"p{number}"))
        for number in range(450)
    ]
    pieces = list(render_pod_resources(iter(many)))
    assert len(pieces) > 4
    text = Exposed(b"".join(pieces))
    assert len(text.samples(REQUEST)) == len(text.samples(LIMIT)) == 450
    families = [line.split("{")[0] for line in text.text.splitlines() if line[0] != "#"]
    assert families == [LIMIT] * 450 + [REQUEST] * 450


@pytest.mark.parametrize("limits", [None, {"cpu": "1"}])
def test_no_piece_takes_long(limits: ResourceList | None) -> None:
    """The event loop has other things to do between two pieces, whatever is in them."""
    read = 0

    def pods() -> Iterator[Pod]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield pod(needs({"cpu": "1"}, limits))

    before, pieces = 0, 0
    for _ in render_pod_resources(pods()):
        assert read - before <= 100
        before, pieces = read, pieces + 1
    assert read == 1000
    assert pieces >= 10
