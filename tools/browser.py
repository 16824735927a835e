#!/usr/bin/env python3
"""Finds or installs a Chromium for the browser tests: the system's, or Debian's package.

A browser that is installed, or named by $CHROMIUM, is used as it is; its path goes to stdout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core")


def find() -> str | None:
    """Return the path of a browser."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None)


def install() -> None:
    """Install Debian's packages."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (("update",), ("install", "--yes", "--no-install-recommends", *PACKAGES)):
        command = ["apt-get", "-qq", *arguments]
        subprocess.run(command, check=True, stdout=sys.stderr, env=environment)


def main() -> int:
    """Find a browser or install one; return the exit code."""
    if find() is None:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            print(
                "no chromium: install it with your system's packages, or name one in $CHROMIUM",
                file=sys.stderr,
            )
            return 1
        print("installing chromium for the browser tests", file=sys.stderr)
        try:
            install()
        except subprocess.CalledProcessError as failed:
            print(f"chromium cannot be installed: {' '.join(failed.cmd)} failed", file=sys.stderr)
            return 1
    print(find())
    return 0


if __name__ == "__main__":
    sys.exit(main())
