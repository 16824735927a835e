"""Commands that answer with their exit code: no answer is not a no."""

from __future__ import annotations

import pytest

from kubesched.cli import exit_codes
from kubesched.errors import ObjectError


def test_trouble_is_neither_yes_nor_no() -> None:
    with pytest.raises(ObjectError) as refused, exit_codes.answering():
        raise ObjectError("x")

    assert refused.value.exit_code == exit_codes.TROUBLE
    assert len({exit_codes.YES, exit_codes.NO, exit_codes.TROUBLE}) == 3
    assert ObjectError("y").exit_code == 1, "other commands are not concerned"
