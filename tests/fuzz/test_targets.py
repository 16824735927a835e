"""Every target, briefly: the same inputs each time."""

from __future__ import annotations

import pytest

from . import mutation
from .target import FuzzTarget
from .targets import all_targets

SEED = 1


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_whatever_the_input(target: FuzzTarget) -> None:
    for data in mutation.inputs(target, SEED, target.brief):
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"for the input {data!r}")
            raise
