"""Converts any configuration that a kube-scheduler has read to KubeSchedulerConfiguration v1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kubesched.config import encoding, loading
from kubesched.config.args import ARGS_KINDS
from kubesched.config.legacy import fields, policy
from kubesched.config.legacy.messages import ARGS
from kubesched.config.legacy.plugin_sets import PluginSetWriter, Today, renamed, resolve
from kubesched.config.legacy.pruning import drop_default_args, drop_default_fields
from kubesched.config.legacy.reading import POLICY, OldConfiguration, read
from kubesched.config.legacy.releases import (
    DEFAULT_PROVIDER,
    KNOWN_THEN,
    V1ALPHA1,
    V1ALPHA2,
    V1BETA1,
    V1BETA3,
    OldProfile,
    default_points,
)
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.legacy.successors import replace_old_plugins, report_named
from kubesched.config.profiles import ALL_PLUGINS, MULTI_POINT
from kubesched.config.schema import CONFIGURATION
from kubesched.config.types import API_VERSION, KIND
from kubesched.errors import ConfigError

JsonObject = dict[str, Any]
#: Returns the text of the policy that a configuration names by its path.
ReadPolicy = Callable[[str], str]

_WITH_PROVIDERS: Final = (V1ALPHA1, V1ALPHA2, V1BETA1)


class Conversion(msgspec.Struct, frozen=True):
    """A configuration in v1, and the report of the conversion."""

    text: str
    report: ConversionReport


def convert(
    text: str,
    source: str,
    today: Today,
    *,
    provider: str = "",
    read_policy: ReadPolicy | None = None,
) -> Conversion:
    """Convert a configuration; raises ConfigError, which names the source."""
    try:
        report = ConversionReport()
        old = read(text, report)
        if old.is_current:
            report.note("this is v1 already: nothing was changed")
            return Conversion(text, report)
        return _Converter(today, report, read_policy).convert(old, provider)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def convert_provider(provider: str, today: Today) -> Conversion:
    """Convert an ``--algorithm-provider`` without a configuration."""
    report = ConversionReport(source=f"--algorithm-provider={provider}")
    profile = OldProfile(scheduler_name=None, points=default_points(V1BETA1, provider))
    return _Converter(today, report, None).finish({}, [profile], [[]])


class _Converter:
    def __init__(
        self, today: Today, report: ConversionReport, read_policy: ReadPolicy | None
    ) -> None:
        self._today = today
        self._report = report
        self._read_policy = read_policy

    def convert(self, old: OldConfiguration, provider: str) -> Conversion:
        if old.kind == POLICY:
            if provider:
                raise ConfigError("a policy and --algorithm-provider exclude each other")
            return self._convert_policy(old.fields)
        return self._convert_configuration(old, provider)

    def _convert_policy(self, said: JsonObject) -> Conversion:
        profile = policy.old_profile(said, self._today.points(), self._report)
        document = {"extenders": said["extenders"]} if said.get("extenders") else {}
        return self.finish(document, [profile], [[]])

    def _convert_configuration(self, old: OldConfiguration, provider: str) -> Conversion:
        document = old.fields
        if provider and old.version not in _WITH_PROVIDERS:
            raise ConfigError(f"--algorithm-provider does not go with {old.version}")
        algorithm = document.pop("algorithmSource", {})
        provider = provider or algorithm.get("provider", "") or DEFAULT_PROVIDER
        fields.upgrade(document, old.version, self._report)
        if old.version == V1BETA3:
            return self._finish_multi_point(document)
        if provider != DEFAULT_PROVIDER:
            self._report.became(
                f"algorithm provider {provider}", "score NodeResourcesFit MostAllocated"
            )
        said = document.pop("profiles", None) or [{}]
        profiles = []
        for each in said:
            self._about(each, said)
            if "policy" in algorithm:
                profiles.append(self._policy_profile(algorithm["policy"], each, document))
            else:
                profiles.append(self._old_profile(each, old.version, provider))
        return self.finish(document, profiles, [self._foreign_args(each) for each in said])

    def _about(self, profile: JsonObject, profiles: Sequence[object]) -> None:
        """Have the report name the profile, if there are several."""
        name = profile.get("schedulerName", "")
        self._report.subject = f"{name}: " if name and len(profiles) > 1 else ""

    def _old_profile(self, said: JsonObject, version: str, provider: str) -> OldProfile:
        given = said.get("plugins", {})
        profile = resolve(default_points(version, provider), given, version)
        profile.scheduler_name = said.get("schedulerName")
        profile.selector_spread_apart = version in {V1ALPHA1, V1ALPHA2}
        for config in said.get("pluginConfig", ()):
            if _is_in_tree(config):
                profile.args[config["name"]] = config.get("args") or {}
        report_named(profile, given, self._report)
        return profile

    def _policy_profile(
        self, source: JsonObject, said: JsonObject, document: JsonObject
    ) -> OldProfile:
        if said.get("plugins"):
            raise ConfigError("plugins and algorithmSource.policy exclude each other")
        path = source.get("file", {}).get("path", "")
        if self._read_policy is None:
            raise ConfigError("algorithmSource.policy names a policy that is not available")
        found = read(self._read_policy(path), ConversionReport())
        if found.kind != POLICY:
            raise ConfigError(f"algorithmSource.policy: a Policy is needed, not a {found.kind}")
        self._report.became("algorithmSource.policy", "the policy's predicates and priorities")
        if found.fields.get("extenders"):
            document["extenders"] = found.fields["extenders"]
        profile = policy.old_profile(found.fields, self._today.points(), self._report)
        profile.scheduler_name = said.get("schedulerName")
        for config in said.get("pluginConfig", ()):
            if _is_in_tree(config):
                profile.args.setdefault(config["name"], config.get("args") or {})
        return profile

    def _foreign_args(self, said: JsonObject) -> list[JsonObject]:
        return [config for config in said.get("pluginConfig", ()) if not _is_in_tree(config)]

    def finish(
        self,
        document: JsonObject,
        profiles: list[OldProfile],
        foreign_args: list[list[JsonObject]],
    ) -> Conversion:
        """Write profiles whose plugins are listed by point, and everything else."""
        document["profiles"] = []
        for profile, foreign in zip(profiles, foreign_args, strict=True):
            self._about({"schedulerName": profile.scheduler_name}, profiles)
            document["profiles"].append(self._written(profile, foreign))
        self._report.subject = ""
        self._note_newer_plugins()
        return self._checked(document)

    def _written(self, profile: OldProfile, foreign_args: list[JsonObject]) -> JsonObject:
        replace_old_plugins(profile, self._report)
        plugins = PluginSetWriter(profile, self._today, self._report).plugins()
        configs = [{"name": name, "args": args} for name, args in profile.args.items() if args]
        written = {
            "schedulerName": profile.scheduler_name,
            "plugins": plugins,
            "pluginConfig": [*configs, *foreign_args],
        }
        return {name: value for name, value in written.items() if value}

    def _finish_multi_point(self, document: JsonObject) -> Conversion:
        profiles = document.get("profiles", [])
        for profile in profiles:
            self._about(profile, profiles)
            if "plugins" in profile:
                profile["plugins"] = renamed(profile["plugins"], self._report)
                self._note_what_all_means(profile["plugins"])
        return self._checked(document)

    def _note_what_all_means(self, plugins: JsonObject) -> None:
        disabled = plugins.get(MULTI_POINT, {}).get("disabled", ())
        if {"name": ALL_PLUGINS} in disabled:
            self._report.note(
                f"{MULTI_POINT} disables all defaults, also those that came later: "
                f"{self._newer_plugins()}"
            )

    def _newer_plugins(self) -> str:
        default = self._today.points()
        names = (ref.name for refs in default.values() for ref in refs)
        return ", ".join(dict.fromkeys(name for name in names if name not in KNOWN_THEN))

    def _note_newer_plugins(self) -> None:
        self._report.note(
            f"{self._newer_plugins()} came later and stay enabled: they act on pods that ask for it"
        )

    def _checked(self, document: JsonObject) -> Conversion:
        """Write the document, and read it as kube-scheduler will."""
        gates = self._today.gates
        self._report.subject = ""
        drop_default_fields(document, gates, self._report)
        profiles = document.pop("profiles", [])
        for profile in profiles:
            self._about(profile, profiles)
            drop_default_args(profile, gates, self._report)
        if any(profiles):
            document["profiles"] = profiles
        document |= {"apiVersion": API_VERSION, "kind": KIND}
        if gates.enabled("StorageCapacityScoring"):
            self._report.subject = ""
            self._report.note(
                "VolumeBinding scores by storage capacity where it runs, because the feature gate "
                "StorageCapacityScoring is on"
            )
        text = encoding.dump(encoding.in_order(document, CONFIGURATION), sort_keys=False)
        loading.decode(text, "after conversion", gates=gates)
        return Conversion(text, self._report)


def _is_in_tree(config: JsonObject) -> bool:
    return config.get("name") in (*ARGS_KINDS, *ARGS)
