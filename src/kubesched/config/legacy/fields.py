"""Converts the fields of old KubeSchedulerConfigurations, version by version.

Each step converts a version to the next one, in place, and reports it. `plugin_sets` converts the
plugins of profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kubesched.config.args import LIST_DEFAULTING
from kubesched.config.durations import Duration
from kubesched.config.legacy.releases import (
    OLD_VERSIONS,
    V1ALPHA1,
    V1ALPHA2,
    V1BETA1,
    V1BETA2,
    V1BETA3,
)
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.schema import CONFIGURATION, ListOf, Message
from kubesched.errors import ConfigError

JsonObject = dict[str, Any]

_ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
_LEASES: Final = "leases"


def upgrade(document: JsonObject, version: str, report: ConversionReport) -> None:
    """Convert the fields of a configuration from their version to v1, in place."""
    for each in OLD_VERSIONS[OLD_VERSIONS.index(version) :]:
        _STEPS[each](document, report)
    _use_leases(document, report)


def _from_v1alpha1(document: JsonObject, report: ConversionReport) -> None:
    profile: JsonObject = {}
    for field in ("schedulerName", "plugins", "pluginConfig"):
        if field in document:
            profile[field] = document.pop(field)
            report.became(field, f"profiles[0].{field}")
    plugins = profile.get("plugins", {})
    if "postFilter" in plugins:
        plugins["preScore"] = plugins.pop("postFilter")
        report.became("plugins.postFilter", "plugins.preScore: it ran before scoring")
    if "hardPodAffinitySymmetricWeight" in document:
        weight = document.pop("hardPodAffinitySymmetricWeight")
        _set_argument(profile, "InterPodAffinity", "hardPodAffinityWeight", weight)
        report.became(
            f"hardPodAffinitySymmetricWeight {weight}",
            f"InterPodAffinity hardPodAffinityWeight {weight}",
        )
    document["profiles"] = [profile]
    _rename_lock(document.get("leaderElection", {}), report)
    domains = document.pop("failureDomains", None)
    if domains:
        report.has_no_counterpart(
            f"failureDomains {domains}", "pod affinity has to name its topologyKey since v1.6"
        )


def _rename_lock(election: JsonObject, report: ConversionReport) -> None:
    for old, new in (
        ("lockObjectNamespace", "resourceNamespace"),
        ("lockObjectName", "resourceName"),
    ):
        value = election.pop(old, "")
        if not value:
            continue
        if election.get(new, value) not in {"", value}:
            raise ConfigError(
                f"leaderElection.{old} is {value}, but leaderElection.{new} is {election[new]}"
            )
        election[new] = value
        report.became(f"leaderElection.{old}", f"leaderElection.{new}")


def _from_v1alpha2(document: JsonObject, report: ConversionReport) -> None:
    for profile in _profiles(document):
        plugins = profile.get("plugins", {})
        if "unreserve" in plugins:
            _join_reserve(plugins, report)
    if document.pop("disablePreemption", False):
        for profile in _profiles(document, make=True):
            point = profile.setdefault("plugins", {}).setdefault("postFilter", {})
            point.setdefault("disabled", []).append({"name": "DefaultPreemption"})
        report.became("disablePreemption true", "plugin DefaultPreemption disabled")
    seconds = document.pop("bindTimeoutSeconds", None)
    if seconds is not None:
        for profile in _profiles(document, make=True):
            _set_argument(profile, "VolumeBinding", "bindTimeoutSeconds", seconds)
        report.became(
            f"bindTimeoutSeconds {seconds}", f"VolumeBinding bindTimeoutSeconds {seconds}"
        )


def _join_reserve(plugins: JsonObject, report: ConversionReport) -> None:
    """Move plugins of unreserve to reserve, which has both methods now."""
    unreserve = plugins.pop("unreserve")
    reserve = plugins.setdefault("reserve", {})
    for field in ("enabled", "disabled"):
        present = [ref.get("name") for ref in reserve.get(field, ())]
        added = [ref for ref in unreserve.get(field, ()) if ref.get("name") not in present]
        if added:
            reserve[field] = [*reserve.get(field, ()), *added]
    report.became("plugins.unreserve", "plugins.reserve: one plugin reserves and unreserves")


def _from_v1beta1(document: JsonObject, report: ConversionReport) -> None:
    for profile in _profiles(document):
        for config in profile.get("pluginConfig", ()):
            args = config.get("args") or {}
            if (
                config.get("name") == "PodTopologySpread"
                and args.get("defaultConstraints")
                and not args.get("defaultingType")
            ):
                args["defaultingType"] = LIST_DEFAULTING
                report.became(
                    "PodTopologySpread defaultConstraints", "the same, with defaultingType List"
                )


def _from_v1beta2(document: JsonObject, report: ConversionReport) -> None:
    for field in _ADDRESSES:
        address = document.pop(field, "")
        host, _, port = address.rpartition(":")
        if not address or port == "0":
            continue
        report.has_no_counterpart(
            f"{field} {address}",
            f"health checks and metrics are served over HTTPS: --bind-address={host or '0.0.0.0'} "  # noqa: S104
            "and --secure-port (10259)",
        )


def _from_v1beta3(document: JsonObject, report: ConversionReport) -> None:
    """Do nothing: only plugins changed."""


_STEPS: Final[dict[str, Callable[[JsonObject, ConversionReport], None]]] = {
    V1ALPHA1: _from_v1alpha1,
    V1ALPHA2: _from_v1alpha2,
    V1BETA1: _from_v1beta1,
    V1BETA2: _from_v1beta2,
    V1BETA3: _from_v1beta3,
}


def _use_leases(document: JsonObject, report: ConversionReport) -> None:
    election = document.get("leaderElection", {})
    lock = election.get("resourceLock", "")
    if lock in {"", _LEASES}:
        return
    del election["resourceLock"]
    report.became(f"leaderElection.resourceLock {lock}", f"{_LEASES}, the only lock there is")
    if not lock.endswith(_LEASES):
        report.note(
            f"a scheduler that locks {lock} and one that locks {_LEASES} can both lead: stop the "
            f"old one first, or let it run with {lock}{_LEASES} in between"
        )


def modern_extenders(extenders: list[JsonObject], report: ConversionReport) -> list[JsonObject]:
    """Give extenders of a Policy or of v1alpha2 in the form of v1.

    Their fields were read without regard to case, and their timeout was a number of nanoseconds.
    """
    message = next(f.type for f in CONFIGURATION.fields if f.name == "extenders")
    if not isinstance(message, ListOf) or not isinstance(message.item, Message):
        raise TypeError("extenders is not a list of messages")
    return [_modern_extender(each, message.item, report) for each in extenders]


def _modern_extender(
    extender: JsonObject, message: Message, report: ConversionReport
) -> JsonObject:
    modern = _spelled(extender, message, report)
    timeout = modern.get("httpTimeout")
    if isinstance(timeout, int):
        modern["httpTimeout"] = str(Duration(timeout))
        report.became(f"extender httpTimeout {timeout}", modern["httpTimeout"])
    return modern


def _spelled(value: JsonObject, message: Message, report: ConversionReport) -> JsonObject:
    """Return an object with the message's spelling of field names."""
    fields = {field.name.lower(): field for field in message.fields}
    spelled: JsonObject = {}
    for name, part in value.items():
        field = fields.get(name.lower())
        if field is None:
            spelled[name] = part
            continue
        if field.name != name:
            report.became(f"extender {name}", field.name)
        if isinstance(field.type, Message) and isinstance(part, dict):
            spelled[field.name] = _spelled(part, field.type, report)
        else:
            spelled[field.name] = part
    return spelled


def _profiles(document: JsonObject, *, make: bool = False) -> Iterator[JsonObject]:
    if make and not document.get("profiles"):
        document["profiles"] = [{}]
    yield from document.get("profiles", ())


def _set_argument(profile: JsonObject, plugin: str, field: str, value: object) -> None:
    """Set an argument, unless the plugin's own arguments have it."""
    configs = profile.setdefault("pluginConfig", [])
    config = next((each for each in configs if each.get("name") == plugin), None)
    if config is None:
        config = {"name": plugin}
        configs.append(config)
    config["args"] = {field: value, **(config.get("args") or {})}
