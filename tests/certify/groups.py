"""Groups: gangs, topology, priorities, competing groups, late members, trees of groups.

    World ──┬──> API server, kube-scheduler ──> outcome of each pod and each group ─┐
            └──> API server, ours ────────────> outcome of each pod and each group ─┴─> the same?

Both start when everything waits, so they see the same queue. The outcome of a pod is its node, or
its condition word for word; of a group, its condition. kube-scheduler takes placements in a random
order: what it says of the first of several is left out. It draws among equal ones, too: where it
does not decide alike twice, ours must have decided as kube-scheduler did once. What preemption came
to, it says as often as there are groups that failed with their parent; here, once counts.

Whether it tries a group once more while victims terminate depends on how fast it evicted them, so
the text about that is left out as well. And victims that end at once may be gone when a scheduler
gets to the next group, or may not, if it decides faster: a world in which that makes a difference
is played once more with victims that end only between steps.

Pods of no group are there to compete. Ours tries them again only where that may help, so what is
said of them may be older. And where kube-scheduler nominated pods and lets them wait although their
victims are gone (no filter had rejected them, so no event wakes them), ours may have bound them.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.integration.control_plane import MERGE_PATCH, ControlPlane, JsonObject, PlaneApiError
from tests.integration.scheduler_process import configuration, node, pod, profile, run_scheduler
from tests.support.waiting import until

from .documented import NOMINATED_RETRY
from .drawn_groups import (
    BUDGETS,
    COMPOSITES,
    GATE_SETS,
    NAMESPACE,
    NEVER,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITIES,
    RandomGroups,
    World,
    Write,
)
from .shrinking import smallest
from .theme import Difference, Theme

#: Gates of the API servers.
SERVED_GATES = sorted({gate for gates in GATE_SETS for gate in gates})
#: So long nothing may change: longer than a small group backs off.
QUIET_SECONDS = 2.5
#: So long a scheduler may take until it has tried everything once, on a busy machine.
START_SECONDS = 90.0
#: Then what differs is taken for a difference.
PATIENCE_SECONDS = 15.0
#: How often kube-scheduler is asked again before ours is said to differ.
REPEATS = 4

DIFFERENT = "different"
SENTINEL = "zz-sentinel"
BOUND = "PodScheduled=True : "
CONDITION = "PodGroupInitiallyScheduled"

#: Stands for what is said of a placement, where there are several.
SOME = "(of some placement)"
_FIRST = re.compile(
    r"(?<=0/)([2-9]|\d\d+) placements are available, first placement status: .*?"
    r"(?=, pod group preemption|, deallocation|$)"
)
_UNDER_WAY = re.compile(
    r".*pod group preemption: (found a placement for podgroup, preempting \d+ victims"
    r"|ongoing preemption on nominated nodes)"
)
_REPEATED = re.compile(r"(, pod group preemption: .*?)\1+$")

#: What became of everything: pods and groups by name, pieces of text.
Outcome = dict[str, tuple[str, ...]]


class Side:
    """One API server with one of the two schedulers."""

    def __init__(self, plane: ControlPlane, *, ours: bool) -> None:
        self.plane = plane
        self.ours = ours

    def prepare(self) -> None:
        """Create what all worlds have."""
        self.plane.create_namespace(NAMESPACE)
        for name, value in PRIORITIES.items():
            for suffix, policy in (("", "PreemptLowerPriority"), (NEVER, "Never")):
                meta = {"name": name + suffix}
                body = {"metadata": meta, "value": value, "preemptionPolicy": policy}
                self.plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)

    def build(self, world: World) -> None:
        """Create what is there before a scheduler starts."""
        mark = {"example.com/sentinel": "1"}
        taints = [{"key": "sentinel", "effect": "NoSchedule"}]
        self.plane.request("POST", NODES, node("zz-sentinel", labels=mark, taints=taints))
        self.apply(world.before)

    def apply(self, writes: Iterable[Write]) -> None:
        """Change the cluster; then create a pod that is bound after all that can be tried."""
        for write in writes:
            # The object may be gone, evicted or of another kind; it then is so on both sides.
            with contextlib.suppress(PlaneApiError):
                is_patch = write.method == "PATCH"
                kind = MERGE_PATCH if is_patch else "application/json"
                self.plane.request(write.method, write.path, write.body, content_type=kind)
        with contextlib.suppress(PlaneApiError):
            self.plane.request("DELETE", f"{PODS}/{SENTINEL}", {"gracePeriodSeconds": 0})
        last = pod(
            SENTINEL,
            nodeSelector={"example.com/sentinel": "1"},
            tolerations=[{"operator": "Exists"}],
        )
        last["spec"]["priority"] = None
        self.plane.request("POST", PODS, last)

    def finish_victims(self) -> None:
        """End pods that are being deleted, and let bound ones start, as kubelets would."""
        for each in self.plane.request("GET", PODS)["items"]:
            metadata, name = each["metadata"], each["metadata"]["name"]
            if "deletionTimestamp" in metadata:
                self.plane.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            elif each["spec"].get("nodeName") and "startTime" not in each["status"]:
                status = {"status": {"startTime": "2026-01-02T00:00:00Z"}}
                path = f"{PODS}/{name}/status"
                self.plane.request("PATCH", path, status, content_type=MERGE_PATCH)

    @contextlib.contextmanager
    def scheduler(self, gates: Iterable[str]) -> Iterator[None]:
        """Run the scheduler."""
        plugins = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 1000}]}}
        config = configuration(
            self.plane.scheduler_kubeconfig,
            profile(plugins=plugins),
            podInitialBackoffSeconds=1,
            podMaxBackoffSeconds=1,
            percentageOfNodesToScore=100,
        )
        flag = "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates)
        if self.ours:
            run: contextlib.AbstractContextManager[object] = run_scheduler(self.plane, config, flag)
        else:
            # Without this gate its informers report what is there by name, and not in random order.
            run = self.plane.run_kube_scheduler(config, f"{flag},WatchListClient=false")
        with run:
            yield

    def outcome(self) -> Outcome | None:
        """Return what became of everything; None as long as something was not tried."""
        found: Outcome = {}
        for each in self.plane.request("GET", POD_GROUPS)["items"]:
            found[f"group {each['metadata']['name']}"] = _group_outcome(each)
        for each in self.plane.request("GET", PODS)["items"]:
            name = each["spec"].get("schedulingGroup", {}).get("podGroupName", "")
            group = found.get(f"group {name}", ())
            undetermined = any(SOME in text for text in group)
            outcome = _pod_outcome(each, undetermined=undetermined)
            found[f"pod {each['metadata']['name']}"] = outcome
            # kube-scheduler takes back what it wrote if it tries again before it has seen it.
            if group and BOUND in outcome and (not self.ours or f"{CONDITION}=True" in group[0]):
                found[f"group {name}"] = ("scheduled once",)
        sentinel = found.pop(f"pod {SENTINEL}", ("",))
        return found if sentinel[0] else None

    def has_tried_all(self) -> bool:
        """Tell whether the pod is bound that comes last."""
        return self.outcome() is not None

    def clear(self) -> None:
        """Delete what the world had."""
        for path in (PODS, POD_GROUPS, COMPOSITES, BUDGETS, NODES):
            self.plane.purge(path)


def _pod_outcome(each: JsonObject, *, undetermined: bool) -> tuple[str, ...]:
    status, node_name = each["status"], each["spec"].get("nodeName", "")
    hidden = SOME if undetermined and not node_name else None
    if "schedulingGroup" not in each["spec"]:
        hidden = "(of a single pod)"
    conditions = [
        f"{c['type']}={c['status']} {c.get('reason', '')}: {hidden or _message(c)}"
        for c in status.get("conditions", [])
    ]
    ending = "ending" if "deletionTimestamp" in each["metadata"] else ""
    nominated = status.get("nominatedNodeName", "")
    return (node_name, ending, f"nominated {nominated}", *sorted(conditions))


def _group_outcome(each: JsonObject) -> tuple[str, ...]:
    return tuple(
        f"{c['type']}={c['status']} {c['reason']}: {_of_group(_message(c))}"
        for c in (each.get("status") or {}).get("conditions", [])
    )


def _of_group(message: str) -> str:
    return _UNDER_WAY.sub(f"{SOME} preempting", _FIRST.sub(SOME, message))


def _message(condition: JsonObject) -> str:
    return _REPEATED.sub(r"\1", str(condition.get("message", "")))


class GroupTheme(Theme):
    """Plays worlds on two API servers."""

    name = "groups"

    def __init__(self, assets: Path) -> None:
        super().__init__(assets)
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(ThreadPoolExecutor(max_workers=2))

    def __enter__(self) -> Self:
        """Start two API servers that serve groups."""
        self.theirs, self.ours = (self._side(ours=ours) for ours in (False, True))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _side(self, *, ours: bool) -> Side:
        plane = ControlPlane(
            self._assets,
            feature_gates=",".join(f"{gate}=true" for gate in SERVED_GATES),
            runtime_config="scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
        )
        side = Side(self._stack.enter_context(plane), ours=ours)
        side.prepare()
        return side

    def compare(self, seed: int) -> None:
        """Play the world of a seed; each group, and each pod of none, is a case."""
        world = RandomGroups(seed).world()
        expected, found = self.play(world)
        kind = self._sameness(world, expected, found)
        for outcome in _cases(expected[0]):
            self.tally.outcomes[f"{outcome}, {kind}"] += 1
        if kind == DIFFERENT:
            self.tally.differences.append(self._shrunk(seed, world, expected, found))

    def _sameness(self, world: World, expected: list[Outcome], found: list[Outcome]) -> str:
        """Say how the outcomes are related; play the world again where they differ."""
        if expected == found:
            return "the same"
        if _is_sooner(expected[-1], found[-1]):
            self.tally.documented[NOMINATED_RETRY] += 1
            return "bound sooner"
        others = [expected]
        for _ in range(REPEATS):
            another, again = self.play(world)
            others.append(another)
            if found in others or again in others:
                return "among several outcomes"
        slow = world.with_slow_victims()
        if slow.before != world.before:
            another, again = self.play(slow)
            if another == again or _is_sooner(another[-1], again[-1]):
                return "the same if victims take time to end"
        return DIFFERENT

    def _shrunk(
        self, seed: int, world: World, expected: list[Outcome], found: list[Outcome]
    ) -> Difference:
        """Leave out what makes no difference to the difference."""
        items = [(0, write) for write in world.before]
        items += [(1 + n, write) for n, step in enumerate(world.steps) for write in step]

        def world_of(some: list[tuple[int, Write]]) -> World:
            steps = [[w for at, w in some if at == 1 + n] for n in range(len(world.steps))]
            return World(world.gates, [w for at, w in some if at == 0], [s for s in steps if s])

        def differs(some: list[tuple[int, Write]]) -> bool:
            smaller = world_of(some)
            played = (self.play(smaller) for _ in range(2))
            return all(
                theirs != ours and not _is_sooner(theirs[-1], ours[-1]) for theirs, ours in played
            )

        # Where kube-scheduler decides otherwise each time, there is nothing to shrink by.
        left = world_of(smallest(items, differs)) if differs(items) else world
        again = self.play(left)
        if again[0] != again[1]:
            world, (expected, found) = left, again
        step = next(
            (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
            0,
        )
        writes = [*world.before, *(each for later in world.steps for each in later)]
        theirs, ours = _only_different(expected[step], found[step])
        return Difference(
            self.name,
            seed,
            [{"gates": list(world.gates)}, *(each._asdict() for each in writes)],
            f"after step {step}: {theirs}",
            f"after step {step}: {ours}",
        )

    def play(self, world: World) -> tuple[list[Outcome], list[Outcome]]:
        """Return the outcomes on both sides: at first, and after each step."""
        outcomes: list[tuple[Outcome, Outcome]] = []
        sides = (self.theirs, self.ours)
        list(self._pool.map(lambda side: side.build(world), sides))
        try:
            with ExitStack() as stack:
                for side in sides:
                    stack.enter_context(side.scheduler(world.gates))
                outcomes.append(self._settled())
                for step in (*world.steps, ()):
                    if outcomes[-1][0] != outcomes[-1][1]:
                        break
                    for side in sides:
                        side.finish_victims()
                        side.apply(step)
                    outcomes.append(self._settled())
        finally:
            list(self._pool.map(lambda side: side.clear(), sides))
        return [theirs for theirs, _ in outcomes], [ours for _, ours in outcomes]

    def _settled(self) -> tuple[Outcome, Outcome]:
        """Wait until both sides rest; sooner if they agree."""
        for side in (self.theirs, self.ours):
            until(side.has_tried_all, seconds=START_SECONDS, every=0.2)
        deadline = time.monotonic() + PATIENCE_SECONDS
        last: tuple[Outcome | None, Outcome | None] = None, None
        since = time.monotonic()
        while True:
            now = self.theirs.outcome(), self.ours.outcome()
            if now != last:
                last, since = now, time.monotonic()
            quiet = time.monotonic() - since
            if time.monotonic() > deadline or (quiet > QUIET_SECONDS and now[0] == now[1]):
                break
            time.sleep(0.2)
        return last[0] or {}, last[1] or {}


def _is_sooner(theirs: Outcome, ours: Outcome) -> bool:
    """Tell whether all pods that differ are nominated there, and bound to that node here.

    What is said of groups is then about different attempts.
    """
    different = [
        name
        for name in {*theirs, *ours}
        if name.startswith("pod ") and theirs.get(name) != ours.get(name)
    ]
    return bool(different) and all(
        name in theirs
        and name in ours
        and theirs[name][2:3] == (f"nominated {ours[name][0]}",)
        and not theirs[name][0]
        for name in different
    )


def _cases(outcome: Outcome) -> list[str]:
    """Say of each group, and of each pod of none, what became of it at first."""
    found = []
    for name, texts in outcome.items():
        if name.startswith("group "):
            placed = any("scheduled once" in text or f"{CONDITION}=True" in text for text in texts)
            found.append("group placed" if placed else "group waits")
        elif name.startswith("pod single-"):
            found.append("pod placed" if texts[0] else "pod waits")
    return found


def _only_different(theirs: Outcome, ours: Outcome) -> tuple[Outcome, Outcome]:
    names = [name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name)]
    gone = ("gone",)
    return (
        {name: theirs.get(name, gone) for name in sorted(names)},
        {name: ours.get(name, gone) for name in sorted(names)},
    )
