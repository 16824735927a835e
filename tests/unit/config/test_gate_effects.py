"""Gates that change nothing are told apart from those that do, and the code is the proof."""

from __future__ import annotations

import re
from pathlib import Path

import kubesched
from kubesched.config.defaults import PLUGIN_GATES
from kubesched.config.features import FeatureGates
from kubesched.config.gate_effects import EFFECTIVE, without_effect
from kubesched.config.gate_table import GATES
from kubesched.kinds import KINDS
from kubesched.plugins.in_tree import IN_TREE

#: kube-scheduler asks about these; the documentation says that kubesched does not.
OF_THE_SCHEDULER = {
    "InterPodAffinityHostnameFastPath",
    "NativeHistograms",
    "VolumeBindMountOptions",
}


def asked_in_the_code() -> set[str]:
    files = Path(kubesched.__file__).parent.rglob("*.py")
    texts = (file.read_text() for file in files if file.name != "features.py")
    return {name for text in texts for name in re.findall(r'\benabled\(\s*"(\w+)"\)', text)}


def test_gates_with_an_effect_are_those_that_the_code_asks_about() -> None:
    of_plugins = {gate for plugin, gate in PLUGIN_GATES.items() if plugin in IN_TREE}
    of_kinds = {kind.gate for kind in KINDS.values() if kind.gate}
    assert asked_in_the_code() | of_plugins | of_kinds == EFFECTIVE


def test_gates_at_their_default_are_not_worth_a_word() -> None:
    assert without_effect(FeatureGates.of()) == []
    assert without_effect(FeatureGates.of({"OpportunisticBatching": True})) == []


def test_gates_that_were_switched_and_change_nothing_are_named() -> None:
    gates = FeatureGates.of(
        {
            "GenericWorkload": True,
            "OpportunisticBatching": False,
            "StorageCapacityScoring": False,
            "WorkloadWithJob": True,
        }
    )
    assert without_effect(gates) == ["OpportunisticBatching=false", "WorkloadWithJob=true"]


def test_a_stage_stands_for_its_gates() -> None:
    told = without_effect(FeatureGates.of({"AllAlpha": True, "GenericWorkload": True}))
    assert "WorkloadWithJob=true" in told
    assert "AllAlpha=true" not in told


def test_the_default_is_that_of_the_emulated_version() -> None:
    off = {"NominatedNodeNameForExpectation": False}
    assert without_effect(FeatureGates.of(off)) == ["NominatedNodeNameForExpectation=false"]
    assert without_effect(FeatureGates.of(off, emulated_version=(1, 34))) == []


def test_the_documentation_names_gates_that_have_no_effect() -> None:
    text = (Path(__file__).parents[3] / "docs" / "differences.md").read_text()
    section = text.partition("## Feature gates without effect")[2].partition("\n## ")[0]
    named = set(re.findall(r"\w+", section)) & GATES.keys()
    assert named & EFFECTIVE == set()
    assert named >= {"OpportunisticBatching", *OF_THE_SCHEDULER}
