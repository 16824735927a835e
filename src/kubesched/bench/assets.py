"""Locates etcd, kube-apiserver and kube-scheduler, as built by ``make envtest``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubesched import KUBERNETES_VERSION
from kubesched.errors import UsageError

CONTROL_PLANE = ("etcd", "kube-apiserver")
KUBE_SCHEDULER = "kube-scheduler"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of KUBEBUILDER_ASSETS, or the cache's, existing or not."""
    environment = os.environ if environment is None else environment
    if given := environment.get("KUBEBUILDER_ASSETS"):
        return Path(given).expanduser().absolute()
    cache = environment.get("KUBESCHED_CACHE")
    if not cache:
        cache = f"{environment.get('XDG_CACHE_HOME') or '~/.cache'}/kubesched"
    machine = platform.machine().lower()
    target = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    return Path(cache).expanduser().absolute() / "envtest" / f"{KUBERNETES_VERSION}-{target}"


def require(names: Iterable[str], where: Path) -> None:
    """Raise UsageError, with what to do, unless the folder has these binaries."""
    missing = [name for name in names if not os.access(where / name, os.X_OK)]
    if missing:
        raise UsageError(f"no {', '.join(missing)} in {where}: run `make envtest`")
