"""A question about a configuration, and how to write one down shortly."""

from __future__ import annotations

import enum
import json
from typing import Any

from msgspec import Struct

JsonObject = dict[str, Any]

HEADER: JsonObject = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
#: A server that nobody asks anything: without one, kube-scheduler does not build profiles.
CONNECTION: JsonObject = {"kubeconfig": "kubeconfig.yaml"}


class Words(enum.Enum):
    """What of a refusal is compared."""

    SAME = "the text"
    ANY_ORDER = "its parts, which come in an order that changes from run to run"
    ANY = "only that there is one"


class Case(Struct, frozen=True):
    """The text of a configuration file, and flags beside --config."""

    text: str
    flags: tuple[str, ...] = ()
    words: Words = Words.SAME


def case(
    *flags: str, words: Words = Words.SAME, connection: JsonObject | None = None, **given: object
) -> Case:
    """Ask about a configuration with these fields."""
    document = {"clientConnection": {**CONNECTION, **(connection or {})}, **given}
    return fields(document, *flags, words=words)


def fields(given: JsonObject, *flags: str, words: Words = Words.SAME) -> Case:
    """Ask about a configuration with these fields, whatever they are called."""
    document = {**HEADER, "clientConnection": CONNECTION, **given}
    return Case(json.dumps(document), flags, words)


def text(content: str, *flags: str, words: Words = Words.SAME) -> Case:
    """Ask about a file with the usual head and connection, and then this."""
    head = "".join(f"{key}: {value}\n" for key, value in HEADER.items())
    line = "clientConnection: {kubeconfig: kubeconfig.yaml}\n"
    return Case(head + line + content, flags, words)


def raw(content: str, *flags: str, words: Words = Words.SAME) -> Case:
    """Ask about a file with nothing but this."""
    return Case(content, flags, words)


def profiles(*each: JsonObject) -> Case:
    """Ask about profiles."""
    return case(profiles=list(each))


def plugins(*flags: str, **points: JsonObject) -> Case:
    """Ask about the plugin sets of the only profile."""
    return case(*flags, profiles=[{"plugins": points}])


def enabled(*names: str | tuple[str, int]) -> JsonObject:
    """Enable plugins at a point, some with a weight."""
    return {"enabled": [_plugin(each) for each in names]}


def disabled(*names: str) -> JsonObject:
    """Disable plugins at a point."""
    return {"disabled": [{"name": name} for name in names]}


def args(plugin: str, *flags: str, **fields: object) -> Case:
    """Ask about the arguments of a plugin."""
    return case(*flags, profiles=[{"pluginConfig": [{"name": plugin, "args": fields}]}])


def extenders(*each: JsonObject) -> Case:
    """Ask about extenders."""
    return case(extenders=list(each))


def gates(text: str) -> str:
    """Give the flag that sets gates."""
    return f"--feature-gates={text}"


def _plugin(name: str | tuple[str, int]) -> JsonObject:
    return {"name": name} if isinstance(name, str) else {"name": name[0], "weight": name[1]}
