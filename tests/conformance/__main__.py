"""``python -m tests.conformance FOLDER``: judges all cases of a folder; exit 1 unless all match."""

from __future__ import annotations

import sys
from pathlib import Path

from .report import SHOWN, run_theme, show
from .vectors import themes


def main(arguments: list[str]) -> int:
    """Run the command."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "vectors"
    found = themes(folder)
    if not found:
        print(f"Error: {folder} has no *.jsonl.gz files: name a folder of vectors", file=sys.stderr)
        return 1
    reports = []
    for theme in found:
        reports.append(run_theme(theme, folder))
        print(reports[-1].line(), flush=True)
    failures = [pair for report in reports for pair in report.failures.items()]
    for name, differences in failures[:SHOWN]:
        print("\n" + show(name, differences))
    matching = sum(report.matching for report in reports)
    total = sum(report.cases for report in reports)
    print(f"\nconformance: {matching} of {total} cases match")
    return 0 if matching == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
