"""Let schedulers run for hours, and say whether they grow.

python -m tests.soak --hours 2
python -m tests.soak --hours 1 --pods-per-second 0 --output soak-idle

Exit code 0 if memory does not grow, 1 if it does, 2 if the run was too short to tell.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

from kubesched import output_file
from kubesched.bench import assets, schedulers
from kubesched.errors import ClientError, KubeschedError

from . import report
from .growth import Verdict
from .subject import Load, Subject, subject

WRITE_EVERY_S = 60.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = Load()
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--sample-every", type=float, default=10.0, help="seconds")
    parser.add_argument("--nodes", type=int, default=usual.nodes)
    parser.add_argument("--apps", type=int, default=usual.apps, help="of ten pods each")
    parser.add_argument("--pods-per-second", type=float, default=usual.pods_per_second)
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--schedulers", default=f"{schedulers.OURS},{schedulers.KUBE_SCHEDULER}")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build/soak"),
        help="the files' common name, without .json (default: %(default)s)",
    )
    return parser.parse_args()


async def soak(options: argparse.Namespace) -> Verdict:
    """Run, and say how; the verdict about the first scheduler."""
    candidates = schedulers.parse(options.schedulers, assets.folder())
    output_file.make_folder(options.output.parent)
    load = Load(options.nodes, options.apps, options.pods_per_second, options.seed)
    title = f"{load.pods_per_second:g} pods per second come and go, on {load.nodes} nodes"
    async with contextlib.AsyncExitStack() as stack:
        subjects: list[Subject] = []
        for candidate in candidates:
            subjects.append(await stack.enter_async_context(subject(candidate, load)))
            print(f"{candidate.name}: process {subjects[-1].process.popen.pid}", flush=True)
        try:
            await _sample(subjects, options, title)
        finally:
            report.write(options.output, subjects, title)
            for each in subjects:
                print(report.sentence(each), flush=True)
                print("  " + ", ".join(f"{n} {what}" for what, n in sorted(each.counts.items())))
        return subjects[0].verdict()


async def _sample(subjects: list[Subject], options: argparse.Namespace, title: str) -> None:
    began, ticks = time.monotonic(), 0
    while (minutes := (time.monotonic() - began) / 60) <= options.hours * 60:
        for each in subjects:
            if each.ended:
                continue
            try:
                await each.sample(minutes)
            except ClientError:
                each.counts["samples missed"] += 1
        if ticks % round(WRITE_EVERY_S / options.sample_every) == 0:
            report.write(options.output, subjects, title)
            print(f"{minutes:6.1f} minutes: " + "; ".join(map(_now, subjects)), flush=True)
        if subjects[0].ended:
            break
        ticks += 1
        await asyncio.sleep(max(0.0, began + ticks * options.sample_every - time.monotonic()))


def _now(of: Subject) -> str:
    if not of.samples:
        return f"{of.candidate.name}: no sample yet"
    last = of.samples[-1]
    return (
        f"{of.candidate.name} {last.rss_kb / 1024:.1f} MiB, {last.bound} pods, "
        f"p99 {last.p99_ms} ms, {last.cpu_ms_per_s:.0f} ms/s of CPU, etcd {last.etcd_mib:.0f} MiB"
    )


async def main() -> int:
    """Run, and end well on SIGTERM too."""
    work = asyncio.create_task(soak(arguments()))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        verdict = await work
    except asyncio.CancelledError:
        return 130
    except KubeschedError as failed:
        print(failed, file=sys.stderr)
        return 1
    return {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.TOO_SHORT: 2}[verdict]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
