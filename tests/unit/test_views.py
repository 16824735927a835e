"""Every view stays what building it anew gives, as everything in the cluster changes at random.

One state machine runs a whole profile, and the page, on a cluster in which nodes, pods,
nominations, budgets and storage come, change and go, while views fail in the middle of their work.
Views are found by their base class: one that takes no part fails a test. Each view has mutants,
which forget a change, advance past a change that they failed on, or ignore their stamp; the machine
must find each of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Namespace, Node, NodeSelector, Pod, Toleration
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.workloads import PlainSelectorSpec, Service
from kubesched.cluster.incremental import Column, Memo, View
from kubesched.errors import InvariantError
from kubesched.framework.node_by_node import CachedNodeScore, HighestWins, NodeView, SignatureView
from kubesched.framework.plugin import NODE, REQUESTS
from kubesched.plugins.device_counts import CountedDevices
from kubesched.plugins.device_selectors import compile_selector
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.web.columns import NodeColumns
from tests.support import storage_objects, volume_scheduling
from tests.support.device_objects import (
    allocated,
    allocation,
    claim,
    claiming,
    device,
    device_class,
    fill,
    request,
    result,
    same,
    slice_of,
    taint,
    taint_rule,
)
from tests.support.objects import (
    budget,
    must,
    node,
    on_node,
    pod,
    pod_term,
    prefers,
    requirement,
    should,
    spread_over,
    term,
)
from tests.support.scheduling import Lab
from tests.support.storage_objects import attachment, using
from tests.support.volume_scheduling import DRIVER, in_zones, on_hosts

T = TypeVar("T")

ZONE, HOST = names.LABEL_ZONE, names.LABEL_HOSTNAME
GPU = "example.com/gpu"
MORE_RESOURCES = [f"example.com/resource-{number}" for number in range(12)]
NODES = [f"n{number}" for number in range(9)]
CLAIMS = ["a", "b", "c"]
VOLUMES = ["v", "w"]
IMAGES = {"web:latest": 300 << 20, "db:1": 900 << 20}
PREFERS_SSD = prefers((30, term(requirement("disk", "In", "ssd"))), (5, in_zones("a")))
IN_TEAM_A = replace(
    pod_term(HOST, app="web"), namespace_selector=LabelSelector(match_labels={"team": "a"})
)
KINDS: list[dict[str, Any]] = [
    {"cpu": "1"},
    {"cpu": "1", "memory": "1Gi"},
    {"cpu": "2", "labels": {"app": "web"}},
    {"requests": {GPU: "1"}},
    {"cpu": "2", "node_selector": {"disk": "ssd"}},
    {"cpu": "1", "node_affinity": PREFERS_SSD},
    {"cpu": "2", "tolerations": [Toleration(key="slow", operator="Exists")]},
    {"labels": {"app": "web"}, "spread": [spread_over(ZONE, app="web")]},
    {"labels": {"app": "db"}, "spread": [spread_over(HOST, soft=True, app="web")]},
    {"labels": {"app": "db"}, "near": must(pod_term(ZONE, app="web"))},
    {"labels": {"app": "db"}, "away_from": must(pod_term(HOST, app="db"))},
    {"labels": {"app": "web"}, "near": should((5, pod_term(ZONE, app="db")))},
    {"labels": {"app": "web", "tier": "front"}},
    {"labels": {"app": "db"}, "away_from": must(IN_TEAM_A)},
]
#: Selectors of a service; all of them select pods of one kind.
SERVICE_SELECTORS = [{"app": "web"}, {"tier": "front"}, {"app": "web", "tier": "front"}]


#: what preemptors require of other pods
RELATIONS: list[dict[str, Any]] = [
    {},
    {"spread": [spread_over(ZONE, app="web")]},
    {"near": must(pod_term(ZONE, app="web"))},
    {"away_from": must(pod_term(HOST, app="web"))},
]


DEVICE_CLAIMS = {
    "one": claim("one", request()),
    "two": claim("two", request(count=2), constraints=[same("numa")]),
    "numa": claim("numa", request("r", 'device.attributes["gpu.example.com"].numa == 1')),
}
ON_SSD = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "ssd")),))


class BrokenViewError(Exception):
    """A view was made to fail."""


class Newest(HighestWins, CachedNodeScore):
    """Scores that depend on more than rows: on a number that the machine changes."""

    name = "Newest"
    reads = NODE | REQUESTS
    bonus = 0

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return node.allocatable("cpu") * (1 + Newest.bonus * (node.name == "n1"))

    def epoch(self, signature: Any, table: Any) -> int:
        return Newest.bonus


def all_views(kind: type[View] = View) -> set[type[View]]:
    """All views of the product, found by their base class; those without subclasses are used."""
    found = {each for each in kind.__subclasses__() if each.__module__.startswith("kubesched.")}
    return {leaf for each in found for leaf in (all_views(each) or {each})}


class Views:
    """The views that exist, and which one is to fail next."""

    def __init__(self, preferred: str = "") -> None:
        #: the kind of view that fails more often than others
        self.preferred = preferred
        #: in the order in which they were made
        self.alive: list[ref[View]] = []
        self.made: set[type[View]] = set()
        self.failing: str = ""

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Hear of every view that is made, and let views fail that are to."""
        with pytest.MonkeyPatch.context() as patch:
            made = View.__init__

            def init(view: View, *logs: Any) -> None:
                made(view, *logs)
                self.alive.append(ref(view))
                self.made.add(type(view))

            patch.setattr(View, "__init__", init)
            for kind in all_views():
                for method in ("rebuild", "update"):
                    patch.setattr(kind, method, self._fragile(getattr(kind, method)))
            yield

    def _fragile(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def fragile(view: View, *changes: Any) -> Any:
            if self.failing == type(view).__name__:
                self.failing = ""
                raise BrokenViewError
            return method(view, *changes)

        return fragile

    @contextmanager
    def fails(self, kind: str) -> Iterator[None]:
        """Let the next work of a view of some kind fail, which ends what is done here."""
        self.failing = kind
        try:
            yield
        except BrokenViewError:
            return
        finally:
            self.failing = ""

    def validate(self) -> None:
        """Compare each view with one built anew."""
        for each in list(self.alive):
            view = each()
            if view is not None:
                view.validate()


class Life:
    """A cluster in which everything changes at random; views are asked, and compared."""

    def __init__(self, views: Views, seed: int) -> None:
        views.alive.clear()
        Newest.bonus = 0
        self.views = views
        self.random = random.Random(seed)
        self.lab = Lab(*(self._node(name) for name in NODES[:7]), plugins=[Newest])
        self.cluster, self.storage = self.lab.cluster, self.lab.cluster.storage
        self.page = NodeColumns(self.cluster.table)
        self.cycle = SchedulingCycle(self.cluster, seed=1)
        self.serial = 0
        self.placed: list[str] = []
        self.storage.classes.put(volume_scheduling.storage_class())
        self.storage.drivers.put(volume_scheduling.driver())
        self.devices = self.cluster.devices
        fill(self.cluster, device_class(), *DEVICE_CLAIMS.values())
        self.counted = CountedDevices(self.cluster.table, self.devices, compile_selector)

    def step(self) -> None:
        """Let something happen."""
        changes = [
            (self.put_node, 3),
            (self.remove_node, 1),
            (self.change_what_scores_depend_on, 1),
            (self.put_pod, 6),
            (self.remove_pod, 3),
            (self.nominate, 2),
            (self.withdraw, 1),
            (self.change_a_budget, 1),
            (self.put_service, 2),
            (self.label_the_namespace, 2),
            (self.put_claim, 2),
            (self.put_volume, 2),
            (self.remove_volume, 1),
            (self.put_csi_node, 2),
            (self.change_an_attachment, 1),
            (self.put_capacity, 3),
            (self.put_class, 1),
            (self.put_slice, 3),
            (self.remove_slice, 1),
            (self.change_a_device_claim, 4),
            (self.change_a_taint_rule, 1),
            (self.change_a_device_class, 1),
            (self.count_devices, 3),
            (self.schedule, 12),
            (self.stack_pods, 4),
            (self.try_out, 4),
            (self.look_at_the_page, 2),
            (self.views.validate, 2),
        ]
        actions, weights = zip(*changes, strict=True)
        self.random.choices(actions, weights)[0]()

    def _version(self) -> str:
        self.serial += 1
        return str(self.serial)

    def _one_of(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def _coin(self) -> bool:
        return self.random.random() < 0.5

    # --- nodes --------------------------------------------------------------------------------

    def _node(self, name: str, cpu: str = "4", zone: str = "a", **more: Any) -> Node:
        labels = {HOST: name} | more.pop("labels", {})
        return node(name, cpu=cpu, zone=zone, labels=labels, **more)

    def put_node(self) -> None:
        self.cluster.put_node(
            self._node(
                self._one_of(NODES),
                self._one_of(["2", "4", "5"]),
                self._one_of("ab"),
                labels={"disk": "ssd"} if self._coin() else {},
                taints=["slow=yes:PreferNoSchedule"] if self._coin() else (),
                unschedulable=self.random.random() < 0.2,
                images=self._one_of([{}, {"web:latest": IMAGES["web:latest"]}, IMAGES]),
                resources={self._one_of([GPU, *MORE_RESOURCES]): "2"} if self._coin() else None,
            )
        )

    def remove_node(self) -> None:
        self.cluster.remove_node(self._one_of(NODES))

    def change_what_scores_depend_on(self) -> None:
        Newest.bonus = self.random.randrange(4)

    # --- pods ---------------------------------------------------------------------------------

    def _pod(self, priorities: Sequence[int]) -> Pod:
        kind, volume = self._one_of(KINDS), self._one_of([None, None, None, *CLAIMS])
        made = pod(f"p{self._version()}", priority=self._one_of(priorities), **kind)
        if self.random.random() < 0.3:
            made = claiming(made, self._one_of(list(DEVICE_CLAIMS)))
        return made if volume is None else using(made, volume)

    def _preempting(self) -> Pod:
        more = self._one_of(RELATIONS)
        return pod(f"p{self._version()}", cpu="4", priority=10, labels={"app": "db"}, **more)

    def put_pod(self, made: Pod | None = None, name: str = "") -> None:
        made = made or self._pod([0, 5])
        self.cluster.put_pod(on_node(made, name or self._one_of(NODES)))
        self.placed.append(made.metadata.uid)

    def remove_pod(self) -> None:
        if self.placed:
            uid = self._one_of(self.placed)
            self.placed.remove(uid)
            self.cluster.remove_pod(uid)

    def nominate(self) -> None:
        made = pod(f"nominated-{self.random.randrange(3)}", priority=5, **self._one_of(KINDS))
        self.cluster.nominator.nominate(self.lab.pending(made), self._one_of(NODES))

    def withdraw(self) -> None:
        self.cluster.nominator.clear(pod(f"nominated-{self.random.randrange(3)}").metadata.uid)

    def change_a_budget(self) -> None:
        made = budget(allowed=self.random.randrange(2), match={"app": "web"})
        (self.cluster.budgets.remove if self._coin() else self.cluster.budgets.put)(made)

    # --- what selects pods --------------------------------------------------------------------

    def put_service(self) -> None:
        meta = ObjectMeta(name="s", namespace="default")
        spec = PlainSelectorSpec(selector=self._one_of(SERVICE_SELECTORS))
        self.cluster.workloads.services.put(Service(metadata=meta, spec=spec))

    def label_the_namespace(self) -> None:
        meta = ObjectMeta(name="default", labels={"team": self._one_of("ab")})
        self.cluster.namespaces.put(Namespace(metadata=meta))

    # --- storage ------------------------------------------------------------------------------

    def put_claim(self) -> None:
        volume = self._one_of(["", "", "", *VOLUMES])
        made = volume_scheduling.claim(
            self._one_of(CLAIMS), volume=volume, bound=bool(volume), version=self._version()
        )
        self.storage.claims.put(made)

    def put_volume(self) -> None:
        name = self._one_of(VOLUMES)
        legacy = storage_objects.aws_disk(name).aws_elastic_block_store
        source: dict[str, Any] = {"aws_elastic_block_store": legacy} if self._coin() else {}
        self.storage.volumes.put(
            volume_scheduling.volume(
                name,
                reach=self._one_of([None, [in_zones("a")], [on_hosts("n1", "n2")]]),
                size=self._one_of(["1Gi", "5Gi"]),
                version=self._version(),
                **source,
            )
        )

    def remove_volume(self) -> None:
        self.storage.volumes.remove(volume_scheduling.volume(self._one_of(VOLUMES)))

    def put_csi_node(self) -> None:
        name = self._one_of(NODES)
        made = storage_objects.csi_node(name, {DRIVER: self._one_of([None, 0, 1])})
        if self._coin():
            made = volume_scheduling.csi_node(name, migrated="kubernetes.io/aws-ebs")
        self.storage.csi_nodes.put(made)

    def change_an_attachment(self) -> None:
        made = attachment(
            "x", node=self._one_of(NODES), volume=self._one_of(VOLUMES), attacher=DRIVER
        )
        (self.storage.attachments.remove if self._coin() else self.storage.attachments.put)(made)

    def put_capacity(self) -> None:
        zone, size = self._one_of([None, "a", "b"]), self._one_of(["1Gi", "9Gi"])
        self.storage.capacities.put(volume_scheduling.capacity(f"in-{zone}", zone=zone, size=size))

    def put_class(self) -> None:
        mode = self._one_of(["WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate"])
        provisioner = self._one_of([DRIVER, DRIVER, "other.example.com"])
        self.storage.classes.put(
            volume_scheduling.storage_class(mode=mode, provisioner=provisioner)
        )

    # --- devices ------------------------------------------------------------------------------

    def put_slice(self) -> None:
        made = [
            device(name, numa=self.random.randrange(2), taints=[taint()] if self._coin() else ())
            for name in self.random.sample("abcd", self.random.randrange(1, 4))
        ]
        where = self._one_of(NODES) if self.random.random() < 0.8 else None
        reach: dict[str, Any] = {"everywhere": True} if self._coin() else {"selector": ON_SSD}
        fill(
            self.cluster,
            slice_of(
                f"slice-{where}",
                *made,
                node=where,
                generation=self.random.randrange(1, 3),
                slices=self._one_of([1, 1, 1, 2]),
                **({} if where else reach),
            ),
        )

    def remove_slice(self) -> None:
        self.devices.slices.remove(slice_of(f"slice-{self._one_of(NODES)}"))

    def change_a_device_claim(self) -> None:
        """Devices are taken and given back, by claims of others and by decisions."""
        name = f"other-{self.random.randrange(3)}"
        got = allocation(result(self._one_of("abcd"), self._one_of(NODES)))
        if self._coin():
            if not self.devices.claims.drop(name):
                self.devices.claims.signal(name, got)
            return
        made = claim(name, version=self._version())
        taken = allocated(made, *got.devices.results)
        self.devices.claims.put(taken if self._coin() else made)

    def change_a_taint_rule(self) -> None:
        rules = self.devices.taint_rules
        made = taint_rule(device_name=self._one_of("abcd"))
        (rules.remove if self._coin() else rules.put)(made)

    def change_a_device_class(self) -> None:
        resource = GPU if self._coin() else None
        with self.views.fails(self._one_of(["", "ExtendedResources"])):
            fill(self.cluster, device_class(resource=resource, created=self._version()))

    def count_devices(self) -> None:
        with self.views.fails(self._failing_one()):
            counts = self.counted.of(GPU)
            if counts is not None:
                counts.at(slice(0, self.cluster.table.size))

    # --- questions ----------------------------------------------------------------------------

    def _failing_one(self) -> str:
        """Choose a kind of view, of those that have something to catch up with."""
        alive = [view for each in self.views.alive if (view := each()) is not None]
        behind = {type(view).__name__ for view in alive if view.is_known and _is_behind(view)}
        if self.views.preferred in behind and self._coin():
            return self.views.preferred
        return self._one_of(sorted(behind)) if behind and self._coin() else ""

    def schedule(self, *, place: bool = True) -> None:
        made = self._pod([0, 5, 10]) if self.random.random() < 0.6 else self._preempting()
        with self.views.fails(self._failing_one()):
            decision = self.cycle.schedule(self.lab.framework, self.lab.pending(made))
            if decision.node_name and place:
                self.put_pod(made, decision.node_name)

    def stack_pods(self) -> None:
        """Ask what some rows would be worth with more pods."""
        info, table = self.lab.pending(self._pod([0])), self.cluster.table
        plan = self.lab.framework.evaluator.plans.plan(info.signature.row_signature)
        with self.views.fails(self._failing_one()):
            stacked = plan.stacked(info.requests)
            stacked.refresh()
            for _ in range(self.random.randrange(1, 12)):
                stacked.total(self.random.randrange(table.size), self.random.randrange(3))

    def try_out(self) -> None:
        """Let things be otherwise for a while, in which views may be asked."""
        with self.cluster.transaction() as tx:
            for _ in range(self.random.randrange(1, 4)):
                if self._coin():
                    zone = f"new-{self._version()}"
                    tx.put_node(self._node(self._one_of(NODES), zone=zone, cpu="3"))
                elif self._coin() and self.placed:
                    tx.remove(self._one_of(self.placed))
                else:
                    tx.place(self.lab.pending(self._pod([0, 5])), self._one_of(NODES))
            if self._coin():
                self.schedule(place=False)
            if self._coin():
                self.views.validate()

    def look_at_the_page(self) -> None:
        with self.views.fails(self._one_of(["", "NodeColumns"])):
            self.page.refresh()


def _is_behind(view: View) -> bool:
    return view.has_stamp or view._read != tuple(log.position for log in view._logs)


def live(views: Views, *, seed: int, steps: int) -> None:
    """Let a cluster live through some steps, and compare all views in the end."""
    with views.followed():
        life = Life(views, seed)
        for _ in range(steps):
            life.step()
        views.validate()


@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 150))
@settings(max_examples=60)
def test_views_are_what_building_them_anew_gives(seed: int, steps: int) -> None:
    live(Views(), seed=seed, steps=steps)


def live_often(views: Views) -> None:
    """Let several clusters live."""
    for seed in range(200):
        live(views, seed=seed, steps=250)


def test_every_view_that_there_is_takes_part() -> None:
    views = Views()
    for seed in range(4):
        live(views, seed=seed, steps=150)
    assert views.made >= all_views()


# --- mutants ----------------------------------------------------------------------------------


def forgetting_a_change(kind: type[View]) -> dict[str, Any]:
    """The last key of the changes is lost, or every other call of a view that is pushed to."""
    if kind.update is View.update:
        if not hasattr(kind, "add"):
            return {}
        added, calls = kind.add, [0]

        def add(view: Any, *change: Any) -> None:
            calls[0] += 1
            if calls[0] % 2:
                added(view, *change)

        return {"add": add}
    updated = kind.update

    def update(view: View, *changes: list[Any]) -> bool:
        return updated(view, *(keys[:-1] for keys in changes))

    return {"update": update}


def advancing_too_early(kind: type[View]) -> dict[str, Any]:
    """What a view failed on counts as read."""
    refreshed = kind.refresh

    def refresh(view: View) -> bool:
        known = view.is_known
        try:
            return refreshed(view)
        except BrokenViewError:
            if known:
                view._read = tuple(log.position for log in view._logs)
                view._stamp = view.stamp()
            raise

    return {"refresh": refresh}


def ignoring_the_stamp(kind: type[View]) -> dict[str, Any]:
    """Nothing but the logs matters."""
    return {} if kind.stamp is View.stamp else {"stamp": lambda _view: None}


Mutation = Callable[[type[View]], dict[str, Any]]

MUTANTS: list[Any] = [
    pytest.param(kind, mutate, id=f"{kind.__name__} {mutate.__name__}")
    for kind in sorted(all_views(), key=lambda each: each.__name__)
    for mutate in (forgetting_a_change, advancing_too_early, ignoring_the_stamp)
    if mutate(kind)
]


@pytest.mark.parametrize(("kind", "mutate"), MUTANTS)
def test_a_mutant_is_found(
    kind: type[View], mutate: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, method in mutate(kind).items():
        monkeypatch.setattr(kind, name, method)
    with pytest.raises((InvariantError, LookupError, ValueError)):
        live_often(Views(preferred=kind.__name__))


def test_there_are_views_to_find() -> None:
    assert {Column, Memo, NodeColumns} <= all_views()
    assert len(all_views()) > 12
