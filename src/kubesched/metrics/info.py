"""Label values about build, version and platform."""

from __future__ import annotations

import platform
import sys
from typing import Final

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.config.features import BINARY_VERSION, FeatureGates, dotted

_COMPONENT: Final = "kube"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def build_labels() -> tuple[str, ...]:
    """Return the label values of ``kubernetes_build_info``.

    The version is that of the reproduced Kubernetes release, with ours after the plus sign, as in
    distributions of Kubernetes; the interpreter is in place of Go's version.
    """
    machine = platform.machine()
    return (
        str(BINARY_VERSION[0]),
        str(BINARY_VERSION[1]),
        f"{KUBERNETES_VERSION}+kubesched.{__version__}",
        *("", "", ""),  # commit, tree state and date: a Python package is not built from a tree
        f"python{platform.python_version()}",
        platform.python_implementation(),
        f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    )


def version_labels(gates: FeatureGates) -> tuple[str, ...]:
    """Return the label values of ``version_info``."""
    binary = KUBERNETES_VERSION.removeprefix("v")
    emulated, oldest_peer = gates.emulated_version, gates.min_compatibility_version
    return _COMPONENT, binary, dotted(emulated), dotted(oldest_peer)
