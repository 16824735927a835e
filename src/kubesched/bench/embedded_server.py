"""The embedded API server as a process, so that its cost is measured apart.

    python -m kubesched.bench.embedded_server KUBECONFIG

Writes the kubeconfig when it listens. As on the real control plane here, there is no kubelet, and a
pod may set its own priority.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kubesched.bench import programs
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.pods import Admission


async def _serve(kubeconfig: Path) -> None:
    async with EmbeddedCluster(
        run_kubelet=False, admission=Admission(priority=False, topology_labels=False)
    ) as cluster:
        # The file is complete once it has its final name.
        unfinished = kubeconfig.with_suffix(".new")
        cluster.write_kubeconfig(unfinished)
        unfinished.rename(kubeconfig)
        await asyncio.Event().wait()


if __name__ == "__main__":
    programs.run(_serve(Path(sys.argv[1])))
