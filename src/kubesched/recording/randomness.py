"""Captures and restores the state of random generators.

Plugins need no support: every `random.Random` among their attributes is found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from kubesched.framework.plugin import Plugin
from kubesched.framework.runtime import Framework
from kubesched.recording.entries import Randomness, RngState

Frameworks = Mapping[str, Framework]


def capture(ties: random.Random, start: int, frameworks: Frameworks) -> Randomness:
    """Return the state of all random generators."""
    plugins: dict[str, dict[str, dict[str, RngState]]] = {}
    for profile, framework in frameworks.items():
        for plugin in framework.plugins.instances.values():
            for attribute, rng in _generators(plugin):
                of_plugin = plugins.setdefault(profile, {}).setdefault(plugin.name, {})
                of_plugin[attribute] = rng.getstate()
    return Randomness(ties=ties.getstate(), start=start, plugins=plugins)


def restore_plugins(known: Randomness, frameworks: Frameworks) -> None:
    """Restore the generators of plugins; plugins that did not exist then start over."""
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
