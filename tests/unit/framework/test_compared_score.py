"""What becomes of a score that is compared with the highest and the lowest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.node_by_node import HighestWins, LowestWins
from kubesched.framework.plugin import Normalize, is_by_extremes
from tests.unit.builders import Lab, node

scores = st.lists(st.integers(0, 1000), min_size=1, max_size=20)


def promising() -> Iterator[Normalize]:
    """Every plugin of the tree that promises to look at nothing but the extremes."""
    for plugin in Lab(node("n")).framework.plugins.instances.values():
        if isinstance(plugin, Normalize) and is_by_extremes(plugin):
            yield plugin
    yield from (HighestWins(), LowestWins())


def test_who_promises() -> None:
    names = {type(each).__name__ for each in promising()}
    assert names == {"TaintToleration", "NodeAffinity", "HighestWins", "LowestWins"}


@pytest.mark.parametrize("plugin", list(promising()), ids=lambda each: type(each).__name__)
@given(data=st.data(), drawn=scores)
def test_the_promise_is_kept(plugin: Normalize, data: st.DataObject, drawn: list[int]) -> None:
    extremes = [min(drawn), max(drawn)]
    fewer = data.draw(st.lists(st.sampled_from(drawn), max_size=5))

    def normalized(values: list[int]) -> dict[int, int]:
        found = plugin.normalize(CycleState(), np.array(values, dtype=np.int64))
        assert found is not None
        return dict(zip(values, found.tolist(), strict=True))

    everywhere, here = normalized(drawn), normalized([*fewer, *extremes])
    assert here.items() <= everywhere.items()
