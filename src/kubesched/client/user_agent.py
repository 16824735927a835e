"""What we call ourselves in requests: as kube-scheduler does, with our version where its commit is.

    kube-scheduler/v1.37.1 (linux/amd64) kubesched/0.1.0/leader-election

The API server takes the part before the slash for the manager of fields, and puts the whole into
its audit log, where people look for the component.
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from kubesched import KUBERNETES_VERSION, __version__

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent(purpose: str) -> str:
    """Return the name under which requests for a purpose are made."""
    machine = platform.machine()
    system = f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}"
    return f"kube-scheduler/{KUBERNETES_VERSION} ({system}) kubesched/{__version__}/{purpose}"
