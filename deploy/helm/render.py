#!/usr/bin/env python3
"""Render the chart, so that tests can look at what it makes on machines without Helm.

    kubesched/ ──helm template, with each values file of rendered/──> rendered/*.yaml

The first line of each rendering holds the digest of everything that it was made from: a test
compares it, so a chart that was changed without a new rendering does not pass. After each change:

    python3 deploy/helm/render.py [--helm PATH]
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHART = HERE / "kubesched"
RENDERED = HERE / "rendered"
KUBE_VERSION = "1.37.1"
#: Rendering -> release and namespace; its values are beside it.
RELEASES = {"default": ("kubesched", "kube-system"), "everything": ("team", "scheduling")}


def values_of(name: str) -> Path:
    """The values that a rendering is made with."""
    return RENDERED / f"{name}.values.yaml"


def digest(name: str) -> str:
    """What a rendering is made from, in one line."""
    found = hashlib.sha256()
    files = sorted(file for file in CHART.rglob("*") if file.is_file())
    for file in (*files, values_of(name)):
        found.update(file.relative_to(HERE).as_posix().encode() + b"\0")
        found.update(file.read_bytes() + b"\0")
    return f"# made by deploy/helm/render.py from sha256:{found.hexdigest()}"


def render(helm: str, name: str) -> str:
    """Render the chart with the values of this name."""
    release, namespace = RELEASES[name]
    made = run(helm, "template", release, str(CHART), "--namespace", namespace, *_options(name))
    return f"{digest(name)}\n{made}"


def run(helm: str, *arguments: str) -> str:
    """Run helm; return what it printed, or end with what it complained of."""
    command = (helm, *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    except OSError as failed:
        sys.exit(f"{helm}: {failed.strerror}; install Helm 3, or name it with --helm")
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}".strip())
    return done.stdout


def _options(name: str) -> tuple[str, ...]:
    return ("--kube-version", KUBE_VERSION, "--values", str(values_of(name)))


def main() -> None:
    """Lint the chart, and write all renderings."""
    parser = argparse.ArgumentParser(description="Render the chart into deploy/helm/rendered.")
    parser.add_argument("--helm", default="helm", help="the helm command, version 3")
    helm = parser.parse_args().helm
    for name in RELEASES:
        run(helm, "lint", "--strict", str(CHART), *_options(name))
        (RENDERED / f"{name}.yaml").write_text(render(helm, name))


if __name__ == "__main__":
    main()
