"""Runs the tasks of a sweep on the workers of a Dask cluster.

This needs the package ``distributed``, and kubesched on every worker; the payload is sent to each
worker once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from kubesched.errors import ConnectionFailedError, KubeschedError, UsageError
from kubesched.simulate.sweeping import Payload, Result, Task, work

CONNECT_TIMEOUT_S = 10.0


def carry_out(
    payload: Payload,
    tasks: Sequence[Task],
    *,
    address: str,
    progress: Callable[[], None] = lambda: None,
    timeout_s: float = CONNECT_TIMEOUT_S,
) -> list[Result]:
    """Run tasks on a cluster; return the results in their order."""
    distributed = _package()
    try:
        client = distributed.Client(address, timeout=timeout_s, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as unreachable:
        reason = " ".join(str(unreachable).split()) or type(unreachable).__name__
        raise ConnectionFailedError(
            f"cannot reach a Dask scheduler at {address}: {reason}; "
            "give its address as 'dask scheduler' prints it, such as tcp://host:8786"
        ) from None
    with client:
        return _carry_out(client, payload, tasks, progress)


def _package() -> Any:  # noqa: ANN401 (a module without types)
    """Return the package, an optional dependency."""
    try:
        return import_module("distributed")
    except ImportError:
        raise UsageError(
            "--dask needs the package distributed: pip install 'kubesched[dask]'"
        ) from None


def _carry_out(
    client: Any,  # noqa: ANN401 (of a package without types)
    payload: Payload,
    tasks: Sequence[Task],
    progress: Callable[[], None],
) -> list[Result]:
    if not client.scheduler_info()["workers"]:
        raise UsageError("the Dask cluster has no workers: start some with 'dask worker ADDRESS'")
    sent = client.scatter(payload, broadcast=True, hash=False)
    futures = [client.submit(work, sent, task, pure=False) for task in tasks]
    try:
        for future in _package().as_completed(futures, loop=client.loop):
            future.result()
            progress()
        return [future.result() for future in futures]
    except _package().KilledWorker:
        raise KubeschedError(
            "workers of the Dask cluster died again and again, perhaps for want of memory"
        ) from None
    except ModuleNotFoundError as missing:
        raise KubeschedError(
            f"a worker of the Dask cluster has no module {missing.name}: "
            "install kubesched, and what its plugins need, on all workers"
        ) from None
    finally:
        client.cancel(futures)
