"""Changes that let a pod go to nodes of another CPU architecture or operating system.

Filters accept such a node, but images that were not built for it do not run there: so these
changes come after all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesched.api.core import Pod

_KEYS: Final = frozenset(
    f"{prefix}kubernetes.io/{what}" for prefix in ("", "beta.") for what in ("arch", "os")
)
OTHER_PLATFORM: Final = (
    "Its images must be built for that CPU architecture and operating system, too."
)


def is_other_platform(before: Pod, after: Pod) -> bool:
    """Tell whether a changed pod requires another platform of its node, or less of it."""
    return set(_required(before)) != set(_required(after))


def _required(pod: Pod) -> Iterator[object]:
    spec = pod.spec
    yield from (item for item in (spec.node_selector or {}).items() if item[0] in _KEYS)
    yield from (each for each in spec.tolerations if each.key in _KEYS)
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for number, term in enumerate(required.node_selector_terms if required else ()):
        yield from ((number, each) for each in term.match_expressions if each.key in _KEYS)
