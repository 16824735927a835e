"""Where a volume can be made: what is remembered of space answers as if nothing was remembered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from kubesched.api import labels, names, quantity
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.storage import CSIStorageCapacity
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import Log
from kubesched.cluster.storage import Capacities
from kubesched.errors import SelectorError
from kubesched.plugins.volume_provisioning import Provisioner
from kubesched.plugins.volume_topology import Topology, TopologyRows
from tests.support.scheduling import cluster_of
from tests.support.volume_scheduling import capacity, claim, driver, host, storage_class

HOST, ZONE = names.LABEL_HOSTNAME, names.LABEL_ZONE
CLASSES = ["gold", "tin"]


def _provisioner(cluster: Cluster) -> Provisioner:
    return Provisioner(cluster.storage, cluster.table, TopologyRows(cluster.table))


def _space(
    provisioner: Provisioner, cluster: Cluster, *, size: str = "1Gi", storage_class: str = "gold"
) -> dict[str, str | None]:
    """Return the name of the capacity that a claim would use on each node."""
    space = provisioner.where(claim(size=size, storage_class=storage_class)).space
    assert space is not None
    found = {
        name: space.at(row)
        for row in range(cluster.table.size)
        if cluster.table.valid[row] and (name := cluster.table.name_at(row))
    }
    return {name: None if each is None else each.metadata.name for name, each in found.items()}


def _on(host_name: str, name: str, **changes: str | None) -> CSIStorageCapacity:
    topology = LabelSelector(match_labels={HOST: host_name})
    return replace(capacity(name, storage_class="gold"), node_topology=topology, **changes)


# --- each at a time -----------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Cluster:
    made = cluster_of(host("n1", zone="a"), host("n2", zone="b"), host("n3", zone="b"))
    made.storage.classes.put(storage_class("gold"))
    made.storage.drivers.put(driver())
    for number in (1, 2, 3):
        made.storage.capacities.put(_on(f"n{number}", f"s{number}"))
    return made


def test_of_several_capacities_the_first_by_name_is_used(cluster: Cluster) -> None:
    provisioner = _provisioner(cluster)
    cluster.storage.capacities.put(capacity("s0", zone="b", storage_class="gold"))
    found = _space(provisioner, cluster)
    assert found == {"n1": "s1", "n2": "s0", "n3": "s0"}


def test_capacities_follow_what_happens_to_them(cluster: Cluster) -> None:
    provisioner, store = _provisioner(cluster), cluster.storage.capacities

    def found() -> list[str | None]:
        return list(_space(provisioner, cluster, size="5Gi").values())

    assert found() == ["s1", "s2", "s3"]
    store.put(_on("n2", "s2", capacity="4Gi"))
    assert found() == ["s1", None, "s3"]
    store.put(_on("n2", "s3"))
    assert found() == ["s1", "s3", None]
    store.put(_on("n2", "s3", storage_class_name="tin"))
    assert found() == ["s1", None, None]
    store.remove(capacity("s1"))
    assert found() == [None, None, None]
    store.put(capacity("s4", size="1Gi", largest="9Gi", storage_class="gold"))
    assert found() == ["s4", "s4", "s4"]


def test_whoever_comes_too_late_to_the_journal_looks_at_everything(cluster: Cluster) -> None:
    store = cluster.storage.capacities = Capacities(Log(4))
    provisioner = _provisioner(cluster)
    store.put(_on("n1", "s0"))
    assert _space(provisioner, cluster) == {"n1": "s0", "n2": None, "n3": None}
    store.remove(capacity("s0"))
    for number in range(20):
        store.put(_on(f"n{number % 3 + 1}", f"s{number % 3 + 1}", capacity=f"{number}Gi"))
    found = _space(provisioner, cluster, size="18Gi")
    assert found == {"n1": "s1", "n2": "s2", "n3": None}


def test_an_answer_stays_what_it_was(cluster: Cluster) -> None:
    provisioner = _provisioner(cluster)
    before = provisioner.where(claim(storage_class="gold")).space
    assert before is not None
    cluster.storage.capacities.remove(capacity("s1"))
    cluster.storage.capacities.put(_on("n2", "s2", capacity="4Gi"))
    _space(provisioner, cluster)
    kept = [before.at(row) for row in range(3)]
    assert [each and (each.metadata.name, each.capacity) for each in kept] == [
        ("s1", "10Gi"),
        ("s2", "10Gi"),
        ("s3", "10Gi"),
    ]


def _change_amount(cluster: Cluster) -> None:
    cluster.storage.capacities.put(_on("n2", "s2", capacity="9Gi"))


def _change_other_class(cluster: Cluster) -> None:
    cluster.storage.capacities.put(capacity("other", zone="a", storage_class="tin"))


def _change_other_label(cluster: Cluster) -> None:
    cluster.put_node(host("n2", zone="c", colour="blue"))


def _change_host(cluster: Cluster) -> None:
    cluster.put_node(host("n4"))


@pytest.mark.parametrize(
    ("change", "searches"),
    [
        (_change_amount, 0),
        (_change_other_class, 0),
        (_change_other_label, 0),
        (_change_host, 3),
    ],
)
def test_rows_are_searched_again_only_if_they_may_differ(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Cluster], None],
    searches: int,
) -> None:
    provisioner = _provisioner(cluster)
    _space(provisioner, cluster)
    asked: list[Topology | None] = []
    search = TopologyRows.rows

    def counted(self: TopologyRows, topology: Topology | None) -> IndexArray:
        asked.append(topology)
        return search(self, topology)

    monkeypatch.setattr(TopologyRows, "rows", counted)
    change(cluster)
    _space(provisioner, cluster)
    assert len(asked) == searches


# --- whatever happens ---------------------------------------------------------------------------

NODES = ["n1", "n2", "n3", "n4"]
_topology = st.one_of(
    st.none(),
    st.just(LabelSelector()),
    st.sampled_from(NODES).map(lambda name: LabelSelector(match_labels={HOST: name})),
    st.sampled_from("ab").map(lambda zone: LabelSelector(match_labels={ZONE: zone})),
    st.builds(
        lambda name, zone: LabelSelector(match_labels={HOST: name, ZONE: zone}),
        st.sampled_from(NODES),
        st.sampled_from("ab"),
    ),
    st.builds(
        lambda key, operator, values: LabelSelector(
            match_expressions=(LabelSelectorRequirement(key, operator, tuple(values)),)
        ),
        st.sampled_from([HOST, ZONE, "colour", "not a key"]),
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from([*NODES, "a", "b", "red"]), max_size=6, unique=True),
    ),
)


class Machine(RuleBasedStateMachine):
    """One provisioner lives through everything; another is made for each question."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = cluster_of(host("n1", zone="a"), host("n2", zone="b"))
        # A journal so short that now and then too much has happened at once.
        self.cluster.storage.capacities = Capacities(Log(6))
        for each in CLASSES:
            self.cluster.storage.classes.put(storage_class(each))
        self.cluster.storage.drivers.put(driver())
        self.old = _provisioner(self.cluster)
        #: whether questions are asked after each step
        self.curious = True

    @initialize(
        topologies=st.lists(_topology, max_size=8),
        curious=st.booleans(),
    )
    def capacities(self, topologies: list[LabelSelector | None], curious: bool) -> None:
        for number, topology in enumerate(topologies):
            self.put_capacity(f"s{number}", "2Gi", None, CLASSES[number % 2], topology)
        self.curious = curious

    @rule(
        name=st.sampled_from([f"s{number}" for number in range(8)]),
        size=st.sampled_from([None, "1Gi", "2Gi", "3Gi", "a lot"]),
        largest=st.sampled_from([None, None, "1Gi", "3Gi"]),
        class_name=st.sampled_from(CLASSES),
        topology=_topology,
    )
    def put_capacity(
        self,
        name: str,
        size: str | None,
        largest: str | None,
        class_name: str,
        topology: LabelSelector | None,
    ) -> None:
        made = capacity(name, size=size, largest=largest, storage_class=class_name)
        self.cluster.storage.capacities.put(replace(made, node_topology=topology))

    @rule(number=st.integers(0, 7), size=st.sampled_from(["1Gi", "2Gi", "3Gi"]))
    def change_amount(self, number: int, size: str) -> None:
        found = self.cluster.storage.capacities.get("kube-system", f"s{number}")
        if found is not None:
            self.cluster.storage.capacities.put(replace(found, capacity=size))

    @rule(number=st.integers(0, 7))
    def remove_capacity(self, number: int) -> None:
        self.cluster.storage.capacities.remove(capacity(f"s{number}"))

    @rule(
        name=st.sampled_from(NODES),
        zone=st.sampled_from([None, "a", "b", "c"]),
        colour=st.sampled_from(["", "red", "blue"]),
    )
    def put_node(self, name: str, zone: str | None, colour: str) -> None:
        self.cluster.put_node(host(name, zone=zone, **({"colour": colour} if colour else {})))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        if self.cluster.table.row_of(name) is not None and len(self.cluster.table) > 1:
            self.cluster.remove_node(name)

    @rule()
    def ask(self) -> None:
        for class_name in CLASSES:
            for size in ("1Gi", "3Gi"):
                found, as_if_new = (
                    _space(each, self.cluster, size=size, storage_class=class_name)
                    for each in (self.old, _provisioner(self.cluster))
                )
                assert found == as_if_new
                assert found == self._one_by_one(quantity.value(size), class_name)

    @invariant()
    def answers_as_if_new(self) -> None:
        if self.curious:
            self.ask()

    def _one_by_one(self, size_bytes: int, class_name: str) -> dict[str, str | None]:
        capacities = sorted(
            self.cluster.storage.capacities.of_class(class_name), key=Capacities.key_of
        )
        result: dict[str, str | None] = {}
        for row, each in enumerate(self.cluster.table.nodes):
            if each is not None:
                given = each.metadata.labels or {}
                fitting = [
                    found.metadata.name
                    for found in capacities
                    if _allowed(found) >= size_bytes and _is_for(found, given)
                ]
                result[self.cluster.table.name_at(row)] = fitting[0] if fitting else None
        return result


def _allowed(found: CSIStorageCapacity) -> int:
    text = found.capacity if found.maximum_volume_size is None else found.maximum_volume_size
    if text is None:
        return -1
    return quantity.INT64_MAX if text == "a lot" else quantity.value(text)


def _is_for(found: CSIStorageCapacity, given: dict[str, str]) -> bool:
    try:
        return labels.from_label_selector(found.node_topology).matches(given)
    except SelectorError:
        return False


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
