"""Compare for some minutes, and say what came of it.

python -m tests.certify --minutes 60 --seed 1
python -m tests.certify --theme volumes --seed 17 --seeds 1
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from kubesched.bench import assets

from .runner import THEMES, certify
from .theme import Tally, Theme


def main() -> int:
    """Compare; return 1 if there is a difference that is not documented."""
    names = {theme.name: theme for theme in THEMES}
    parser = argparse.ArgumentParser(
        prog="python -m tests.certify",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--theme", action="append", choices=names, help="all, unless given")
    parser.add_argument("--minutes", type=float, help="for all themes together; 10 by default")
    parser.add_argument("--cases", type=int, help="end a theme after so many cases")
    parser.add_argument("--seeds", type=int, help="end a theme after so many seeds")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--jobs", type=int, default=2, help="themes at the same time")
    given = parser.parse_args()
    themes = [names[name] for name in given.theme or names]
    jobs = min(given.jobs, len(themes))
    minutes = given.minutes
    if minutes is None and given.cases is None and given.seeds is None:
        minutes = 10.0
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            print(text, flush=True)

    def run(theme: type[Theme]) -> Tally:
        deadline = time.monotonic() + (minutes or 0.0) * 60 * jobs / len(themes)

        def enough(tally: Tally, seeds: int) -> bool:
            return (
                (minutes is not None and time.monotonic() >= deadline)
                or (given.cases is not None and tally.cases >= given.cases)
                or (given.seeds is not None and seeds >= given.seeds)
            )

        return certify(theme, assets.folder(), seed=given.seed, enough=enough, say=say)

    with ThreadPoolExecutor(jobs) as pool:
        running = {theme.name: pool.submit(run, theme) for theme in themes}
    tallies = {name: each.result() for name, each in running.items() if not each.exception()}
    for name, tally in tallies.items():
        print(f"{name}: {tally}")
    for name in running.keys() - tallies.keys():
        traceback.print_exception(running[name].exception())
        print(f"{name}: ended early, see above")
    differences = sum(len(tally.differences) for tally in tallies.values())
    print(f"{sum(tally.cases for tally in tallies.values())} cases, {differences} differences")
    return int(differences > 0 or len(tallies) < len(running))


if __name__ == "__main__":
    sys.exit(main())
