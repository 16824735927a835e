"""Where everything random stands: read it, and set it again.

Plugins are not asked: whatever of them is a `random.Random` in one of their attributes is found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from kubesched.framework.plugin import Plugin
from kubesched.framework.runtime import Framework
from kubesched.recording.entries import Randomness, RngState

Frameworks = Mapping[str, Framework]


def capture(ties: random.Random, start: int, frameworks: Frameworks) -> Randomness:
    """Return where randomness stands."""
    plugins: dict[str, dict[str, dict[str, RngState]]] = {}
    for profile, framework in frameworks.items():
        for plugin in framework.plugins.instances.values():
            for attribute, rng in _generators(plugin):
                of_plugin = plugins.setdefault(profile, {}).setdefault(plugin.name, {})
                of_plugin[attribute] = rng.getstate()
    return Randomness(ties=ties.getstate(), start=start, plugins=plugins)


def restore_plugins(known: Randomness, frameworks: Frameworks) -> None:
    """Let plugins go on from where they stood; those that did not exist then begin anew."""
    for profile, framework in frameworks.items():
        for plugin in framework.plugins.instances.values():
            states = known.plugins.get(profile, {}).get(plugin.name, {})
            for attribute, rng in _generators(plugin):
                if attribute in states:
                    rng.setstate(states[attribute])


def _generators(plugin: Plugin) -> Iterator[tuple[str, random.Random]]:
    for attribute, value in sorted(getattr(plugin, "__dict__", {}).items()):
        if isinstance(value, random.Random):
            yield attribute, value
