"""An API server in memory, with nodes and a kubelet that only pretend.

    HTTP ──▶ app ──▶ registry ──▶ store ──▶ watchers ──▶ HTTP
                                    ▲ │
                                    │ ▼
                          kubelet, namespaces (same loop, no HTTP)

For trying things out with one command and a stock kubectl, for quick simulation, and for tests that
start in milliseconds. For what it offers it behaves as kube-apiserver does, which one suite of
contract tests checks against both.
"""

from __future__ import annotations

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.kubelet import RUN_SECONDS, KubeletOptions
from kubesched.embedded.nodes import NodeTemplate
from kubesched.embedded.pods import Admission
from kubesched.embedded.refusals import StatusError

__all__ = [
    "RUN_SECONDS",
    "Admission",
    "EmbeddedCluster",
    "KubeletOptions",
    "NodeTemplate",
    "StatusError",
]
