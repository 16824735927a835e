"""A short parity certificate of every theme; `make certify` makes long ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.certify.runner import THEMES, certify
from tests.certify.theme import Tally, Theme

pytestmark = pytest.mark.slow

#: Themes with the number of seeds, and outcomes that must occur. Those of `groups` have all gates,
#: preemption, late members and trees among them, and take the longest: they come first.
SEEDS = {
    "groups": (8, {"group placed, the same", "group waits, the same"}),
    "placement": (10, {"one best node", "one of several nodes", "no node"}),
    "devices": (1, {"one best node", "one of several nodes", "no node"}),
    "volumes": (1, {"one best node", "no node"}),
    "preemption": (1, {"preemption", "one best node", "no node"}),
    "configurations": (2, {"accepted", "refused", "one best node"}),
}
#: A theme that waits for a scheduler leaves time to another one.
AT_ONCE = 2


@pytest.fixture(scope="module")
def tally_of(assets: Path) -> Iterator[Callable[[str], tuple[Tally, list[str]]]]:
    """Certify all themes; return what came of one, and what was said about it."""
    themes = {theme.name: theme for theme in THEMES}
    said: dict[str, list[str]] = {name: [] for name in themes}

    def run(theme: type[Theme]) -> Tally:
        seeds, _ = SEEDS[theme.name]
        return certify(
            theme,
            assets,
            seed=1,
            enough=lambda _tally, done: done >= seeds,
            say=said[theme.name].append,
        )

    with ThreadPoolExecutor(AT_ONCE) as pool:
        coming = {name: pool.submit(run, themes[name]) for name in SEEDS}
        yield lambda name: (coming[name].result(timeout=600), said[name])
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SEEDS)
def test_both_schedulers_do_the_same(
    name: str, tally_of: Callable[[str], tuple[Tally, list[str]]]
) -> None:
    tally, said = tally_of(name)
    _, outcomes = SEEDS[name]
    assert not tally.differences, "\n".join(said)
    assert len(tally.doubts) <= 1 + tally.cases // 100, "\n".join(said)
    assert outcomes <= tally.outcomes.keys(), tally


def test_every_theme_is_certified() -> None:
    assert {theme.name for theme in THEMES} == SEEDS.keys()
