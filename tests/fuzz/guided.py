"""One target under atheris: libFuzzer's options follow the name; it never returns.

python -m tests.fuzz.guided quantity -max_total_time=60 CORPUS
"""

from __future__ import annotations

import logging
import sys

import atheris

with atheris.instrument_imports(include=["kubesched"]):
    from tests.fuzz.targets import all_targets

    _TARGETS = all_targets()


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    logging.disable(logging.CRITICAL)
    target = _TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
