"""The demo feeds its cluster to the end, however many pods wait on the way."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cli import demo
from kubesched.cli.kubesched import main

#: A gang of this many nodes' devices has ten members and never fits.
NODES, PODS, WAIT_S = 300, 300, 60.0


def test_a_gang_that_backs_off_does_not_hold_up_the_pods_after_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "BACKLOG", 5)
    feed = demo._feed

    async def in_time(*arguments: object) -> None:
        async with asyncio.timeout(WAIT_S):
            await feed(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(demo, "_feed", in_time)

    assert main(["demo", f"--nodes={NODES}", f"--pods={PODS}"]) == 0
    assert "pretrain" in capsys.readouterr().out
