"""What pods request: containers, init containers, sidecars, pod-level resources, resizes.

The sums were checked against PodRequests of k8s.io/component-helpers v0.37.1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api import requests
from kubesched.api.core import Container, Node, Pod, ResourceRequirements
from kubesched.errors import QuantityError

MI = 2**20


def _pod(*, status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
        "status": status or {},
    }
    return msgspec.convert(document, Pod)


def _container(
    name: str = "c", *, sidecar: bool = False, other: dict[str, str] | None = None, **amounts: Any
) -> dict[str, Any]:
    requested = {**amounts, **(other or {})}
    container: dict[str, Any] = {"name": name, "resources": {"requests": requested}}
    return {**container, "restartPolicy": "Always"} if sidecar else container


def _reported(
    name: str, *, allocated: dict[str, str] | None = None, **actual: str
) -> dict[str, Any]:
    status: dict[str, Any] = {"name": name, "resources": {"requests": actual}}
    return {**status, "allocatedResources": allocated} if allocated else status


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, {}, id="no containers"),
        pytest.param({"containers": [{"name": "c"}]}, {}, id="no requests"),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
            {},
            id="limits are not requests",
        ),
        pytest.param(
            {"containers": [_container(cpu="100m", memory="64Mi"), _container(cpu="1")]},
            {"cpu": 1100, "memory": 64 * MI},
            id="containers run together",
        ),
        pytest.param(
            {"containers": [_container(cpu="0.5m"), _container(cpu="0.5m")]},
            {"cpu": 1},
            id="rounded up once, not for each container",
        ),
        pytest.param({"containers": [_container(cpu=2)]}, {"cpu": 2000}, id="a JSON number"),
        pytest.param({"containers": [_container(cpu="0")]}, {"cpu": 0}, id="a request of zero"),
        pytest.param(
            {
                "containers": [_container(cpu="1", memory="1Mi")],
                "initContainers": [
                    _container("i", cpu="3"),
                    _container("j", cpu="2", memory="2Mi"),
                ],
            },
            {"cpu": 3000, "memory": 2 * MI},
            id="init containers run one after the other, before",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="1")],
                "initContainers": [_container("s", sidecar=True, cpu="1")],
            },
            {"cpu": 2000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="1")],
                "initContainers": [
                    _container("i", cpu="4"),
                    _container("s", sidecar=True, cpu="2"),
                    _container("j", cpu="3"),
                ],
            },
            {"cpu": 5000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="1")],
                "initContainers": [
                    _container("j", cpu="3"),
                    _container("s", sidecar=True, cpu="1"),
                ],
            },
            {"cpu": 3000},
            id="but not beside those after it",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="1")],
                "initContainers": [_container("i", cpu="2")],
                "overhead": {"cpu": "250m", "memory": "8Mi"},
            },
            {"cpu": 2250, "memory": 8 * MI},
            id="overhead comes on top",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="1", memory="1Mi", other={"example.com/gpu": "2"})],
                "resources": {"requests": {"cpu": "4", "hugepages-2Mi": "4Mi"}},
                "overhead": {"cpu": "1"},
            },
            {"cpu": 5000, "memory": MI, "hugepages-2Mi": 4 * MI, "example.com/gpu": 2},
            id="the pod as a whole",
        ),
        pytest.param(
            {
                "containers": [
                    _container(other={"ephemeral-storage": "1k", "example.com/gpu": "1"})
                ],
                "resources": {"requests": {"ephemeral-storage": "5k", "example.com/gpu": "7"}},
            },
            {"ephemeral-storage": 1000, "example.com/gpu": 1},
            id="which may request only cpu, memory and huge pages",
        ),
        pytest.param(
            {"containers": [_container(storage="1Gi", pods="1", other={"requests.x/y": "1"})]},
            {},
            id="resources that the scheduler does not count",
        ),
    ],
)
def test_what_a_pod_requests(spec: dict[str, Any], want: dict[str, int]) -> None:
    assert requests.pod_requests(_pod(**spec)) == want


def test_pod_level_requests_count_only_with_their_gate() -> None:
    pod = _pod(containers=[_container(cpu="1")], resources={"requests": {"cpu": "4"}})

    assert requests.pod_requests(pod, pod_level=True) == {"cpu": 4000}
    assert requests.pod_requests(pod, pod_level=False) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({}, 1000, id="nothing reported"),
        pytest.param({"containerStatuses": [_reported("c", cpu="3")]}, 3000, id="scaled down"),
        pytest.param({"containerStatuses": [_reported("c", cpu="500m")]}, 1000, id="scaled up"),
        pytest.param(
            {"containerStatuses": [_reported("c", cpu="2", allocated={"cpu": "4"})]},
            4000,
            id="allocated more",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}]},
            4000,
            id="what is allocated counts without actual resources",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "500m"}}]},
            1000,
            id="allocated less",
        ),
        pytest.param({"containerStatuses": [_reported("d", cpu="3")]}, 1000, id="of another"),
        pytest.param(
            {"containerStatuses": [_reported("c", cpu="500m")], "conditions": INFEASIBLE},
            500,
            id="an infeasible resize does not count",
        ),
        pytest.param(
            {
                "containerStatuses": [_reported("c", cpu="500m", allocated={"cpu": "600m"})],
                "conditions": INFEASIBLE,
            },
            600,
            id="but what is allocated does",
        ),
        pytest.param(
            {"containerStatuses": [_reported("c", cpu="500m")], "conditions": DEFERRED},
            1000,
            id="a deferred resize counts",
        ),
    ],
)
def test_a_pod_on_a_node_takes_what_its_status_says(status: dict[str, Any], want: int) -> None:
    pod = _pod(containers=[_container("c", cpu="1")], status=status)

    assert requests.pod_requests(pod, use_status=True) == {"cpu": want}
    assert requests.pod_requests(pod, use_status=False) == {"cpu": 1000}


def test_the_largest_of_three_sums_counts_and_not_the_sum_of_the_largest() -> None:
    pod = _pod(
        containers=[_container("a", cpu="1"), _container("b", cpu="1")],
        status={
            "containerStatuses": [
                _reported("a", cpu="3", allocated={"cpu": "500m"}),
                _reported("b", cpu="500m", allocated={"cpu": "2"}),
            ]
        },
    )

    # 2 wanted, 2.5 allocated, 3.5 actuated; container by container it would be 5.
    assert requests.pod_requests(pod, use_status=True) == {"cpu": 3500}


def test_a_container_without_status_counts_unless_the_resize_is_infeasible() -> None:
    def taken(**status: Any) -> int:
        containers = [_container("a", cpu="1"), _container("b", cpu="4")]
        said = {"containerStatuses": [_reported("a", cpu="2")], **status}
        pod = _pod(containers=containers, status=said)
        return requests.pod_requests(pod, use_status=True)["cpu"]

    assert taken() == 6000
    assert taken(conditions=DEFERRED) == 6000
    assert taken(conditions=INFEASIBLE) == 2000


def test_the_status_of_init_containers_counts() -> None:
    pod = _pod(
        containers=[_container("c", cpu="1")],
        initContainers=[_container("s", sidecar=True, cpu="1"), _container("i", cpu="1")],
        status={"initContainerStatuses": [_reported("s", cpu="2"), _reported("i", cpu="9")]},
    )

    # 2 beside 9 to start with, then 2 beside 1
    assert requests.pod_requests(pod, use_status=True) == {"cpu": 11000}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ({"resources": {"requests": {"cpu": "6"}}}, {"cpu": 6000}),
        (
            {"resources": {"requests": {"cpu": "2", "memory": "1Mi", "x/y": "1"}}},
            {"cpu": 4000, "memory": MI},
        ),
        ({"resources": {}, "allocatedResources": {"cpu": "5"}}, {"cpu": 5000}),
        ({"allocatedResources": {"cpu": "5"}}, {"cpu": 4000}),
        ({"resources": {"requests": {"cpu": "2"}}, "conditions": INFEASIBLE}, {"cpu": 2000}),
        ({"resources": {}, "conditions": INFEASIBLE}, {}),
    ],
)
def test_the_status_of_the_pod_as_a_whole(status: dict[str, Any], want: dict[str, int]) -> None:
    pod = _pod(
        containers=[_container(cpu="1")], resources={"requests": {"cpu": "4"}}, status=status
    )

    assert requests.pod_requests(pod, use_status=True) == want
    assert requests.pod_requests(pod, use_status=True, pod_level_status=False) == {"cpu": 4000}
    assert requests.pod_requests(pod, use_status=False) == {"cpu": 4000}


def test_what_is_said_of_the_pod_as_a_whole_stands_for_what_its_containers_have() -> None:
    pod = _pod(
        containers=[_container("c", cpu="1", memory="1Mi")],
        status={
            "containerStatuses": [_reported("c", cpu="9", allocated={"cpu": "9"})],
            "allocatedResources": {"cpu": "2"},
            "resources": {"requests": {"cpu": "3"}},
        },
    )

    assert requests.pod_requests(pod, use_status=True) == {"cpu": 3000, "memory": MI}
    assert requests.pod_requests(pod, use_status=True, pod_level_status=False) == {
        "cpu": 9000,
        "memory": MI,
    }


_AMOUNTS = st.none() | st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 5), "memory": st.integers(0, 5)}
)


@st.composite
def _resized_pods(draw: st.DrawFn) -> Pod:
    """A pod with a few containers, of which the kubelet reports whatever there may be."""

    def containers(prefix: str) -> list[dict[str, Any]]:
        return [
            {
                "name": f"{prefix}{index}",
                "resources": {"requests": draw(_AMOUNTS)},
                "restartPolicy": draw(st.sampled_from([None, "Always"])) if prefix == "i" else None,
            }
            for index in range(draw(st.integers(0, 3)))
        ]

    def statuses(of: list[dict[str, Any]]) -> list[dict[str, Any]]:
        said = [
            {
                "name": each["name"],
                "allocatedResources": draw(st.sampled_from([None, each["resources"]["requests"]])),
                "resources": draw(
                    st.none() | st.just(each["resources"]) | _AMOUNTS.map(lambda a: {"requests": a})
                ),
            }
            for each in of
        ]
        return said if draw(st.booleans()) else said[:1]

    main, init = containers("c"), containers("i")
    status: dict[str, Any] = {
        "containerStatuses": statuses(main),
        "initContainerStatuses": statuses(init),
    }
    if draw(st.booleans()):
        status["conditions"] = draw(st.sampled_from([DEFERRED, INFEASIBLE]))
    return _pod(containers=main, initContainers=init, status=status)


@given(_resized_pods())
def test_a_pod_that_is_not_resized_counts_with_its_spec(pod: Pod) -> None:
    if requests.is_resized(pod):
        return
    assert requests.pod_requests(pod, use_status=True) == requests.pod_requests(pod)
    assert requests.non_zero_requests(pod, use_status=True) == requests.non_zero_requests(pod)


@given(_resized_pods())
def test_a_resize_never_counts_for_more_than_its_containers_at_their_largest(pod: Pod) -> None:
    said = {
        each.name: each
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
    }

    def largest(container: Container) -> Container:
        status = said.get(container.name)
        wanted = dict((container.resources and container.resources.requests) or {})
        lists = [] if status is None else [status.allocated_resources]
        lists += [] if status is None or status.resources is None else [status.resources.requests]
        for name in {name for each in lists for name in each or ()}:
            wanted[name] = max(int((each or {}).get(name, 0)) for each in (*lists, wanted))
        return replace(container, resources=ResourceRequirements(requests=wanted))

    spec = replace(
        pod.spec,
        containers=tuple(map(largest, pod.spec.containers)),
        init_containers=tuple(map(largest, pod.spec.init_containers)),
    )
    most = requests.pod_requests(replace(pod, spec=spec))
    taken = requests.pod_requests(pod, use_status=True)
    assert all(amount <= most[name] for name, amount in taken.items())
    if not any(each.reason == "Infeasible" for each in pod.status.conditions):
        assert all(taken[name] >= amount for name, amount in requests.pod_requests(pod).items()), (
            "what is wanted counts in any case"
        )


@pytest.mark.parametrize(
    ("spec", "want", "want_pod_side"),
    [
        pytest.param(
            {"containers": [{"name": "c"}, {"name": "d"}]},
            (200, 400 * MI),
            (200, 400 * MI),
            id="defaults for each container",
        ),
        pytest.param(
            {"containers": [_container(cpu="1"), _container(memory="1Mi")]},
            (1100, 201 * MI),
            (1100, 201 * MI),
            id="for what is missing",
        ),
        pytest.param(
            {"containers": [_container(cpu="0", memory="0")]},
            (0, 0),
            (0, 0),
            id="zero is not missing",
        ),
        pytest.param(
            {
                "containers": [_container(cpu="10m", memory="1Mi")],
                "initContainers": [
                    _container("i"),
                    _container("s", sidecar=True),
                    _container("j"),
                ],
            },
            (200, 400 * MI),
            (200, 400 * MI),
            id="init containers and sidecars have defaults too",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "overhead": {"cpu": "10m", "memory": "1Mi"}},
            (110, 201 * MI),
            (110, 201 * MI),
            id="overhead comes on top",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "2"}}},
            (2000, 200 * MI),
            (100, 200 * MI),
            id="the pod as a whole, which the pod's own score does not see",
        ),
        pytest.param(
            {
                "containers": [{"name": "c"}, _container("d", memory="1Mi")],
                "resources": {"requests": {"cpu": "2"}},
            },
            (2000, MI),
            (200, 201 * MI),
            id="then a default only for what nobody requests",
        ),
        pytest.param(
            {
                "containers": [{"name": "c"}],
                "resources": {"requests": {"cpu": "2"}},
                "overhead": {"memory": "1Mi"},
            },
            (2000, MI),
            (100, 201 * MI),
            id="and overhead is a request in this",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "2"}}},
            (100, 200 * MI),
            (100, 200 * MI),
            id="limits of the pod as a whole do not count",
        ),
    ],
)
def test_what_a_pod_counts_for_in_scores(
    spec: dict[str, Any], want: tuple[int, int], want_pod_side: tuple[int, int]
) -> None:
    pod = _pod(**spec)
    own = requests.scoring_requests(pod)

    assert requests.non_zero_requests(pod) == want
    assert (own["cpu"], own["memory"]) == want_pod_side


def test_scores_see_pod_level_requests_only_with_their_gate() -> None:
    pod = _pod(containers=[{"name": "c"}], resources={"requests": {"cpu": "2"}})

    assert requests.non_zero_requests(pod, pod_level=False) == (100, 200 * MI)


def test_scores_of_a_bound_pod_follow_its_status() -> None:
    pod = _pod(
        containers=[_container("c", cpu="1", memory="1Mi")],
        status={"containerStatuses": [_reported("c", cpu="3")]},
    )

    # What is in effect says nothing of memory, and then the default counts.
    assert requests.non_zero_requests(pod, use_status=True) == (3000, 200 * MI)
    assert requests.non_zero_requests(pod, use_status=False) == (1000, MI)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("pods", False, False),
        ("storage", False, False),
        ("example.com/gpu", True, True),
        ("requests.example.com/gpu", False, False),
        ("kubernetes.io/gpu", False, True),
        ("sub.kubernetes.io/gpu", False, True),
        ("hugepages-1Gi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("Example.com/gpu", False, False),
        ("example.com/", False, False),
        ("a/b/c", False, False),
        ("example.com/" + "x" * 64, False, False),
        ("x" * 244 + "/gpu", True, True),
        ("x" * 245 + "/gpu", False, False),
    ],
)
def test_names_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert requests.is_extended_resource(name) is extended
    assert requests.is_scalar_resource(name) is scalar


def _node(**allocatable: Any) -> Node:
    document = {"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}
    return msgspec.convert(document, Node)


def test_what_a_node_offers() -> None:
    node = _node(cpu="3920m", memory="16Gi", pods="110", storage="1Ti", **{"example.com/gpu": "4"})

    assert requests.node_allocatable(node) == {
        "cpu": 3920,
        "memory": 2**34,
        "pods": 110,
        "example.com/gpu": 4,
    }
    assert requests.node_allocatable(Node()) == {}


def test_a_node_that_offers_more_than_can_be_counted_offers_nothing_of_it() -> None:
    assert requests.node_allocatable(_node(cpu="1E", memory="1Gi")) == {"cpu": 0, "memory": 2**30}


def test_a_malformed_node_is_refused_by_name() -> None:
    with pytest.raises(QuantityError, match=r"^node n1: allocatable: cpu: 'lots' is not"):
        requests.node_allocatable(_node(cpu="lots"))


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"containers": [_container(cpu="lots")]}, "cpu: 'lots' is not a quantity"),
        ({"overhead": {"memory": "1GB"}}, "memory: '1GB' is not a quantity"),
        ({"resources": {"requests": {"cpu": "1e"}}}, "cpu: '1e' is not a quantity"),
        (
            {"containers": [_container(memory="9E"), _container(memory="9E")]},
            "memory: quantity '18000000000000000000000000000n' is out of range",
        ),
        ({"containers": [_container(cpu="1E")]}, "cpu: quantity '1000000000000000000000000000n'"),
        ({"containers": [_container(cpu="1e999999999")]}, "cpu: quantity '1e999999999'"),
    ],
)
def test_a_request_that_cannot_be_used_names_the_pod(spec: dict[str, Any], want: str) -> None:
    pod = _pod(**spec)

    for function in (requests.pod_requests, requests.non_zero_requests):
        with pytest.raises(QuantityError) as caught:
            function(pod)
        assert str(caught.value).startswith(f"pod shop/web: requests: {want}")
        assert "\n" not in str(caught.value)


amounts = st.decimals(min_value=0, max_value=1000, places=9).map(lambda amount: f"{amount:f}")
containers = st.lists(st.tuples(amounts, st.booleans()), max_size=5)


@given(st.lists(amounts, max_size=4), containers, amounts)
def test_the_sum_is_exact_whatever_the_digits(
    main: list[str], init: list[tuple[str, bool]], overhead: str
) -> None:
    pod = _pod(
        containers=[_container(cpu=amount) for amount in main],
        initContainers=[_container(f"i{i}", sidecar=s, cpu=a) for i, (a, s) in enumerate(init)],
        overhead={"cpu": overhead},
    )
    running = sum(map(Fraction, main), start=Fraction(0))
    running += sum((Fraction(amount) for amount, sidecar in init if sidecar), start=Fraction(0))
    starting = [
        Fraction(amount) + sum((Fraction(a) for a, s in init[:i] if s), start=Fraction(0))
        for i, (amount, _) in enumerate(init)
    ]
    want = max([running, *starting]) + Fraction(overhead)

    assert requests.pod_requests(pod) == {"cpu": math.ceil(want * 1000)}


def test_a_pod_is_left_as_it_was() -> None:
    pod = _pod(
        containers=[_container("c", cpu="1")],
        initContainers=[_container("s", sidecar=True, cpu="1")],
        resources={"requests": {"cpu": "100Ti"}},
        overhead={"cpu": "1"},
        status={"containerStatuses": [_reported("c", cpu="2")], "resources": {"requests": {}}},
    )
    before = msgspec.json.encode(pod)
    first = requests.exact_requests(pod, use_status=True)

    assert requests.exact_requests(pod, use_status=True) == first
    assert msgspec.json.encode(pod) == before
