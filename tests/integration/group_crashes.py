"""Gangs through crashes, faults of the API server and lost nodes.

    gangs that compete ──> scheduler ──kill -9 at a random moment of their binding──> another one
                               └── through a proxy that refuses, or breaks, some of its requests

In the end every gang must be bound as a whole, or not at all, within `SETTLED_SECONDS`. The gangs
are more than there is room for, so the room of one that was interrupted is wanted by others. After
the loss of a node, whose pods are deleted and made anew, there is room for all.

Many crashes: ``python -m tests.integration.group_crashes --seed 1 --crashes 1000``
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kubesched.bench import assets
from tests.support.waiting import stays, until

from .control_plane import ControlPlane
from .faulty_server import Proxy, serving
from .pod_groups import GATES, RUNTIME_CONFIG, create_gang, gang_member
from .scheduler_process import (
    all_pods,
    assert_no_node_is_overcommitted,
    configuration,
    node,
    pods_path,
    run_scheduler,
)

NAMESPACE = "crashes"
NODES = 8
#: Members of a gang, each of which takes a quarter of a node.
SIZE = 8
#: So long a gang may be bound in part after the scheduler that comes next has begun.
SETTLED_SECONDS = 60.0
#: What a start may take on a busy machine.
START_SECONDS = 90.0
#: So long the API server may handle a binding whose sender is dead.
LATE_BINDING_SECONDS = 2.0
FLAG = f"--feature-gates={GATES}"


@dataclass(frozen=True)
class Crash:
    """What is to happen."""

    gangs: int
    #: the scheduler is killed when it has sent so many bindings
    bindings: int
    #: share of the bindings that the API server refuses with 500
    refused: float
    #: whether connections break when the scheduler is killed
    breaks: bool
    loses_node: bool

    @classmethod
    def drawn(cls, rng: random.Random) -> Crash:
        """Return a random one."""
        loses_node = rng.random() < 0.3
        # Four gangs fill all nodes.
        gangs = 3 if loses_node else rng.randint(5, 7)
        room = min(gangs, 4) * SIZE
        return cls(
            gangs=gangs,
            bindings=rng.randint(1, room - 1),
            refused=rng.choice([0.0, 0.0, 0.2]),
            breaks=rng.random() < 0.3,
            loses_node=loses_node,
        )


class CrashLab:
    """A control plane on which gangs are interrupted."""

    def __init__(self, plane: ControlPlane, proxy: Proxy, seed: int) -> None:
        self.plane = plane
        self._proxy = proxy
        self._rng = random.Random(seed)
        self._made = 0
        #: how often a gang was bound in part when the scheduler was killed
        self.interrupted = 0

    def crash(self) -> None:
        """Let one scheduler crash and another one go on; fail if a gang stays bound in part."""
        crash = Crash.drawn(self._rng)
        try:
            self._build(crash)
            self._run_until_killed(crash)
            self.interrupted += bool(self.in_part())
            if crash.loses_node:
                self._lose_node()
            with run_scheduler(self.plane, None, FLAG) as second:
                second.wait_for_log('"Sync completed"', seconds=START_SECONDS)
                self._wait_until_settled(crash)
            assert_no_node_is_overcommitted(self.plane)
        except BaseException as error:
            error.add_note(f"{crash}: {self.bound_by_gang()}")
            raise
        finally:
            self._clear()

    def _build(self, crash: Crash) -> None:
        nodes = [node(f"n{number}") for number in range(NODES)]
        self.plane.create_many("/api/v1/nodes", nodes)
        for number in range(crash.gangs):
            create_gang(self.plane, NAMESPACE, f"g{number}", SIZE)
        pods = [
            gang_member(f"g{number}-{place}", f"g{number}", cpu="1")
            for number in range(crash.gangs)
            for place in range(SIZE)
        ]
        self.plane.create_many(pods_path(NAMESPACE), pods)

    def _run_until_killed(self, crash: Crash) -> None:
        chance, bindings = random.Random(self._rng.random()), count(1)
        with run_scheduler(self.plane, configuration(self._proxy.kubeconfig()), FLAG) as first:

            def refuse(method: str, path: str) -> int | None:
                if method != "POST" or not path.endswith("/binding"):
                    return None
                number = next(bindings)
                if number == crash.bindings:
                    if crash.breaks:
                        self._proxy.break_connections()
                    first.kill()
                # What a dead scheduler has sent and the proxy has not read yet is lost with it.
                return 500 if number > crash.bindings or chance.random() < crash.refused else None

            self._proxy.refuse = refuse
            until(lambda: not first.is_running, seconds=START_SECONDS)

    def _lose_node(self) -> None:
        """Delete a node and its pods, and make them anew: as controllers do."""
        name = f"n{self._rng.randrange(NODES)}"
        self.plane.request("DELETE", f"/api/v1/nodes/{name}")
        # The API server may still be handling bindings of the dead scheduler, and does not ask
        # whether their node exists: their pods are orphans, too.
        quiet = time.monotonic() + LATE_BINDING_SECONDS
        while time.monotonic() < quiet:
            if self._replace_orphans(name):
                quiet = time.monotonic() + LATE_BINDING_SECONDS
            time.sleep(0.1)

    def _replace_orphans(self, name: str) -> int:
        """Delete the pods of a lost node, and make them anew; return how many there were."""
        pods = all_pods(self.plane, NAMESPACE)
        orphans = [each for each in pods if each["spec"].get("nodeName") == name]
        for each in orphans:
            old = each["metadata"]["name"]
            self.plane.request("DELETE", pods_path(NAMESPACE, old), {"gracePeriodSeconds": 0})
            self._made += 1
            group = old.partition("-")[0]
            again = gang_member(f"{group}-again-{self._made}", group, cpu="1")
            self.plane.request("POST", pods_path(NAMESPACE), again)
        return len(orphans)

    def _wait_until_settled(self, crash: Crash) -> None:
        # As many gangs as there is room for.
        want = min(crash.gangs, 4) * SIZE

        def settled() -> bool:
            return sum(self.bound_by_gang().values()) == want and not self.in_part()

        until(settled, seconds=SETTLED_SECONDS, every=0.1)
        stays(settled, seconds=0.5)

    def bound_by_gang(self) -> Counter[str]:
        """Return how many members of each gang have a node."""
        return Counter(
            each["spec"]["schedulingGroup"]["podGroupName"]
            for each in all_pods(self.plane, NAMESPACE)
            if each["spec"].get("nodeName")
        )

    def in_part(self) -> list[str]:
        """Return the gangs that are bound in part."""
        return [name for name, count in self.bound_by_gang().items() if 0 < count < SIZE]

    def _clear(self) -> None:
        self.plane.purge(pods_path(NAMESPACE))
        self.plane.purge(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups")
        self.plane.purge("/api/v1/nodes")


def crash_often(binaries: Path, *, seed: int, crashes: int, tell: bool = False) -> CrashLab:
    """Let schedulers crash; return the laboratory, which has counted."""
    with ExitStack() as stack:
        plane = ControlPlane(binaries, feature_gates=GATES, runtime_config=RUNTIME_CONFIG)
        stack.enter_context(plane)
        plane.create_namespace(NAMESPACE)
        lab = CrashLab(plane, stack.enter_context(serving(plane)), seed)
        for number in range(1, crashes + 1):
            lab.crash()
            if tell:
                print(f"{number} crashes, {lab.interrupted} amid a binding", flush=True)
    return lab


def main() -> int:
    """Let as many schedulers crash as the caller likes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crashes", type=int, default=1000)
    arguments = parser.parse_args()
    crash_often(assets.folder(), seed=arguments.seed, crashes=arguments.crashes, tell=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
