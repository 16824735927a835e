"""The wire schema and the structs name the same fields."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.api import core, meta
from kubesched.config import args, profiles, schema, types
from kubesched.config.schema import ListOf, Message

STRUCTS: dict[str, type[msgspec.Struct]] = {
    "KubeSchedulerConfiguration": types.SchedulerConfiguration,
    "LeaderElectionConfiguration": types.LeaderElection,
    "ClientConnectionConfiguration": types.ClientConnection,
    "KubeSchedulerProfile": profiles.Profile,
    "Plugins": profiles.Plugins,
    "PluginSet": profiles.PluginSet,
    "Plugin": profiles.PluginRef,
    "PluginConfig": profiles.PluginConfig,
    "Extender": types.Extender,
    "ExtenderTLSConfig": types.ExtenderTLSConfig,
    "ExtenderManagedResource": types.ExtenderManagedResource,
    "UtilizationShapePoint": args.UtilizationShapePoint,
    "ResourceSpec": args.ResourceSpec,
    "ScoringStrategy": args.ScoringStrategy,
    "RequestedToCapacityRatioParam": args.RequestedToCapacityRatioParam,
    "NodeAffinity": core.NodeAffinity,
    "NodeSelector": core.NodeSelector,
    "NodeSelectorTerm": core.NodeSelectorTerm,
    "NodeSelectorRequirement": core.NodeSelectorRequirement,
    "PreferredSchedulingTerm": core.PreferredSchedulingTerm,
    "TopologySpreadConstraint": core.TopologySpreadConstraint,
    "LabelSelector": meta.LabelSelector,
    "LabelSelectorRequirement": meta.LabelSelectorRequirement,
    **{kind.__name__: kind for kind in args.ARGS_KINDS.values()},
}


def messages(message: Message) -> dict[str, Message]:
    """All messages that one is made of, itself included."""
    found = {message.name: message}
    for field in message.fields:
        part = field.type.item if isinstance(field.type, ListOf) else field.type
        if isinstance(part, Message):
            found |= messages(part)
    return found


MESSAGES = {name: part for kind in schema.KINDS.values() for name, part in messages(kind).items()}


def test_every_message_has_its_struct() -> None:
    assert set(MESSAGES) == set(STRUCTS)


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_fields_agree(name: str) -> None:
    wire = {field.name for field in MESSAGES[name].fields} - {"apiVersion", "kind"}
    struct = {info.encode_name for info in msgspec.structs.fields(STRUCTS[name])}

    assert wire == struct


def test_kinds_are_those_of_the_plugins_and_the_configuration() -> None:
    kinds = {kind.__name__ for kind in args.ARGS_KINDS.values()}

    assert set(schema.KINDS) == {types.KIND, *kinds}
    assert f"{schema.GROUP}/{schema.VERSION}" == types.API_VERSION
