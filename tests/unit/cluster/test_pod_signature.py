"""Signatures: what pods have in common, compiled once; and what pods take from their node."""

from __future__ import annotations

import weakref

import msgspec
import pytest

from kubesched.api.core import ContainerStatus, Pod, ResourceRequirements, Taint, Toleration
from kubesched.api.requests import non_zero_requests, scoring_requests
from kubesched.cluster.pod_info import PodCompiler, RequestRules
from kubesched.cluster.pod_signature import host_ports, normalized_image_name, tolerates
from kubesched.cluster.ports import ANY_ADDRESS, HostPort
from kubesched.config.features import FeatureGates
from kubesched.errors import QuantityError
from tests.support.objects import container, host_port, named, on_node, pod, requires, taint

MI = 1 << 20

# --- which pods share a signature -----------------------------------------------------------------


def test_pods_that_differ_in_identity_only_share_a_signature() -> None:
    compiler = PodCompiler()
    one = compiler.pending(pod("a", cpu="1", labels={"app": "x"}, priority=5))
    other = compiler.pending(pod("b", namespace="prod", cpu="1", labels={"app": "y"}))
    assert one.signature is other.signature
    assert one.requests is other.requests


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod(cpu="2"), id="requests"),
        pytest.param(pod(cpu="1", node="n1"), id="the node it names"),
        pytest.param(pod(cpu="1", image="web"), id="image"),
        pytest.param(pod(cpu="1", ports=[80]), id="host port"),
        pytest.param(pod(cpu="1", node_selector={}), id="an empty selector is not none"),
        pytest.param(pod(cpu="1", node_selector={"a": "b"}), id="node selector"),
        pytest.param(pod(cpu="1", node_affinity=requires(named("n"))), id="affinity"),
        pytest.param(pod(cpu="1", tolerations=[Toleration(operator="Exists")]), id="tolerations"),
        pytest.param(pod(cpu="1", overhead={"cpu": "1m"}), id="overhead"),
        pytest.param(pod(cpu="1", pod_level={"cpu": "3"}), id="pod-level requests"),
        pytest.param(pod(cpu="1", init_containers=[container("i")]), id="init container"),
        pytest.param(pod(cpu="1", image_volumes=["data"]), id="image volume"),
        pytest.param(pod(cpu="1", host_network=True), id="host network"),
        pytest.param(pod(cpu="1", host_users=False), id="user namespace"),
    ],
)
def test_pods_that_ask_for_something_else_do_not(other: Pod) -> None:
    compiler = PodCompiler()
    assert compiler.pending(pod(cpu="1")).signature is not compiler.pending(other).signature


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(pod(cpu="1", memory="1Gi"), id="of cpu and memory"),
        pytest.param(pod(cpu="0", memory="0"), id="of nothing, in so many words"),
        pytest.param(pod(), id="of nothing"),
        pytest.param(pod(cpu="1"), id="of cpu"),
        pytest.param(pod(memory="1Gi"), id="of memory"),
        pytest.param(pod(containers=[]), id="no containers"),
        pytest.param(
            pod(containers=[container("a", cpu="1", memory="1"), container("b", cpu="2")]),
            id="one container without memory",
        ),
        pytest.param(
            pod(cpu="1", memory="1", init_containers=[container("i", cpu="3")]),
            id="an init container without memory",
        ),
        pytest.param(
            pod(cpu="1", memory="1", init_containers=[container("i", cpu="3", memory="5")]),
            id="an init container that asks for more",
        ),
        pytest.param(pod(cpu="1", memory="1", overhead={"cpu": "1m"}), id="overhead"),
        pytest.param(pod(cpu="1", memory="1", pod_level={"cpu": "3"}), id="as a whole"),
    ],
)
def test_scores_count_what_a_pod_requests_with_defaults_where_it_requests_nothing(
    asking: Pod,
) -> None:
    signature = PodCompiler().pending(asking).signature
    assert signature.requests.non_zero == non_zero_requests(asking)
    assert signature.scoring_requests == scoring_requests(asking)


def test_the_node_that_a_pod_is_bound_to_is_not_part_of_its_signature() -> None:
    compiler = PodCompiler()
    waiting = compiler.pending(pod("a", cpu="1"))
    bound = compiler.placed(pod("b", cpu="1", node="n7"))
    assert bound.signature is waiting.signature
    assert bound.signature.node_name == ""


def test_the_node_that_a_pending_pod_names_is() -> None:
    assert PodCompiler().pending(pod(node="n7")).signature.node_name == "n7"


def test_signatures_vanish_when_no_pod_has_them() -> None:
    compiler = PodCompiler()
    info = compiler.pending(pod(cpu="1", node_affinity=requires(named("n"))))
    assert info.signature.node_selector is info.signature.node_selector
    signature, requests = weakref.ref(info.signature), weakref.ref(info.requests)
    del info  # at once: in a process that rests the garbage collector does not come for hours
    assert signature() is None
    assert requests() is None


# --- what a pod takes -------------------------------------------------------------------------


def test_a_resize_in_place_gives_other_requests_but_the_same_signature() -> None:
    compiler = PodCompiler()
    usual = compiler.placed(pod("a", cpu="1", memory="64Mi", node="n"))
    grown = compiler.placed(
        pod("b", cpu="1", memory="64Mi", node="n", resized_to={"cpu": "3", "memory": "64Mi"})
    )
    assert grown.signature is usual.signature
    assert usual.requests.amounts == {"cpu": 1000, "memory": 64 * MI}
    assert grown.requests.amounts == {"cpu": 3000, "memory": 64 * MI}
    assert grown.requests.non_zero == (3000, 64 * MI)
    assert grown.signature.requests is usual.requests


def test_what_the_kubelet_reports_does_not_matter_for_a_pod_that_waits() -> None:
    info = PodCompiler().pending(pod(cpu="1", resized_to={"cpu": "3"}))
    assert info.requests.amounts == {"cpu": 1000}


def test_equal_requests_are_shared_also_among_resized_pods() -> None:
    compiler = PodCompiler()
    small = compiler.placed(pod("a", cpu="1", node="n", resized_to={"cpu": "2"}))
    large = compiler.placed(pod("b", cpu="2", node="n"))
    assert small.requests is large.requests


def test_pods_that_request_nothing_count_a_little_in_scores() -> None:
    info = PodCompiler().pending(pod(containers=[container("a"), container("b", cpu="1")]))
    assert info.requests.amounts == {"cpu": 1000}
    assert info.requests.non_zero == (1100, 2 * 200 * MI)
    assert info.signature.scoring_requests == {"cpu": 1100, "memory": 2 * 200 * MI}


def test_feature_gates_decide_what_counts() -> None:
    gates = FeatureGates.of({"InPlacePodLevelResourcesVerticalScaling": False})
    assert RequestRules.of(gates) == RequestRules(pod_level=True, pod_level_status=False)
    assert RequestRules.of(FeatureGates.of()) == RequestRules()
    asking = pod(cpu="1", pod_level={"cpu": "5"})
    assert PodCompiler().pending(asking).requests.amounts == {"cpu": 5000}
    off = PodCompiler(RequestRules(pod_level=False))
    assert off.pending(asking).requests.amounts == {"cpu": 1000}


def test_pod_level_status_counts_while_its_gate_is_on() -> None:
    actual = ResourceRequirements(requests={"cpu": "7"})
    resized = pod(node="n", cpu="1", pod_level={"cpu": "5"})
    resized = msgspec.structs.replace(
        resized, status=msgspec.structs.replace(resized.status, resources=actual)
    )
    assert PodCompiler().placed(resized).requests.amounts == {"cpu": 7000}
    off = PodCompiler(RequestRules(pod_level_status=False))
    assert off.placed(resized).requests.amounts == {"cpu": 5000}


def test_a_status_without_resources_changes_nothing() -> None:
    silent = pod(node="n", cpu="1")
    status = msgspec.structs.replace(silent.status, container_statuses=(ContainerStatus(name="x"),))
    compiler = PodCompiler()
    info = compiler.placed(msgspec.structs.replace(silent, status=status))
    assert info.requests is compiler.placed(silent).requests


def test_a_pod_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(QuantityError, match="pod default/bad: requests: cpu"):
        PodCompiler().pending(pod("bad", cpu="lots"))


def test_what_is_said_of_a_pod() -> None:
    info = PodCompiler().pending(pod("web", namespace="shop", uid="u-1", priority=7))
    assert (info.uid, info.full_name, info.priority) == ("u-1", "shop/web", 7)
    assert repr(info) == "PodInfo(shop/web)"
    assert PodCompiler().pending(pod()).priority == 0


# --- ports, images ----------------------------------------------------------------------------


def test_host_ports_are_those_of_containers_that_run_side_by_side() -> None:
    spec = pod(
        containers=[
            container("a", ports=[80, host_port(53, protocol="UDP", address="10.0.0.1")]),
            container("b", ports=[host_port(0)]),
        ],
        init_containers=[
            container("setup", ports=[81]),
            container("side", ports=[82], sidecar=True),
        ],
    ).spec
    assert host_ports(spec) == (
        HostPort("TCP", 80, ANY_ADDRESS),
        HostPort("UDP", 53, "10.0.0.1"),
        HostPort("TCP", 82, ANY_ADDRESS),
    )


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("registry:5000/web", "registry:5000/web:latest"),
        ("registry:5000/web:1", "registry:5000/web:1"),
        ("web@sha256:abc", "web@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_means_the_latest(image: str, want: str) -> None:
    assert normalized_image_name(image) == want


def test_images_of_init_containers_containers_and_volumes_in_this_order() -> None:
    info = PodCompiler().pending(
        pod(
            containers=[container("a", image="web"), container("b", image="web")],
            init_containers=[container("i", image="setup:2")],
            image_volumes=["models"],
        )
    )
    assert info.signature.images == ("setup:2", "web:latest", "web:latest", "models:latest")


# --- tolerations ------------------------------------------------------------------------------

_TAINT = taint("gpu=yes:NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(Toleration(key="gpu", value="yes", effect="NoSchedule"), True, id="equal"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="yes"), True, id="any effect"),
        pytest.param(Toleration(key="gpu", value="no"), False, id="other value"),
        pytest.param(Toleration(key="gpu"), False, id="no value is not any value"),
        pytest.param(Toleration(key="tpu", value="yes"), False, id="other key"),
        pytest.param(
            Toleration(key="gpu", value="yes", effect="NoExecute"), False, id="other effect"
        ),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="exists"),
        pytest.param(Toleration(operator="Exists"), True, id="exists, any key"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, id="wrong effect"),
        pytest.param(Toleration(key="gpu", operator="Gt", value="1"), False, id="gate is off"),
        pytest.param(Toleration(key="gpu", operator="Near", value="yes"), False, id="no such"),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, want: bool) -> None:
    assert tolerates(toleration, _TAINT) is want
    assert PodCompiler().pending(pod(tolerations=[toleration])).signature.tolerates(_TAINT) is want


@pytest.mark.parametrize(
    ("operator", "tolerated", "tainted", "want"),
    [
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Lt", "10", "9", True),
        ("Lt", "10", "10", False),
        ("Gt", "-5", "-4", True),
        pytest.param("Gt", "0", "0x10", False, id="no hexadecimal"),
        pytest.param("Lt", "007", "1", False, id="no leading zeros"),
        pytest.param("Gt", "+1", "5", False, id="no plus sign"),
        pytest.param("Gt", "1", "9223372036854775808", False, id="more than an int64"),
        pytest.param("Lt", "5", "", False, id="no number"),
    ],
)
def test_numbers_compare_where_the_gate_is_on(
    operator: str, tolerated: str, tainted: str, want: bool
) -> None:
    toleration = Toleration(key="load", operator=operator, value=tolerated)
    each = Taint(key="load", value=tainted, effect="NoSchedule")
    assert tolerates(toleration, each, comparisons=True) is want
    assert not tolerates(toleration, each)


def test_binding_a_pod_changes_nothing_but_its_node() -> None:
    waiting = pod("a", cpu="1")
    bound = on_node(waiting, "n1")
    assert bound.spec.node_name == "n1"
    assert on_node(bound, "") == waiting
