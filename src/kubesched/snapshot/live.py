"""Takes a snapshot of a running cluster, by lists alone: nothing is ever written.

The client is built to reject everything but GET.
"""

from __future__ import annotations

from kubesched.client.access import ClusterAccess
from kubesched.client.rest import ApiClient
from kubesched.config.features import FeatureGates
from kubesched.errors import ForbiddenError, NotFoundError
from kubesched.kinds import KINDS, ObjectKind
from kubesched.snapshot.contents import Snapshot


async def read(
    access: ClusterAccess, gates: FeatureGates | None = None, *, timeout_s: float = 60.0
) -> Snapshot:
    """List all objects that affect scheduling.

    Kinds that the user cannot list, other than nodes and pods, are skipped with a note, unless
    their feature gate is off. Raises ClientError if nodes or pods cannot be listed.
    """
    gates = gates or FeatureGates.of()
    snapshot = Snapshot(source=access.server.url)
    async with ApiClient(
        access, user_agent="kubesched-explain", timeout_s=timeout_s, may_write=lambda: False
    ) as client:
        for kind in KINDS.values():
            # Kinds of plugins are there only if their CustomResourceDefinition is.
            is_expected = not kind.plugin and (not kind.gate or gates.enabled(kind.gate))
            await _read_kind(client, kind, snapshot, is_expected=is_expected)
    return snapshot


async def _read_kind(
    client: ApiClient, kind: ObjectKind, snapshot: Snapshot, *, is_expected: bool
) -> None:
    try:
        async for page in client.list_pages(
            kind.path.collection(), kind.type, field_selector=kind.field_selector
        ):
            if page.first:
                snapshot.objects[kind.name].clear()
            snapshot.objects[kind.name] += page.items
            snapshot.notes += (f"left out, cannot be read: {bad}" for bad in page.bad)
    except (ForbiddenError, NotFoundError) as refused:
        if kind.needed:
            raise
        if is_expected:
            snapshot.notes.append(f"{kind.path} are not taken into account: {refused}")
