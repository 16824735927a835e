"""The CSI volumes of rows, kept up to date as anything changes that they depend on."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kubesched.cluster.cluster import Cluster
from kubesched.errors import InvariantError
from kubesched.plugins.attached_volumes import NO_LIMIT, AttachedVolumes
from kubesched.plugins.claim_volumes import VolumeId
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of
from tests.support.storage_objects import (
    DRIVER,
    attachment,
    claim,
    csi_node,
    ephemeral_volume,
    gce_disk,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)


def test_what_a_row_has_and_can_take() -> None:
    cluster = cluster_of(node("n0"), node("n1"), using(pod("p", node="n1"), "c"))
    cluster.storage.claims.put(claim("c", volume="v"))
    cluster.storage.volumes.put(persistent_volume("v", handle="h"))
    cluster.storage.csi_nodes.put(csi_node("n1", {DRIVER: 5}))
    attached = AttachedVolumes(cluster)

    attached.refresh()

    assert attached.rows[1].ids == {VolumeId(DRIVER, "h")}
    assert attached.free[DRIVER].tolist() == [NO_LIMIT, 4]
    assert attached.has_csi_node.tolist() == [False, True]
    assert attached.rows_with == {VolumeId(DRIVER, "h"): {1}}


def test_nothing_is_worked_out_again_if_nothing_changed() -> None:
    cluster = cluster_of(node("n0"), node("n1"), using(pod("p", node="n1"), "c"))
    cluster.storage.claims.put(claim("c", volume="v"))
    attached = AttachedVolumes(cluster)
    worked_out: list[int] = []
    work_out = attached._work_out

    def counting(row: int) -> None:
        worked_out.append(row)
        work_out(row)

    attached._work_out = counting  # type: ignore[method-assign]  # to watch it
    attached.refresh()
    attached.refresh()
    assert worked_out == [1], "no pod of the other row has volumes"

    cluster.put_pod(pod("q", node="n0"))
    attached.refresh()
    assert worked_out == [1, 0]

    cluster.storage.claims.put(claim("unused"))
    cluster.storage.claims.put(claim("c", volume="v", version="2"))
    attached.refresh()
    assert worked_out == [1, 0, 1]


def test_validate_notices_what_is_wrong() -> None:
    cluster = cluster_of(node("n0"), using(pod("p", node="n0"), "c"))
    cluster.storage.claims.put(claim("c", volume="v"))
    cluster.storage.volumes.put(persistent_volume("v"))
    cluster.storage.csi_nodes.put(csi_node("n0", {DRIVER: 5}))
    attached = AttachedVolumes(cluster)
    attached.refresh()
    attached.validate()

    attached.free[DRIVER][0] += 1
    with pytest.raises(InvariantError, match=r"AttachedVolumes\.limited"):
        attached.validate()


ROWS = st.integers(0, 2)
CLAIMS = st.sampled_from(["a", "b", "p1-e", "p2-e"])
VOLUMES = st.sampled_from(["v", "w"])
DRIVERS = st.sampled_from([DRIVER, "other"])


class AttachedMachine(RuleBasedStateMachine):
    """Everything changes in any order; the rows are compared with rows worked out from scratch."""

    @initialize(lazy=st.booleans())
    def begin(self, lazy: bool) -> None:
        self.cluster: Cluster = cluster_of(
            node("n0"), node("n1"), using(pod("p1", node="n0"), "a", "b")
        )
        storage = self.cluster.storage
        storage.claims.put(claim("a", volume="v"))
        storage.claims.put(claim("b", storage_class="fast"))
        storage.volumes.put(persistent_volume("v", handle="h"))
        storage.volumes.put(persistent_volume("w", handle="i"))
        storage.csi_nodes.put(csi_node("n0", {DRIVER: 2}))
        storage.attachments.put(attachment("x", node="n0", volume="w"))
        self.attached = AttachedVolumes(self.cluster)
        self.attached.refresh()
        self.version = 1
        #: whether somebody asks only now and then
        self.lazy = lazy

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    @rule(number=st.integers(1, 3), row=ROWS, claims=st.lists(CLAIMS, max_size=2, unique=True))
    def pod_comes(self, number: int, row: int, claims: list[str]) -> None:
        self.cluster.put_pod(using(pod(f"p{number}", node=f"n{row}"), *claims))

    @rule(number=st.integers(1, 3), row=ROWS, disk=st.sampled_from(["d", "e"]))
    def pod_with_other_volumes_comes(self, number: int, row: int, disk: str) -> None:
        plain = pod(f"p{number}", node=f"n{row}")
        self.cluster.put_pod(with_volumes(plain, ephemeral_volume("e"), gce_disk(disk)))

    @rule(number=st.integers(1, 3))
    def pod_goes(self, number: int) -> None:
        self.cluster.remove_pod(f"p{number}")

    @rule(row=ROWS, gone=st.booleans())
    def node_comes_or_goes(self, row: int, gone: bool) -> None:
        if gone:
            self.cluster.remove_node(f"n{row}")
        else:
            self.cluster.put_node(node(f"n{row}"))

    @rule(name=CLAIMS, volume=st.sampled_from(["", "v", "w"]), owner=st.sampled_from(["", "p1"]))
    def claim_changes(self, name: str, volume: str, owner: str) -> None:
        self.cluster.storage.claims.put(
            claim(
                name,
                volume=volume,
                owner=owner,
                storage_class="fast",
                version=self.next_version(),
            )
        )

    @rule(name=CLAIMS)
    def claim_goes(self, name: str) -> None:
        self.cluster.storage.claims.remove(claim(name))

    @rule(name=VOLUMES, driver=DRIVERS, handle=st.sampled_from(["h", "i"]))
    def volume_changes(self, name: str, driver: str, handle: str) -> None:
        version = self.next_version()
        volume = persistent_volume(name, driver=driver, handle=handle, version=version)
        self.cluster.storage.volumes.put(volume)

    @rule(name=VOLUMES)
    def volume_goes(self, name: str) -> None:
        self.cluster.storage.volumes.remove(persistent_volume(name))

    @rule(row=ROWS, driver=DRIVERS, limit=st.sampled_from([None, 0, 2]))
    def limits_change(self, row: int, driver: str, limit: int | None) -> None:
        self.cluster.storage.csi_nodes.put(csi_node(f"n{row}", {driver: limit}))

    @rule(row=ROWS)
    def limits_go(self, row: int) -> None:
        self.cluster.storage.csi_nodes.remove(csi_node(f"n{row}"))

    @rule(name=st.sampled_from(["x", "y"]), row=ROWS, volume=VOLUMES, driver=DRIVERS)
    def volume_is_attached(self, name: str, row: int, volume: str, driver: str) -> None:
        self.cluster.storage.attachments.put(
            attachment(name, node=f"n{row}", volume=volume, attacher=driver)
        )

    @rule(name=st.sampled_from(["x", "y"]))
    def volume_is_detached(self, name: str) -> None:
        self.cluster.storage.attachments.remove(attachment(name, node="", volume=None))

    @rule(gone=st.booleans())
    def class_comes_or_goes(self, gone: bool) -> None:
        classes = self.cluster.storage.classes
        (classes.remove if gone else classes.put)(storage_class("fast"))

    @rule(row=ROWS)
    def what_if(self, row: int) -> None:
        table = self.cluster.table
        number = table.row_of(f"n{row}")
        if number is None:
            return
        with self.cluster.transaction() as tx:
            for uid in list(table.pods[number]):
                tx.remove(uid)
            self.somebody_asks()
            assert self.attached.at(number).ids == frozenset()

    @rule()
    def somebody_asks(self) -> None:
        self.attached.refresh()
        self.attached.validate()

    @invariant()
    def answers_are_up_to_date_whenever_somebody_asks(self) -> None:
        if not self.lazy:
            self.somebody_asks()


AttachedMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=20)
TestAttached = AttachedMachine.TestCase
