"""Identifies and decodes an old configuration."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.config import documents, loading, strict
from kubesched.config.documents import Document, Json
from kubesched.config.field_errors import shown
from kubesched.config.legacy import fields, messages
from kubesched.config.legacy.releases import OLD_VERSIONS, V1ALPHA1, V1ALPHA2
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.schema import FIRST_GROUP, GROUP, KINDS, VERSION, Message
from kubesched.config.types import KIND
from kubesched.errors import ConfigError

JsonObject = dict[str, Any]

POLICY: Final = "Policy"
#: The key of a policy in a ConfigMap.
POLICY_KEY: Final = "policy.cfg"
#: Fields that only a policy has: some were written without a kind.
_POLICY_FIELDS: Final = frozenset(("predicates", "priorities"))


class OldConfiguration(msgspec.Struct):
    """A Policy, or a KubeSchedulerConfiguration, as plain JSON without nulls."""

    kind: str
    #: "" of a Policy
    version: str
    fields: JsonObject

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to convert."""
        return self.version == VERSION


def read(text: str, report: ConversionReport) -> OldConfiguration:
    """Decode a configuration of any version; unknown fields are dropped and reported."""
    document = documents.parse(text)
    root = _without_nulls(documents.plain(document.root))
    if isinstance(root, dict) and root.get("kind") == "ConfigMap":
        return read(_policy_text(root), report)
    kind, version = _identified(document, root)
    report.source = kind if kind == POLICY else f"{kind} {GROUP}/{version}"
    for error in document.yaml_errors:
        report.note(f"the last one counts: {error}")
    old = OldConfiguration(kind, version, root)
    if not old.is_current:
        old.fields = _checked(old, report)
    return old


def _identified(document: Document, root: Json) -> tuple[str, str]:
    group, version, kind = loading.identify(document.root)
    if kind == POLICY or (not kind and isinstance(root, dict) and _POLICY_FIELDS & root.keys()):
        return POLICY, ""
    if kind == KIND and group == GROUP and version in (*OLD_VERSIONS, VERSION):
        return kind, version
    if kind == KIND and (group, version) == (FIRST_GROUP, V1ALPHA1):
        return kind, version
    what = f"{group}/{version}".strip("/")
    raise ConfigError(
        f"a {KIND} or a {POLICY} is needed, not kind {shown(kind)} of version {shown(what)}"
    )


def _policy_text(config_map: JsonObject) -> str:
    data = config_map.get("data") or {}
    text = data.get(POLICY_KEY) if isinstance(data, dict) else None
    if not isinstance(text, str):
        keys = ", ".join(data) if isinstance(data, dict) and data else "none"
        raise ConfigError(f"the ConfigMap has no key {POLICY_KEY}; its keys: {keys}")
    return text


def _checked(old: OldConfiguration, report: ConversionReport) -> JsonObject:
    if old.kind == POLICY or old.version in (V1ALPHA1, V1ALPHA2):
        extenders = old.fields.get("extenders", ())
        if isinstance(extenders, list) and all(isinstance(each, dict) for each in extenders):
            old.fields["extenders"] = fields.modern_extenders(extenders, report)
    message = messages.POLICY if old.kind == POLICY else messages.CONFIGURATIONS[old.version]
    checked = _known(old.fields, message, "", report)
    for profile in (*checked.get("profiles", ()), checked):
        for config in profile.get("pluginConfig", ()):
            _check_args(config, report)
    return checked


def _known(value: JsonObject, message: Message, where: str, report: ConversionReport) -> JsonObject:
    """Check the types of an object; return it without unknown fields."""
    unknown: list[str] = []
    known: JsonObject = messages.without_unknown(value, message, unknown)
    strict.decode(documents.tree(known), message)
    for field in unknown:
        report.has_no_counterpart(f"{where}{field}", f"{message.name} never had such a field")
    return known


def _check_args(config: JsonObject, report: ConversionReport) -> None:
    name, args = config.get("name", ""), config.get("args")
    message = messages.ARGS.get(name) or KINDS.get(f"{name}Args")
    if args is None:
        return
    if message is not None:
        if not isinstance(args, dict):
            raise ConfigError(f"the args of plugin {name} have to be an object")
        args = _known(args, message, f"{name} ", report)
    if isinstance(args, dict) and str(args.get("apiVersion", "")).startswith(f"{GROUP}/"):
        # Arguments without a version have that of the configuration.
        args = {field: args[field] for field in args if field not in {"apiVersion", "kind"}}
    config["args"] = args


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value
