"""The pytest plugin: the fixture `cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubesched.testing.workbench import Workbench


@pytest.fixture
def cluster() -> Workbench:
    """An empty cluster with the default profile; see `kubesched.testing.workbench`."""
    # Unrelated tests in the same environment should not wait for NumPy.
    from kubesched.testing.workbench import Workbench  # noqa: PLC0415

    return Workbench()
