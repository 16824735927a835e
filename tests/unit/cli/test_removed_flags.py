from __future__ import annotations

import pytest

from kubesched.cli.flag_table import FLAGS
from kubesched.cli.removed_flags import REMOVED_FLAGS
from kubesched.errors import UsageError


@pytest.mark.parametrize("name", REMOVED_FLAGS)
def test_a_removed_flag_stays_unknown_and_names_what_takes_its_place(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        FLAGS.parse([f"--{name}=x"])

    assert str(caught.value) == f"unknown flag: --{name}; it was removed: {REMOVED_FLAGS[name]}"


@pytest.mark.parametrize(
    "name", ["policy-config-file", "policy_configmap", "use-legacy-policy-config"]
)
def test_flags_of_policies_name_the_converter(name: str) -> None:
    with pytest.raises(UsageError, match="'kubesched config convert POLICY -o FILE'"):
        FLAGS.parse([f"--{name}", "x"])


def test_flags_that_are_recommended_exist() -> None:
    words = " ".join(REMOVED_FLAGS.values()).replace(",", " ").replace(":", " ").split()
    recommended = {word[2:] for word in words if word.startswith("--")}

    # The last one is the converter's.
    assert recommended - FLAGS.flags.keys() == {"algorithm-provider"}
