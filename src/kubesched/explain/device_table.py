"""What speaks against devices, as text for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.explain.devices import sentence
from kubesched.explain.report import DeviceExplanation, DeviceRequestAnswer
from kubesched.framework.detail import listed


def show_devices(console: Console, said: DeviceExplanation) -> None:
    """Print what speaks against the devices that a pod claims."""
    for claim in said.allocated:
        where = f", for {listed(claim.nodes)}" if claim.nodes else ""
        used = f"; used by {listed(claim.pods)}" if claim.pods else ""
        console.print(
            f"\n[bold]Claim {escape(claim.claim)}[/] has {escape(listed(claim.devices))}"
            f"{escape(where)}{escape(used)}",
            soft_wrap=True,
        )
    if not said.requests:
        return
    console.print(f"\n[bold]Devices[/]: {said.devices} on {said.nodes} nodes")
    for request in said.requests:
        _request(console, request)
    if not said.closest:
        return
    console.print("\n[bold]Nodes that come closest[/]")
    table = Table(box=None, pad_edge=False)
    for column in ("node", "request"):
        table.add_column(column, no_wrap=True)
    table.add_column("has", justify="right")
    table.add_column("devices", overflow="fold")
    for each in said.closest:
        has = f"{each.usable} of {each.wanted}"
        table.add_row(escape(each.node), escape(each.request), has, escape(each.text))
    console.print(table)


def _request(console: Console, request: DeviceRequestAnswer) -> None:
    asked = "all" if not request.count else str(request.count)
    console.print(
        f"  request {escape(request.request)} of claim {escape(request.claim)} asks for {asked} of "
        f"class {escape(request.device_class)}: {request.usable} of {request.devices} could serve "
        "it",
        soft_wrap=True,
    )
    for cause in request.causes:
        console.print(f"    {escape(sentence(cause))}", soft_wrap=True)
    if request.problem:
        console.print(f"    {escape(request.problem)}", soft_wrap=True)
