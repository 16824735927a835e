"""VolumeBinding remembers much between pods: whatever happens, it answers as if it did not."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kubesched.api.core import GCEPersistentDiskVolumeSource
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Status
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_matching import bound_to_claim
from kubesched.plugins.volume_placement import Placer
from tests.support.objects import pod
from tests.support.storage_objects import using
from tests.support.volume_scheduling import (
    VolumeLab,
    capacity,
    claim,
    csi_node,
    driver,
    host,
    in_zones,
    on_hosts,
    storage_class,
    volume,
)

NODES = ["n1", "n2", "n3", "n4"]
ZONES = ["a", "b", "c"]
VOLUMES = ["v1", "v2", "v3", "v4"]
SIZES = ["1Gi", "2Gi", "3Gi"]

_reach = st.one_of(
    st.none(),
    st.sampled_from(NODES).map(lambda name: [on_hosts(name)]),
    st.sampled_from(ZONES).map(lambda name: [in_zones(name)]),
    st.just([in_zones("a"), on_hosts("n4")]),
)
_disk = GCEPersistentDiskVolumeSource(pd_name="disk")


class Machine(RuleBasedStateMachine):
    """One plugin lives through everything; another is made for each question."""

    def __init__(self) -> None:
        super().__init__()
        self.lab = VolumeLab(host("n1", zone="a"), host("n2", zone="b"))
        self.lab.have(storage_class(), storage_class("local", provisioner=""))
        self.version = 1

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    @initialize()
    def claims(self) -> None:
        self.lab.have(
            claim("made", size="2Gi"),
            claim("small", size="1Gi", storage_class="local"),
            claim("large", size="2Gi", storage_class="local"),
            claim("bound", volume="v1", bound=True),
        )

    @rule(name=st.sampled_from(NODES), zone=st.sampled_from([None, *ZONES]), gke=st.booleans())
    def put_node(self, name: str, zone: str | None, gke: bool) -> None:
        labels = {"topology.gke.io/zone": "a"} if gke else {}
        self.lab.cluster.put_node(host(name, zone=zone, **labels))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        if len(self.lab.cluster.table) > 1:
            self.lab.cluster.remove_node(name)

    @rule(
        name=st.sampled_from(VOLUMES),
        size=st.sampled_from(SIZES),
        reach=_reach,
        phase=st.sampled_from(["Available", "Released"]),
        kept_for=st.sampled_from(["", "", "small"]),
        in_tree=st.booleans(),
    )
    def put_volume(self, **changes: object) -> None:
        in_tree = changes.pop("in_tree")
        made = volume(
            storage_class="local",
            version=self._next(),
            gce_persistent_disk=_disk if in_tree else None,
            **changes,  # type: ignore[arg-type]
        )
        self.lab.have(made)

    @rule(name=st.sampled_from(VOLUMES))
    def remove_volume(self, name: str) -> None:
        self.lab.storage.volumes.remove(volume(name))

    @rule(name=st.sampled_from(VOLUMES), taker=st.sampled_from(["small", "another"]))
    def assume_volume(self, name: str, taker: str) -> None:
        found = self.lab.storage.volumes.observed(name)
        if found is not None:
            self.lab.storage.volumes.assume(bound_to_claim(found, claim(taker))[0])

    @rule(name=st.sampled_from(VOLUMES))
    def restore_volume(self, name: str) -> None:
        self.lab.storage.volumes.restore(name)

    @rule(
        name=st.sampled_from(["x", "y"]),
        size=st.sampled_from(SIZES),
        zone=st.sampled_from([None, *ZONES]),
    )
    def put_capacity(self, name: str, size: str, zone: str | None) -> None:
        self.lab.have(capacity(name, size=size, zone=zone))

    @rule(name=st.sampled_from(["x", "y"]))
    def remove_capacity(self, name: str) -> None:
        self.lab.storage.capacities.remove(capacity(name))

    @rule(counts=st.booleans())
    def put_driver(self, counts: bool) -> None:
        self.lab.have(driver(storage_capacity=counts))

    @rule(zones=st.lists(st.sampled_from(ZONES), max_size=2, unique=True))
    def put_class(self, zones: list[str]) -> None:
        self.lab.have(storage_class(zones=zones))

    @rule(name=st.sampled_from(NODES), migrated=st.sampled_from(["", "kubernetes.io/gce-pd"]))
    def put_csi_node(self, name: str, migrated: str) -> None:
        self.lab.have(csi_node(name, migrated=migrated))

    @rule(name=st.sampled_from(["", *NODES]))
    def select_node(self, name: str) -> None:
        self.lab.have(claim("made", size="2Gi", selected=name or None, version=self._next()))

    @invariant()
    def answers_as_if_new(self) -> None:
        old = self.lab.plugin
        fresh = VolumeBinding(
            self.lab.cluster,
            placer=Placer(self.lab.cluster),
            binder=old._binder,
            scorer=None,
            on_failure=lambda _stage: None,
        )
        for names in (["bound"], ["made"], ["small"], ["large", "small"], ["bound", "made"]):
            assert self._ask(old, names) == self._ask(fresh, names), names
        old._placer._index.validate()

    def _ask(self, plugin: VolumeBinding, claims: list[str]) -> dict[str, Status | list[str]]:
        """Return each node's verdict, or else the volumes that the pod would have there."""
        state, info = CycleState(), self.lab.pending(using(pod(), *claims))
        table = self.lab.cluster.table
        nodes = NodeRows.all_of(table)
        assert plugin.pre_filter(state, info, nodes).status.ok
        verdict = plugin.filter(state, info, nodes)
        placement = state.read(VolumeBinding.name).placement
        answers: dict[str, Status | list[str]] = {}
        for row in range(table.size):
            if table.valid[row]:
                taken = [each.metadata.name for each, _ in placement.at(row).bindings]
                answers[table.name_at(row)] = verdict.status_of(row) or taken
        return answers


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
