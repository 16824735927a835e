"""Reads input files: a trace with one record per event, or a workload to generate.

    {"time": 0, "template": "web", "duration": "10m"}               one JSON or YAML object per line
    {"time": "5m", "pod": {"spec": …}, "duration": 600, "count": 3}
    {"time": "1h", "lose": "node-3", "for": "30m"}

    time,template,duration                                          or CSV with the same fields
    0,web,10m

    kind: Workload                                                  or rates (see workload.py)

A time is in seconds or a duration after the start, or RFC 3339; then the first is the start. `pod`
is a manifest, or the name of a file with one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

import msgspec
import yaml
from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.config import untrusted_yaml
from kubesched.errors import ObjectError
from kubesched.simulate.casting import Casting, gang_arrival, named
from kubesched.simulate.forms import Gang, JsonObject, NodeChange, Time, decoded, seconds
from kubesched.simulate.timed_events import Arrival, GroupArrival, TimedEvent
from kubesched.simulate.workload import KIND, read_workload

_NUMBERS = ("count", "add")


class Script(Protocol):
    """The events of a simulation, apart from random choices."""

    @property
    def until_s(self) -> float | None:
        """When a simulation of it ends; None: when nothing is left to happen."""

    def happenings(self, seed: int) -> list[TimedEvent]:
        """Return all events; deterministic by seed."""


class Trace(Struct, frozen=True):
    """Recorded events."""

    #: all but changes of random nodes
    arrivals: tuple[Arrival | GroupArrival, ...]
    #: time, change, place in the file
    node_changes: tuple[tuple[float, NodeChange, str], ...]
    casting: Casting

    @property
    def until_s(self) -> float | None:
        """None: until nothing is left to happen."""
        return None

    def happenings(self, seed: int) -> list[TimedEvent]:
        """Return all events."""
        random = Random(f"{seed}/trace")  # noqa: S311 (chooses nodes, not a secret)
        found: list[TimedEvent] = list(self.arrivals)
        for number, (at_s, change, where) in enumerate(self.node_changes, start=1):
            found += self.casting.changes(change, at_s, where, random=random, number=number)
        return sorted(found, key=lambda each: each.at_s)


class _Record(NodeChange, frozen=True, kw_only=True):
    time: Time
    template: str = ""
    pod: JsonObject | str | None = None
    #: lifetime of the pod once it is placed; None: forever
    duration: Time | None = None
    count: int = 1
    gang: Gang | None = None
    name: str = ""
    namespace: str = ""


def read_script(path: Path, casting: Casting) -> Script:
    """Read a file of either form; raises ObjectError if it cannot be used."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failed:
        raise ObjectError(f"cannot read {path}: {failed.strerror}") from None
    except UnicodeDecodeError:
        raise ObjectError(f"{path}: not a text in UTF-8") from None
    if path.suffix == ".csv":
        return _trace(list(_csv_records(text, path)), path, casting)
    documents = list(_documents(text, path))
    if len(documents) == 1 and isinstance(documents[0][1], dict):
        tree = documents[0][1]
        if tree.get("kind") == KIND or "templates" in tree:
            return read_workload(tree, path, casting)
    return _trace(documents, path, casting)


# --- text to records --------------------------------------------------------------------------


def _csv_records(text: str, path: Path) -> Iterator[tuple[str, JsonObject]]:
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        if None in row:
            raise ObjectError(f"{where}: more fields than the first line names")
        tree: JsonObject = {key.strip(): value.strip() for key, value in row.items() if value}
        for name in _NUMBERS:
            if name in tree and tree[name].isdecimal():
                tree[name] = int(tree[name])
        if tree:
            yield where, tree


def _documents(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise ObjectError(f"{path}: there is nothing in it")
    # One object per line: so it begins, and so it ends.
    if all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for _, line in lines):
        for number, line in lines:
            yield f"{path}, line {number}", _line(line, f"{path}, line {number}")
        return
    try:
        documents = [each for each in untrusted_yaml.load_all(text) if each is not None]
    except yaml.YAMLError as malformed:
        raise ObjectError(f"{path}: not YAML: {untrusted_yaml.problem(malformed)}") from None
    if len(documents) == 1 and isinstance(documents[0], list):
        documents = documents[0]
    for number, document in enumerate(documents, start=1):
        yield str(path) if len(documents) == 1 else f"{path}, document {number}", document


def _line(line: str, where: str) -> Any:  # noqa: ANN401 (any JSON value)
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return untrusted_yaml.load(line)
    except yaml.YAMLError as malformed:
        what = untrusted_yaml.problem(malformed)
        raise ObjectError(f"{where}: neither JSON nor YAML: {what}") from None


# --- records to events ------------------------------------------------------------------------


def _trace(documents: Sequence[tuple[str, Any]], path: Path, casting: Casting) -> Trace:
    records = [(where, _record(tree, where)) for where, tree in documents]
    times_s = _times_s(records)
    arrivals: list[Arrival | GroupArrival] = []
    count = 0
    node_changes: list[tuple[float, NodeChange, str]] = []
    for (where, record), at_s in zip(records, times_s, strict=True):
        if record.template or record.pod:
            lifetime_s = _lifetime_s(record, where)
            pods = list(_pods(record, where, path.parent, casting, first=count + 1))
            count += len(pods)
            if record.gang is None:
                arrivals.extend([Arrival(at_s, pod, lifetime_s) for pod in pods])
            else:
                members = [(pod, lifetime_s) for pod in pods]
                name = record.name or pods[0].metadata.name
                arrivals.append(gang_arrival(record.gang, at_s, name, members, f"{where}: gang"))
        else:
            _check_change(record, where, casting)
            node_changes.append((at_s, record, where))
    return Trace(tuple(arrivals), tuple(node_changes), casting)


def _record(tree: object, where: str) -> _Record:
    if isinstance(tree, dict) and "apiVersion" in tree:
        raise ObjectError(
            f"{where}: an API object, which does not say when it comes: records have a time, and "
            "name pods that --template gives"
        )
    return decoded(tree, _Record, where)


def _lifetime_s(record: _Record, where: str) -> float | None:
    return None if record.duration is None else seconds(record.duration, f"{where}: duration")


def _check_change(record: _Record, where: str, casting: Casting) -> None:
    if not (record.add or record.lose or record.lose_zone or record.drain):
        raise ObjectError(
            f"{where}: say what happens: template or pod, or add, lose, loseZone or drain nodes"
        )
    casting.check(record, where)
    if record.for_ is not None:
        seconds(record.for_, f"{where}: for")


def _pods(
    record: _Record, where: str, folder: Path, casting: Casting, *, first: int
) -> Iterator[Pod]:
    if record.template and record.pod:
        raise ObjectError(f"{where}: template and pod exclude each other")
    if record.count < 1:
        raise ObjectError(f"{where}: count must be at least 1")
    if isinstance(record.pod, str):
        pod = casting.read_template(folder / record.pod)
    elif record.pod:
        pod = casting.pod(record.pod, f"{where}: pod")
    else:
        pod = casting.template(record.template, where)
    if record.namespace:
        pod = _in_namespace(pod, record.namespace)
    for number in range(first, first + record.count):
        own = record.name if record.name and record.count == 1 else ""
        base = record.name or pod.metadata.name
        yield named(pod, own or f"{base}-{number}", f"arrival/{number}")


def _in_namespace(pod: Pod, namespace: str) -> Pod:
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, namespace=namespace)
    )


def _times_s(records: Sequence[tuple[str, _Record]]) -> list[float]:
    """Return the times of records in seconds after the start."""
    absolute = [_date_s(each.time) if isinstance(each.time, str) else None for _, each in records]
    dates_s = [each for each in absolute if each is not None]
    if not dates_s:
        return [seconds(each.time, f"{where}: time") for where, each in records]
    if len(dates_s) < len(records):
        where = next(
            where for (where, _), each in zip(records, absolute, strict=True) if each is None
        )
        raise ObjectError(f"{where}: time: other records have a date, this one has none")
    start_s = min(dates_s)
    return [each - start_s for each in dates_s]


def _date_s(text: str) -> float | None:
    if "T" not in text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
