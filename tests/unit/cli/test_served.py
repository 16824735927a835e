"""What a scheduler serves, by its options."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cli.component import Component
from kubesched.cli.options import make_options
from kubesched.server.sources import Sources


def sources_with(gates: str) -> Sources:
    """Return what a scheduler with these gates would serve, without a port to do so."""
    flags = ["--master=http://127.0.0.1:9", "--secure-port=0", f"--feature-gates={gates}"]
    options = make_options(flags)

    async def main() -> Sources:
        return Component(options, lambda: options.config).sources

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("gates", "wanted"),
    [
        ("", (True, True, False)),
        ("ComponentFlagz=false,ComponentStatusz=false", (False, False, False)),
        ("CBORServingAndStorage=true", (True, True, True)),
    ],
)
def test_pages_are_there_with_their_gates(gates: str, wanted: tuple[bool, bool, bool]) -> None:
    sources = sources_with(gates)
    assert (sources.flags is not None, sources.status is not None, sources.cbor) == wanted


def test_statusz_names_gates_without_effect() -> None:
    status = sources_with("OpportunisticBatching=false").status
    assert status is not None
    assert {each.field: each.lines() for each in status.findings} == {
        "unreadableObjects": [],
        "oversubscriptionRaces": [],
        "gatesWithoutEffect": ["OpportunisticBatching=false"],
    }
