"""The share of a scheduler's time for recording metrics, or for out-of-tree plugins.

    py-spy record --pid PID --duration 30 --rate 500 --format raw --output profile.txt
    python benchmarks/profile_share.py metrics profile.txt
    python benchmarks/profile_share.py plugins profile.txt

A share of samples within one run is more reliable than the difference of two runs. Profile while
pods are bound in sequence, e.g. of
``kubesched bench PendingBasic --nodes 5000 --pods 30000 --precreate --schedulers ours``.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

#: Files whose functions serve only this purpose.
WHERE = {
    "metrics": (
        r"kubesched/metrics/|framework/observing|client/rest_metrics|scheduler/attempts"
        r"|scheduler/state_metrics|scheduler/timed_handler"
    ),
    "plugins": r"kubesched/plugin_loading/|scheduler/plugin_watches",
}
#: Wrappers: only their own lines count.
PASSING_ON = re.compile(r"on_(add|update|delete) \(.*timed_handler")
SHOWN = 12


def share(profile: Path, where: str) -> tuple[int, Counter[str]]:
    """Return the number of samples, and of those in a file by its outermost function."""
    total, found = 0, Counter[str]()
    for line in profile.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        total += int(count)
        hits = [
            frame
            for frame in frames
            if re.search(where, frame) and (frame is frames[-1] or not PASSING_ON.search(frame))
        ]
        if hits:
            found[hits[0].rpartition(":")[0]] += int(count)
    return total, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=WHERE)
    parser.add_argument("profile", type=Path, nargs="+", help="what py-spy wrote")
    arguments = parser.parse_args()
    for profile in arguments.profile:
        total, found = share(profile, WHERE[arguments.what])
        print(f"{profile}: {found.total() / total:.2%} of {total} samples")
        for function, count in found.most_common(SHOWN):
            print(f"  {count / total:6.2%}  {function})")


if __name__ == "__main__":
    main()
