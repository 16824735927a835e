"""Discovery: whether the API server serves a resource."""

from __future__ import annotations

from msgspec import Struct

from kubesched.client.resources import ResourcePath
from kubesched.client.rest import ApiClient
from kubesched.errors import NotFoundError


class _ServedResource(Struct, frozen=True):
    name: str


class _ResourceList(Struct, frozen=True):
    resources: list[_ServedResource] = []


async def serves(client: ApiClient, resource: ResourcePath) -> bool:
    """Return whether the API server serves the resource in that version; any user may read this."""
    try:
        found = await client.get(resource.group_path, _ResourceList)
    except NotFoundError:
        return False
    return any(each.name == resource.plural for each in found.resources)
