"""Tables in files have no blanks at the ends of their lines."""

from __future__ import annotations

import pytest
from rich.table import Table

from kubesched.cli.console import stdout_console


def test_the_last_column_is_not_padded(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("node", "reason", box=None)
    table.add_row("n1", "a long reason")
    table.add_row("a-long-name", "b")
    console = stdout_console()

    console.print(table)
    console.print("left as it is: ", end="")

    lines = capsys.readouterr().out.split("\n")
    assert [line.split() for line in lines[1:3]] == [
        ["n1", "a", "long", "reason"],
        ["a-long-name", "b"],
    ]
    assert all(line == line.rstrip() for line in lines[:3])
    assert lines[3] == "left as it is: "
