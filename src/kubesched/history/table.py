"""A pod's history as lines for the terminal: one per event, and below an attempt what was known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.markup import escape

from kubesched.history.report import (
    AttemptKnown,
    ClaimKnown,
    EventKind,
    HistoryEvent,
    PodHistory,
    PodLife,
    RejectedNodes,
    WinningScore,
)

_COLOURS: Final = {
    EventKind.BOUND: "green",
    EventKind.VICTIM: "red",
    EventKind.RETURNED: "red",
}
_KIND_WIDTH: Final = max(map(len, EventKind))
#: Below the text of an event: after its time, the time since the first event, and its kind.
_INDENT: Final = " " * (24 + 2 + 11 + 2 + _KIND_WIDTH + 2)


def show(console: Console, said: PodHistory) -> None:
    """Print a history."""
    for number, life in enumerate(said.lives, start=1):
        if number > 1:
            console.print()
        which = f" ({number} of {len(said.lives)} of this name)" if len(said.lives) > 1 else ""
        console.print(f"[bold]{escape(said.pod)}[/]{which}: {escape(_about(life))}", soft_wrap=True)
        for event in life.events:
            _show_event(console, event, since=life.events[0].time)
    for note in said.notes:
        console.print(f"[dim]Note: {escape(note)}[/]", soft_wrap=True)


def _about(life: PodLife) -> str:
    parts = [
        f"uid {life.uid}",
        f"priority {life.priority}",
        f"profile {life.scheduler_name}",
        _many(life.attempts, "attempt"),
    ]
    if life.group:
        parts.append(life.group)
    parts.append(f"on {life.node} at the end" if life.node else "without a node at the end")
    return ", ".join(parts)


def _show_event(console: Console, event: HistoryEvent, *, since: str) -> None:
    after_s = (_parsed(event.time) - _parsed(since)).total_seconds()
    colour = _COLOURS.get(event.kind, "default")
    console.print(
        f"{event.time}  {f'+{after_s:.3f} s':>11}  "
        f"[{colour}]{event.kind:<{_KIND_WIDTH}}[/]  {escape(event.text)}",
        soft_wrap=True,
    )
    if event.attempt is not None:
        for line in _known(event.attempt):
            console.print(f"{_INDENT}{escape(line)}", soft_wrap=True)


def _known(known: AttemptKnown) -> Iterator[str]:
    if known.group is not None:
        group = known.group
        yield f"with {group.group}: {group.placed} of {_many(group.members, 'member')} placed"
    elif known.node:
        yield f"{known.feasible} of {_many(known.evaluated, 'node')} feasible"
    if known.scores is not None:
        yield from _scores(known.scores)
    for each in known.rejected:
        yield _rejected(each)
    for answer in known.extenders:
        if answer.feasible is not None:
            yield f"extenders left {_many(answer.feasible, 'node')}"
        for each in answer.rejected:
            yield _rejected(each)
        if answer.error:
            yield f"extenders failed: {answer.error}"
    for claim in known.claims:
        yield _claim(claim)
    for victim in known.victims:
        where = f" on {victim.node}" if victim.node else ""
        yield f"evicts {victim.pod or victim.uid}{where}, priority {victim.priority}"
    if known.nominated:
        yield f"nominated to {known.nominated}"
    if known.note:
        yield known.note


def _scores(scores: WinningScore) -> Iterator[str]:
    winner, other = scores.winner, scores.runner_up
    if other is None:
        return
    yield f"score {winner.total}, the next is {other.node} with {other.total}"
    if scores.tied > 1:
        yield f"{scores.tied} nodes had the best score: one of them was chosen at random"
    differing = [
        f"{plugin} {score} to {other.plugins.get(plugin, 0)}"
        for plugin, score in winner.plugins.items()
        if score != other.plugins.get(plugin, 0)
    ]
    if differing:
        yield f"of that, {', '.join(differing)}"


def _rejected(each: RejectedNodes) -> str:
    by = f" ({each.plugin})" if each.plugin else ""
    return f"{each.nodes} rejected: {each.reason}{by}: {_some(each.examples, each.nodes)}"


def _some(names: Sequence[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more


def _claim(claim: ClaimKnown) -> str:
    has = f"has {', '.join(claim.allocated)}" if claim.allocated else "has nothing yet"
    return f"{claim.kind} {claim.name} {has}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _parsed(time: str) -> datetime:
    return datetime.fromisoformat(time)
