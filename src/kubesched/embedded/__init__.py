"""An in-memory API server, with simulated nodes and a simulated kubelet.

    HTTP ──▶ app ──▶ registry ──▶ store ──▶ watchers ──▶ HTTP
                                    ▲ │
                                    │ ▼
                          kubelet, controllers (same loop, no HTTP)

For demos with a stock kubectl, for fast simulations, and for tests that start in milliseconds. What
it serves behaves as in kube-apiserver: one suite of contract tests runs against both.
"""

from __future__ import annotations

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.drivers import SimulatedDriver
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
    "SimulatedDriver",
    "StatusError",
]
