"""The User-Agent header: kube-scheduler's, with our version in place of its commit.

    kube-scheduler/v1.37.1 (linux/amd64) kubesched/0.1.0/leader-election

The API server uses the part before the slash as the field manager, and logs the whole in its audit
log, where operators search for the component.
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from kubesched import KUBERNETES_VERSION, __version__

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent(purpose: str) -> str:
    """Return the User-Agent of requests for a purpose."""
    machine = platform.machine()
    system = f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}"
    return f"kube-scheduler/{KUBERNETES_VERSION} ({system}) kubesched/{__version__}/{purpose}"
