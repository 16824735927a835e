"""Fuzz for some minutes, and say what came of it.

    python -m tests.fuzz --minutes 10 --target cel --target quantity

The minutes are divided among the targets. An input that breaks something is written to a file,
whose name is printed; `--input FILE` runs a target on it alone. What reached new code is kept in
the folder `--corpus`, and where the next run starts.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import subprocess
import sys
import time
import traceback
from pathlib import Path

from msgspec import Struct

from . import mutation
from .target import FuzzTarget
from .targets import all_targets

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubesched" / "fuzz"
#: An input that takes longer, or a process that needs more memory, is a finding.
_TIMEOUT_S = 25
_MEMORY_MB = 2048
_STATUS = re.compile(r"#(\d+)\s+\w+.*?cov: (\d+) ft: (\d+) corp: (\d+)")
_WRITTEN = re.compile(r"Test unit written to (\S+)")


class Outcome(Struct):
    """What came of a target."""

    executions: int = 0
    #: of instrumented code; 0 if nothing was measured
    branches: int = 0
    corpus: int = 0
    cpu_s: float = 0.0
    findings: list[str] = []

    def __str__(self) -> str:
        reached = f", {self.branches} branches, corpus of {self.corpus}" if self.branches else ""
        found = f", FOUND {' '.join(self.findings)}" if self.findings else ""
        minutes = self.cpu_s / 60
        return f"{minutes:.1f} min of CPU, {self.executions} executions{reached}{found}"


def guided(target: FuzzTarget, seconds: float, folder: Path) -> Outcome:
    """Fuzz by coverage, in a process of its own."""
    corpus, found = folder / target.name, folder / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = folder / f"{target.name}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words if word))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.guided", target.name, str(corpus)),
            f"-max_total_time={max(1, round(seconds))}",
            f"-max_len={target.max_bytes}",
            f"-timeout={_TIMEOUT_S}",
            f"-rss_limit_mb={_MEMORY_MB}",
            f"-dict={words}",
            f"-artifact_prefix={found}/{target.name}-",
        ],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = Outcome(
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        findings=_WRITTEN.findall(process.stdout),
    )
    for status in _STATUS.finditer(process.stdout):
        outcome.executions, outcome.branches = int(status[1]), int(status[2])
        outcome.corpus = int(status[4])
    if process.returncode:
        print(process.stdout[-4000:], flush=True)
        outcome.findings = outcome.findings or [f"exit code {process.returncode}"]
    return outcome


def unguided(target: FuzzTarget, seconds: float, folder: Path) -> Outcome:
    """Fuzz by chance, where there is no atheris."""
    outcome, deadline, seed = Outcome(), time.monotonic() + seconds, time.time_ns()
    began = time.process_time()
    while time.monotonic() < deadline and not outcome.findings:
        seed += 1
        for data in mutation.inputs(target, seed, 1000):
            outcome.executions += 1
            try:
                target.check(data)
            except Exception:  # noqa: BLE001 (whatever it is, it is a finding)
                traceback.print_exc()
                file = folder / "found" / f"{target.name}-{seed}-{outcome.executions}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
                outcome.findings.append(str(file))
                break
            if time.monotonic() > deadline:
                break
    outcome.cpu_s = time.process_time() - began
    return outcome


def _escaped(word: bytes) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02X}"
        for byte in word[:120]
    )


def main() -> int:
    """Fuzz; return 1 if something was found."""
    targets = all_targets()
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--target", action="append", choices=list(targets), metavar="NAME")
    parser.add_argument("--list", action="store_true", help="list the targets")
    parser.add_argument("--input", type=Path, help="run the target on this file alone")
    parser.add_argument("--corpus", type=Path, default=_CACHE)
    given = parser.parse_args()
    if given.list:
        print("\n".join(targets))
        return 0
    chosen = [targets[name] for name in given.target or targets]
    if given.input is not None:
        for target in chosen:
            target.check(given.input.read_bytes())
        return 0
    fuzz = guided if importlib.util.find_spec("atheris") else unguided
    if fuzz is unguided:
        print("without atheris: inputs are made by chance, and not guided by coverage", flush=True)
    findings = 0
    for target in chosen:
        outcome = fuzz(target, given.minutes * 60 / len(chosen), given.corpus)
        findings += len(outcome.findings)
        print(f"{target.name}: {outcome}", flush=True)
    print(f"{len(chosen)} targets, {findings} findings", flush=True)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
