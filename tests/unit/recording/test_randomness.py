"""The state of random generators: captured, and restored in another process."""

from __future__ import annotations

import random

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Score
from kubesched.framework.registry import PluginContext
from kubesched.framework.runtime import Framework
from kubesched.recording.randomness import capture, restore_plugins
from tests.support.scheduling import Lab


class Rolling(Score):
    """A plugin with a random generator among its attributes."""

    name = "Rolling"

    def __init__(self) -> None:
        self.dice = random.Random(1)

    @classmethod
    def create(cls, context: PluginContext) -> Rolling:
        return cls()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:
        raise NotImplementedError


def framework() -> tuple[dict[str, Framework], Rolling]:
    lab = Lab(plugins=[Rolling])
    plugin = lab.plugin("Rolling")
    assert isinstance(plugin, Rolling)
    return {"default-scheduler": lab.framework}, plugin


def test_generators_of_plugins_continue_where_they_were() -> None:
    frameworks, plugin = framework()
    plugin.dice.random()
    known = capture(random.Random(2), 7, frameworks)
    expected = [plugin.dice.random() for _ in range(3)]

    others, restored = framework()
    restore_plugins(known, others)

    assert [restored.dice.random() for _ in range(3)] == expected
    assert (known.ties, known.start) == (random.Random(2).getstate(), 7)


def test_a_plugin_that_was_not_captured_starts_over() -> None:
    known = capture(random.Random(2), 0, {})
    frameworks, plugin = framework()
    restore_plugins(known, frameworks)

    assert plugin.dice.random() == random.Random(1).random()
