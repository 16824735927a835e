"""Label values about build, version and platform."""

from __future__ import annotations

import platform
import sys
from typing import Final

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.config.features import (
    BINARY_VERSION,
    OLDEST_EMULATED_VERSION,
    FeatureGates,
    Version,
)

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
    emulated = gates.emulated_version
    compatible = max((emulated[0], emulated[1] - 1), OLDEST_EMULATED_VERSION)
    binary = KUBERNETES_VERSION.removeprefix("v")
    return _COMPONENT, binary, _dotted(emulated), _dotted(compatible)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
