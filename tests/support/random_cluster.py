"""Clusters and event sequences for property tests: small, odd, and full of what plugins look at."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from kubesched.api import names
from kubesched.api.core import Container, ContainerRestartRule, Node, Pod, Toleration
from kubesched.cluster.cluster import Cluster
from kubesched.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_ON_HOST_NETWORK,
)
from tests.support.objects import (
    MI,
    container,
    host_port,
    must,
    named,
    node,
    on_node,
    pod,
    pod_term,
    prefers,
    requirement,
    requires,
    should,
    spread_over,
    term,
)

GPU = "example.com/gpu"
WEB = {"app": "web"}
NODE_NAMES = tuple(f"n{number:02}" for number in range(14))
UIDS = tuple(f"p{number}" for number in range(10))

#: The size of an image is a function of its name here: which node had it first does not matter.
IMAGES = {"web:latest": 300 * MI, "db:1": 900 * MI, "tiny:1": MI}

NODES = st.builds(
    node,
    st.sampled_from(NODE_NAMES),
    cpu=st.sampled_from(["500m", "2", "4", "63"]),
    memory=st.sampled_from(["256Mi", "4Gi", "100Gi"]),
    pods=st.sampled_from([1, 2, 110]),
    resources=st.sampled_from(
        [None, None, {GPU: "4"}, {"ephemeral-storage": "10Gi"}, {"hugepages-2Mi": "1Gi"}]
    ),
    zone=st.sampled_from([None, "a", "b"]),
    labels=st.sampled_from(
        [
            None,
            {"disk": "ssd", "gen": "3"},
            {"disk": "hdd", names.LABEL_HOSTNAME: "h1"},
            {"gen": "7", names.LABEL_HOSTNAME: "h2"},
        ]
    ),
    taints=st.sampled_from(
        [
            (),
            (),
            ("team=red:NoSchedule",),
            ("team=blue:NoExecute", "old:PreferNoSchedule"),
            ("old:PreferNoSchedule", "slow:PreferNoSchedule"),
        ]
    ),
    unschedulable=st.sampled_from([False, False, True]),
    images=st.lists(st.sampled_from(sorted(IMAGES)), unique=True).map(
        lambda held: {image: IMAGES[image] for image in held}
    ),
    features=st.sampled_from(
        [(), (RESTART_ALL_CONTAINERS,), (RESTART_ALL_CONTAINERS, USER_NAMESPACES_ON_HOST_NETWORK)]
    ),
)

#: One pod for each thing that a row-local plugin may look at, and some for several.
ASKING = (
    pod("plain"),
    pod("small", cpu="100m", memory="64Mi"),
    pod("large", cpu="3", memory="6Gi"),
    pod("storage", requests={"ephemeral-storage": "6Gi"}),
    pod("gpu", cpu="1", requests={GPU: "2"}),
    pod("nobody-has-it", requests={"example.com/nothing": "1"}),
    pod("whole", cpu="100m", pod_level={"cpu": "2", "memory": "1Gi"}),
    pod("ports", ports=[80, host_port(53, protocol="UDP", address="10.0.0.1")]),
    pod("port-on-one-address", ports=[host_port(80, address="10.0.0.2")]),
    pod("selector", node_selector={"disk": "ssd"}),
    pod("affinity", node_affinity=requires(term(requirement("gen", "Gt", "5")), named("n03"))),
    pod("named", node_affinity=requires(named("n01"), named("n05"))),
    pod("not-named", node_affinity=requires(named("n02", operator="NotIn"))),
    pod(
        "prefers",
        cpu="50m",
        node_affinity=prefers(
            (30, term(requirement("disk", "In", "ssd"))), (12, term(requirement("gen", "Exists")))
        ),
    ),
    pod("names-its-node", node="n04"),
    pod("tolerates", tolerations=[Toleration(operator="Exists")]),
    pod("tolerates-red", tolerations=[Toleration(key="team", value="red")]),
    pod("tolerates-old", tolerations=[Toleration(key="old", operator="Exists")]),
    pod("images", containers=[container("a", image="web"), container("b", image="db:1")]),
    pod("image-twice", containers=[container("a", image="web"), container("b", image="web")]),
    pod(
        "feature",
        containers=[
            Container(
                name="main",
                restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),),
            )
        ],
    ),
    pod("feature-2", host_network=True, host_users=False),
)

#: Pods that look at other pods, which no row tells alone.
SOCIABLE = (
    pod("near", labels=WEB, near=must(pod_term(names.LABEL_ZONE, app="web"))),
    pod("near-db", near=must(pod_term(names.LABEL_HOSTNAME, app="db"))),
    pod("away", labels=WEB, away_from=must(pod_term(names.LABEL_ZONE, app="web"))),
    pod(
        "likes",
        near=should((10, pod_term(names.LABEL_ZONE, app="db"))),
        away_from=should((3, pod_term(names.LABEL_ZONE, app="web"))),
    ),
    pod("spread", labels=WEB, spread=[spread_over(names.LABEL_ZONE, app="web")]),
    pod("spread-softly", labels=WEB, spread=[spread_over(names.LABEL_ZONE, soft=True, app="web")]),
    pod("web", labels=WEB),
)

PLACED = st.builds(
    pod,
    st.sampled_from(UIDS),
    cpu=st.sampled_from([None, "100m", "1", "2"]),
    memory=st.sampled_from([None, "64Mi", "3Gi"]),
    requests=st.sampled_from([None, {GPU: "1"}, {"ephemeral-storage": "5Gi"}]),
    ports=st.sampled_from([(), (80,), (host_port(53, protocol="UDP"),)]),
    resized_to=st.sampled_from([None, None, {"cpu": "3", "memory": "1Gi"}]),
    node=st.sampled_from(NODE_NAMES),
    labels=st.sampled_from([None, WEB, {"app": "db"}]),
    away_from=st.sampled_from([None, None, None, must(pod_term(names.LABEL_ZONE, app="web"))]),
    near=st.sampled_from([None, None, None, should((5, pod_term(names.LABEL_ZONE, app="web")))]),
)


class Event:
    """One thing that happens to a cluster."""

    def __init__(self, what: str, subject: Node | Pod | str) -> None:
        self.what = what
        self.subject = subject

    def __repr__(self) -> str:
        subject = self.subject
        return f"{self.what} {subject if isinstance(subject, str) else subject.metadata.name}"

    def apply(self, cluster: Cluster) -> None:
        """Let it happen."""
        subject = self.subject
        match self.what, subject:
            case "put node", Node():
                cluster.put_node(subject)
            case "remove node", str():
                cluster.remove_node(subject)
            case "put pod", Pod():
                cluster.put_pod(subject)
            case "assume", Pod():
                if cluster.pod(subject.metadata.uid) is None:
                    unbound = cluster.compiler.pending(on_node(subject, ""))
                    cluster.assume(unbound, subject.spec.node_name)
            case "forget", str():
                cluster.forget(subject)
            case "remove pod", str():
                cluster.remove_pod(subject)
            case _:
                raise AssertionError(repr(self))


EVENTS = st.one_of(
    st.builds(Event, st.just("put node"), NODES),
    st.builds(Event, st.just("remove node"), st.sampled_from(NODE_NAMES)),
    st.builds(Event, st.just("put pod"), PLACED),
    st.builds(Event, st.just("assume"), PLACED),
    st.builds(Event, st.sampled_from(["forget", "remove pod"]), st.sampled_from(UIDS)),
)

#: A cluster to begin with, large enough that one changed row is a small part of it.
FIRST_NODES = st.lists(NODES, min_size=6, max_size=12, unique_by=lambda each: each.metadata.name)


def grown_from(nodes: Sequence[Node], events: Sequence[Event]) -> Cluster:
    """Return a cluster that has seen all of this."""
    cluster = Cluster()
    for each in nodes:
        cluster.put_node(each)
    for event in events:
        event.apply(cluster)
    return cluster
