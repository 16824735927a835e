"""The scheduler as a process that kills itself while it binds a pod, for tests of crashes.

    python -m tests.integration.dying_scheduler WRITE MOMENT --config=…

It dies of SIGKILL at that of its writes to claims (or to the status of a pod that says which claim
serves it): *before* it is sent, a moment *after* it is sent, or when it has been *answered*.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count
from typing import Any

from kubesched.cli import kube_scheduler
from kubesched.client.connection import Response
from kubesched.client.requester import Requester

MOMENTS = ("before", "after", "answered")
#: For how long a request may be on its way to the server when the process dies.
UNDERWAY_S = 0.001


def die() -> None:
    """End as running out of memory would end it."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(number: int, moment: str) -> None:
    """Die at that write."""
    request, writes = Requester.request, count(1)

    async def dying(self: Requester, method: str, path: str, **rest: Any) -> Response:
        is_write = method != "GET" and (
            "/resourceclaims" in path or b"extendedResourceClaimStatus" in (rest.get("body") or b"")
        )
        is_last = is_write and next(writes) == number
        if is_last and moment == "before":
            die()
        if is_last and moment == "after":
            asyncio.get_running_loop().call_later(UNDERWAY_S, die)
        response = await request(self, method, path, **rest)
        if is_last:
            die()
        return response

    Requester.request = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    die_at(int(sys.argv[1]), sys.argv[2])
    sys.exit(kube_scheduler.main(sys.argv[3:]))
