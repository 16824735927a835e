"""Run schedulers through faults and print what came of it.

python -m tests.chaos --seconds 300 --seeds 1 2 3 [--schedulers kubesched kube-scheduler]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Final

from kubesched.bench import assets

from .run import Outcome, run
from .schedulers import OURS, UPSTREAM

HEADER: Final = (
    "| scheduler | replicas | seed | faults | disruptions | changes | bound "
    "| settled after | in part | findings |\n|---|---|---|---|---|---|---|---|---|---|"
)


def row(outcome: Outcome) -> str:
    """Return a line of the table."""
    settled = "never" if outcome.settled_s is None else f"{outcome.settled_s:.1f} s"
    return (
        f"| {outcome.scheduler} | {outcome.replicas} | {outcome.seed} "
        f"| {outcome.faults.total()} | {outcome.disruptions.total()} | {outcome.steps} "
        f"| {outcome.bound} | {settled} | {outcome.in_part_s:.1f} s | {len(outcome.findings)} |"
    )


def details(outcomes: list[Outcome]) -> list[str]:
    """Return which faults there were, and every finding."""
    lines = []
    for name in dict.fromkeys(each.scheduler for each in outcomes):
        of_it = [each for each in outcomes if each.scheduler == name]
        met = sum((each.faults + each.disruptions for each in of_it), Counter[str]())
        lines.append(f"{name} met: " + ", ".join(f"{n} x {what}" for what, n in met.most_common()))
        ended, tracebacks = sum(x.ended for x in of_it), sum(x.tracebacks for x in of_it)
        lines.append(f"{name} ended by itself {ended} times, and logged {tracebacks} tracebacks")
        for each in of_it:
            lines += [f"{name}, seed {each.seed}: {finding}" for finding in each.findings]
    return lines


def main() -> int:
    """Run, print, and return 1 if our scheduler did what it must not do."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults in each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--schedulers", nargs="+", choices=[OURS, UPSTREAM], default=[OURS, UPSTREAM]
    )
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    print(HEADER, flush=True)
    for seed in given.seeds:
        for replicas in given.replicas:
            for scheduler in given.schedulers:
                outcome = run(
                    assets.folder(),
                    seed=seed,
                    seconds=given.seconds,
                    scheduler=scheduler,
                    replicas=replicas,
                    tell=_progress,
                )
                _progress("")
                outcomes.append(outcome)
                print(row(outcome), flush=True)
    print("\n".join(["", *details(outcomes)]))
    ours = [each for each in outcomes if each.scheduler == OURS]
    return int(any(each.findings or each.settled_s is None for each in ours))


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
