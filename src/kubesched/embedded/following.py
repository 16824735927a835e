"""What the small controllers share: they look at each object again when it changed."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded.resources import ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import VersionChange
from kubesched.embedded.watching import WatchSelection


async def follow(
    store: VersionedStore, resource: ServedResource, look_at: Callable[[str], None]
) -> None:
    """Call ``look_at`` with the key of each object, and of each that changes; until cancelled."""
    collection = store.collection(resource)
    while True:  # if its watch is cut off, it lists again
        watcher = store.watch(
            resource, WatchSelection(resource), _changed_key, since=store.revision
        )
        try:
            for key in list(collection.keys()):
                look_at(key)
            while not watcher.closed:
                await watcher.wait()
                for key in dict.fromkeys(watcher.take()):
                    look_at(key)
        finally:
            collection.unwatch(watcher)


def _changed_key(_kind: str, change: VersionChange) -> str:
    return change.current.key
