"""One run: a cluster, its schedulers, faults for some time, calm, and the judge's findings."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .churn import Churn, Unavailable
from .disruptions import Disruptions
from .faults import faulty_proxy
from .judge import Finding, Judge, two_writers
from .plane import GATES, RUNTIME_CONFIG, ChaosPlane, Clock
from .schedulers import LEASE_SECONDS, OURS, RENEW_SECONDS, Replica

#: Everything that fits has a node so long after the last fault.
SETTLED_SECONDS: Final = 90.0
#: So long nothing must change any more before the last state is judged.
QUIET_SECONDS: Final = 2.0
#: Between two changes of the cluster.
STEP_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    scheduler: str
    seed: int
    replicas: int
    seconds: float
    #: changes of the cluster, and pods that got a node
    steps: int
    bound: int
    faults: Counter[str]
    disruptions: Counter[str]
    #: from the last fault until every pod that fits had a node; None if that took too long
    settled_s: float | None
    #: the longest that a gang was bound in part
    in_part_s: float
    #: how often a scheduler ended by itself
    ended: int
    #: lines in logs of schedulers that report a bug
    tracebacks: int
    findings: tuple[Finding, ...]


def run(
    assets: Path,
    *,
    seed: int,
    seconds: float,
    scheduler: str = OURS,
    replicas: int = 1,
    bug: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run schedulers through faults; equal seeds draw equal faults and changes."""
    with ExitStack() as stack:
        plane = stack.enter_context(
            ChaosPlane(assets, feature_gates=GATES, runtime_config=RUNTIME_CONFIG)
        )
        churn, clock = Churn(plane, seed), Clock()
        churn.build()
        proxies = [
            stack.enter_context(faulty_proxy(plane, seed * 100 + number))
            for number in range(replicas)
        ]
        running = [
            Replica(
                plane,
                proxy.kubeconfig(),
                scheduler=scheduler,
                number=number,
                elects=replicas > 1,
                bug=bug,
            )
            for number, proxy in enumerate(proxies)
        ]
        for each in running:
            stack.callback(each.end)
            each.start()
        disruptions = Disruptions(plane, proxies, running, seed)
        for proxy in proxies:
            proxy.is_calm = False
        started = time.monotonic()
        while (passed := time.monotonic() - started) < seconds:
            tell(f"{passed:.0f} of {seconds:.0f} s, {churn.steps} changes")
            churn.step()
            disruptions.step()
            for each in running:
                each.keep_alive()
            _note(plane, clock)
            time.sleep(STEP_SECONDS)
        tell("no more faults: waiting until all pods that fit have a node")
        disruptions.end()
        for proxy in proxies:
            proxy.calm_down()
        settled_s = _settle(plane, churn, clock, running)
        tell("judging every state that etcd had")
        judge = Judge(clock.notes())
        judge.read(plane.history())
        judge.finish()
        writes, releases = [each.bindings for each in proxies], [each.releases for each in proxies]
        logs = [each.log.read_text(errors="replace") for each in running]
        return Outcome(
            scheduler=scheduler,
            seed=seed,
            replicas=replicas,
            seconds=seconds,
            steps=churn.steps,
            bound=judge.bound,
            faults=sum((each.met for each in proxies), Counter()),
            disruptions=disruptions.made,
            settled_s=settled_s,
            in_part_s=judge.longest_in_part,
            ended=sum(each.ended for each in running),
            tracebacks=sum(text.count("Traceback (most") + text.count("panic:") for text in logs),
            findings=(
                *judge.findings,
                *two_writers(writes, releases, LEASE_SECONDS - RENEW_SECONDS),
            ),
        )


def _settle(plane: ChaosPlane, churn: Churn, clock: Clock, running: list[Replica]) -> float | None:
    """Wait until everything has a node, and stays so; return how long the former took."""
    calm = time.monotonic()
    since: float | None = None
    is_restored = False
    while (now := time.monotonic()) - calm < SETTLED_SECONDS + QUIET_SECONDS:
        for each in running:
            each.keep_alive()
        try:
            if not is_restored:
                churn.restore()
                is_restored = True
                calm = time.monotonic()
            churn.tidy()
            is_settled = churn.settled()
        except Unavailable:
            is_settled = False
        _note(plane, clock)
        since = (since or now) if is_settled else None
        if since is not None and now - since >= QUIET_SECONDS:
            return max(since - calm, 0.0)
        time.sleep(0.1)
    return None


def _note(plane: ChaosPlane, clock: Clock) -> None:
    try:
        clock.note(plane.revision())
    except Unavailable:
        return
