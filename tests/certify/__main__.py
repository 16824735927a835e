"""Compare for some minutes, and say what came of it.

python -m tests.certify --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from kubesched.bench import assets
from tests.integration.control_plane import ControlPlane

from .placements import Difference, PlacementTheme, Tally


def described(found: Difference) -> str:
    """Return a difference as one can try it again."""
    return "\n".join(
        [
            f"seed {found.seed}: kube-scheduler {found.theirs}; ours {found.ours}",
            f"profile: {json.dumps(found.profile)}",
            *(json.dumps(each) for each in found.manifests),
        ]
    )


def main() -> int:
    """Compare; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.certify", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the first cluster")
    given = parser.parse_args()
    deadline, seed, tally = time.monotonic() + given.minutes * 60, given.seed, Tally()
    with ControlPlane(assets.folder()) as plane:
        theme = PlacementTheme(plane, tally)
        while time.monotonic() < deadline:
            known = len(tally.differences)
            theme.compare(seed)
            for found in tally.differences[known:]:
                print(described(theme.shrink(found)), flush=True)
            counts = ", ".join(f"{what} {n}" for what, n in tally.outcomes.most_common())
            print(f"seed {seed}: {tally.outcomes.total()} pods: {counts}", flush=True)
            seed += 1
    print(
        f"{tally.outcomes.total()} pods on {seed - given.seed} clusters, "
        f"{len(tally.differences)} differences"
    )
    return int(bool(tally.differences))


if __name__ == "__main__":
    sys.exit(main())
