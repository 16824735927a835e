"""Cost of recording metrics in a scheduling cycle, in CPU instructions.

    python -m benchmarks.metrics_instructions [--nodes 5000] [--pods 2400]

The same pods are placed on the same cluster with and without an observer, under Valgrind, which
counts instructions. These are not time, but independent of other load. It takes some minutes.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.metrics import framework_on, place

from kubesched.bench.decisions import roomy_cluster
from kubesched.config.features import FeatureGates
from kubesched.framework.observing import Observer
from kubesched.metrics.recorder import Metrics

TURNS = 3
COUNTED = "--counted"


def dump() -> None:
    """Write the counts since the last dump to a file."""
    subprocess.run(
        [shutil.which("callgrind_control") or "callgrind_control", "--dump", str(os.getpid())],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run_counted(nodes: int, pods: int) -> None:
    """Place pods by turns, without and with an observer; one dump each."""
    cluster = roomy_cluster(nodes, 1_000)
    observer = Observer(Metrics(FeatureGates.of()), "default-scheduler", timer=time.monotonic)
    both = framework_on(cluster, None), framework_on(cluster, observer)
    gc.collect()
    gc.disable()
    for framework in both:
        place(cluster, framework, 100)
    dump()
    for _ in range(TURNS):
        for framework in both:
            place(cluster, framework, pods)
            dump()


def counts_in(folder: Path) -> list[int]:
    """Return the instructions of each dump, in order."""
    dumps = sorted(folder.glob("out.*"), key=lambda each: int(each.suffix[1:]))
    found = (
        re.search(r"^(?:totals|summary): (\d+)", each.read_text(), re.MULTILINE) for each in dumps
    )
    return [int(match[1]) for match in found if match]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=2_400, help="of each turn")
    parser.add_argument(COUNTED, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.counted:
        run_counted(arguments.nodes, arguments.pods)
        return
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        parser.error("this needs valgrind")
    with tempfile.TemporaryDirectory() as folder:
        sizes = f"--nodes={arguments.nodes}", f"--pods={arguments.pods}"
        counting = "--tool=callgrind", f"--callgrind-out-file={folder}/out"
        myself = sys.executable, "-m", "benchmarks.metrics_instructions", COUNTED, *sizes
        subprocess.run([valgrind, "--quiet", *counting, *myself], check=True)
        # The first is the setup.
        counts = counts_in(Path(folder))[1:]
    for alone, observed in zip(counts[::2], counts[1::2], strict=False):
        each = alone / arguments.pods, observed / arguments.pods
        share = observed / alone - 1
        print(f"{each[0]:,.0f} instructions a pod, {each[1]:,.0f} when observed: {share:+.1%}")


if __name__ == "__main__":
    main()
