"""Runs themes over seeds, and says what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from .configurations import ConfigurationTheme
from .devices import DeviceTheme
from .groups import GroupTheme
from .placement import PlacementTheme
from .preemption import PreemptionTheme
from .theme import Tally, Theme
from .volumes import VolumeTheme

THEMES: tuple[type[Theme], ...] = (
    PlacementTheme,
    PreemptionTheme,
    VolumeTheme,
    DeviceTheme,
    GroupTheme,
    ConfigurationTheme,
)


def certify(
    theme: type[Theme],
    assets: Path,
    *,
    seed: int,
    enough: Callable[[Tally, int], bool],
    say: Callable[[str], None],
) -> Tally:
    """Compare the cases of a theme from a seed on, until that is enough."""
    with theme(assets) as running:
        tally, seeds = running.tally, 0
        while not enough(tally, seeds):
            shown = len(tally.differences), len(tally.doubts)
            began = time.monotonic()
            running.compare(seed + seeds)
            for found in tally.differences[shown[0] :]:
                say(f"DIFFERENT {found}")
            for found in tally.doubts[shown[1] :]:
                say(f"not said twice: {found}")
            say(f"{theme.name} seed {seed + seeds}: {tally} ({time.monotonic() - began:.0f} s)")
            seeds += 1
    return tally
