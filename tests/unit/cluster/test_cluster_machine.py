"""Whatever happens in whatever order, the cluster is what the newest objects describe.

A naive model (dictionaries of objects) sees the same events; after each of them every column is
recounted and compared with it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubesched.api.core import Node, Pod
from kubesched.api.requests import node_allocatable, pod_requests
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_order import zone_of
from tests.support.objects import node, on_node, pod

GPU = "example.com/gpu"
NODE_NAMES = [f"n{number}" for number in range(5)]
UIDS = [f"p{number}" for number in range(6)]

_NODES = st.builds(
    node,
    st.sampled_from(NODE_NAMES),
    cpu=st.sampled_from(["1", "4", "64"]),
    pods=st.sampled_from([0, 3, 110]),
    resources=st.sampled_from([None, {GPU: "2"}, {"hugepages-2Mi": "1Gi"}]),
    zone=st.sampled_from([None, "a", "b"]),
    labels=st.sampled_from([None, {"disk": "ssd"}, {"disk": "hdd"}, {"rack": "1"}]),
    taints=st.sampled_from([(), ("a=b:NoSchedule",), ("a=b:NoSchedule", "c:NoExecute")]),
    unschedulable=st.booleans(),
    images=st.sampled_from([None, {"web:1": 100}, {"web:1": 200}, {"web:1": 100, "db:1": 50}]),
)
_PODS = st.builds(
    pod,
    st.sampled_from(UIDS),
    cpu=st.sampled_from([None, "100m", "2"]),
    memory=st.sampled_from([None, "64Mi"]),
    requests=st.sampled_from([None, {GPU: "1"}, {"example.com/nobody": "3"}]),
    ports=st.sampled_from([(), (80,), (80, 443)]),
    resized_to=st.sampled_from([None, None, {"cpu": "3"}]),
)


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        #: column that exists from the start, others are asked for on the way
        self.cluster.table.label_column("disk")
        self.nodes: dict[str, Node] = {}
        #: zone → names, in order
        self.zones: dict[Any, list[str]] = {}
        #: uid → object, node name
        self.placed: dict[str, tuple[Pod, str]] = {}
        self.assumed: set[str] = set()
        #: image → (size, names of nodes)
        self.images: dict[str, tuple[int, set[str]]] = {}

    # --- nodes --------------------------------------------------------------------------------

    def _drop_images(self, name: str) -> None:
        for image, (_, holders) in list(self.images.items()):
            holders.discard(name)
            if not holders:
                del self.images[image]

    def _drop_zone(self, name: str) -> None:
        for zone, members in list(self.zones.items()):
            if name in members:
                members.remove(name)
            if not members:
                del self.zones[zone]

    @rule(new=_NODES)
    def put_node(self, new: Node) -> None:
        name = new.metadata.name
        self.cluster.put_node(new)
        if name not in self.zones.get(zone_of(new), ()):
            self._drop_zone(name)
            self.zones.setdefault(zone_of(new), []).append(name)
        self._drop_images(name)
        for image in new.status.images:
            assert image.names is not None
            _, holders = self.images.setdefault(image.names[0], (image.size_bytes, set()))
            holders.add(name)
        self.nodes[name] = new

    @rule(name=st.sampled_from(NODE_NAMES))
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)
        self.nodes.pop(name, None)
        self._drop_images(name)
        self._drop_zone(name)

    @rule(key=st.sampled_from(["rack", "disk"]))
    def ask_for_a_label(self, key: str) -> None:
        self.cluster.table.label_column(key)

    @rule(number=st.integers(0, 2))
    def ask_for_a_resource_in_floats(self, number: int) -> None:
        self.cluster.table.float_resource(number)

    # --- pods ---------------------------------------------------------------------------------

    @rule(new=_PODS, node_name=st.sampled_from(NODE_NAMES))
    def put_pod(self, new: Pod, node_name: str) -> None:
        """New, again, changed, moved, confirming an assumption, before its node: all the same."""
        self.cluster.put_pod(on_node(new, node_name))
        self.placed[new.metadata.uid] = (new, node_name)
        self.assumed.discard(new.metadata.uid)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        assumed, node_name = self.placed[uid]
        self.cluster.put_pod(on_node(assumed, node_name))
        self.assumed.discard(uid)

    @rule(uid=st.sampled_from(UIDS))
    def remove_pod(self, uid: str) -> None:
        self.cluster.remove_pod(uid)
        self.placed.pop(uid, None)
        self.assumed.discard(uid)

    @rule(new=_PODS, node_name=st.sampled_from(NODE_NAMES))
    def assume(self, new: Pod, node_name: str) -> None:
        uid = new.metadata.uid
        if uid in self.placed:
            return
        self.cluster.assume(self.cluster.compiler.pending(new), node_name)
        self.placed[uid] = (new, node_name)
        self.assumed.add(uid)

    @rule(uid=st.sampled_from(UIDS))
    def forget(self, uid: str) -> None:
        self.cluster.forget(uid)
        if uid in self.assumed:
            self.assumed.discard(uid)
            del self.placed[uid]

    # --- comparison ---------------------------------------------------------------------------

    @invariant()
    def adds_up(self) -> None:
        self.cluster.validate()

    @invariant()
    def has_the_model_s_pods(self) -> None:
        cluster = self.cluster
        assert cluster.pod_count == len(self.placed)
        assert cluster.assumed_count == len(self.assumed)
        for uid in UIDS:
            known = self.placed.get(uid)
            assert cluster.node_of(uid) == (known and known[1])
            assert cluster.is_assumed(uid) == (uid in self.assumed)

    @invariant()
    def has_the_model_s_nodes(self) -> None:
        table = self.cluster.table
        assert set(table.names()) == set(self.nodes)
        assert len(table) == len(self.nodes)
        for name, each in self.nodes.items():
            row = table.row_of(name)
            assert row is not None
            assert table.nodes[row] is each
            offered = node_allocatable(each)
            here = {uid: known for uid, known in self.placed.items() if known[1] == name}
            assert set(table.pods[row]) == set(here)
            for number, resource in enumerate(table.resources.names):
                assert table.allocatable[number, row] == offered.get(resource, 0)
                requested = sum(
                    pod_requests(each, use_status=uid not in self.assumed).get(resource, 0)
                    for uid, (each, _) in here.items()
                )
                assert table.requested[number, row] == requested

    @invariant()
    def has_the_model_s_order(self) -> None:
        table = self.cluster.table
        turns = max((len(members) for members in self.zones.values()), default=0)
        want = [
            members[turn]
            for turn in range(turns)
            for members in self.zones.values()
            if turn < len(members)
        ]
        assert [table.name_at(row) for row in table.order.rows().tolist()] == want

    @invariant()
    def has_the_model_s_images(self) -> None:
        table = self.cluster.table
        for image in ("web:1", "db:1"):
            state = table.images.find(image)
            if image not in self.images:
                assert state is None
                continue
            assert state is not None
            size, holders = self.images[image]
            assert (state.size_bytes, {table.name_at(row) for row in state.rows}) == (size, holders)


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(max_examples=60, stateful_step_count=40)
