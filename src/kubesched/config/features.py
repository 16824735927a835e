"""Feature gates.

``--feature-gates`` and ``--emulated-version`` are parsed to an immutable value:
``gates.enabled("NodeDeclaredFeatures")``. ``config.gate_table`` has all gates with their stages by
version; the stage at the emulated version counts, as far as ``--min-compatibility-version`` allows
it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, Self

import msgspec

from kubesched import KUBERNETES_VERSION
from kubesched.config.gate_table import DEPENDENCIES, GATES
from kubesched.errors import ConfigError

#: major and minor
Version = tuple[int, int]

_MAJOR, _MINOR = (int(number) for number in KUBERNETES_VERSION.removeprefix("v").split(".")[:2])

BINARY_VERSION: Final[Version] = (_MAJOR, _MINOR)
#: the oldest version that can be emulated: three minor versions back
OLDEST_EMULATED_VERSION: Final[Version] = (_MAJOR, _MINOR - 3)

_DEFAULT_MIN_COMPATIBILITY: Final[Version] = (_MAJOR, _MINOR - 1)

ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"

_COMPONENT: Final = "kube"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_UINT64_DIGITS: Final = 20
_VERSION: Final = re.compile(r"\s*v?(?P<numbers>[0-9]+(?:\.[0-9]+)*)(?P<extra>.*)", re.DOTALL)
_EXTRA: Final = re.compile(
    r"(?:-(?P<release>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


class Stage(enum.Enum):
    """Maturity of a gate; the value is what metrics and help texts print."""

    PRE_ALPHA = "PRE-ALPHA"
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class GateSpec(NamedTuple):
    """The stage and the default of a gate, from one version on."""

    since: Version
    stage: Stage
    default: bool
    locked: bool = False
    #: counts only if all components are at least of this version
    min_compatibility: Version = (0, 0)


class GateState(NamedTuple):
    """The stage and the value of a gate."""

    name: str
    stage: Stage
    enabled: bool


_UNBORN: Final = GateSpec((0, 0), Stage.PRE_ALPHA, default=False)


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all feature gates; immutable."""

    #: the gates that were set, AllAlpha and AllBeta included
    explicit: Mapping[str, bool]
    #: every known gate, and whether it is on
    values: Mapping[str, bool]
    emulated_version: Version = BINARY_VERSION
    #: the oldest version of other components to be compatible with
    min_compatibility_version: Version = _DEFAULT_MIN_COMPATIBILITY

    @classmethod
    def parse(
        cls, text: str = "", *, emulated_version: str = "", min_compatibility_version: str = ""
    ) -> Self:
        """Read ``--feature-gates`` ("A=true,kube:B=false"; join repeated flags with commas)."""
        gates = cls.asked(
            text,
            emulated_version=emulated_version,
            min_compatibility_version=min_compatibility_version,
        )
        _raise_all(gates.problems())
        return gates

    @classmethod
    def asked(
        cls, text: str = "", *, emulated_version: str = "", min_compatibility_version: str = ""
    ) -> Self:
        """Parse the flags without raising for invalid values: the caller reads ``problems``."""
        emulated = _parse_versions(emulated_version)
        oldest_peer = _parse_versions(min_compatibility_version)
        return cls._set(_parse_pairs(text), emulated, oldest_peer)

    @classmethod
    def of(
        cls,
        explicit: Mapping[str, bool] | None = None,
        *,
        emulated_version: Version | None = None,
        min_compatibility_version: Version | None = None,
    ) -> Self:
        """Return the defaults with a mapping of names to values applied."""
        gates = cls._set(explicit or {}, emulated_version, min_compatibility_version)
        _raise_all(gates.problems())
        return gates

    @classmethod
    def _set(
        cls, asked: Mapping[str, bool], emulated: Version | None, oldest_peer: Version | None
    ) -> Self:
        emulated = emulated or BINARY_VERSION
        oldest_peer = oldest_peer or _previous(emulated)
        specs = {name: _spec_at(name, emulated, oldest_peer) for name in _known_gates()}
        _check_settable(asked, specs, versions=(emulated, oldest_peer))
        values = _resolve(asked, specs)
        if asked:
            _raise_all(_dependency_problems(values))
        return cls(
            explicit=dict(asked),
            values=values,
            emulated_version=emulated,
            min_compatibility_version=oldest_peer,
        )

    def problems(self) -> list[str]:
        """List what is wrong with the versions, and with gates that need others."""
        versions = _version_problems(self.emulated_version, self.min_compatibility_version)
        return versions + _dependency_problems(self.values)

    def retiring(self) -> Iterator[GateState]:
        """Return the gates that were set although they are deprecated or GA."""
        for state in self.states():
            retires = state.stage in {Stage.GA, Stage.DEPRECATED}
            if state.name in self.explicit and retires:
                yield state

    def spec(self, name: str) -> GateSpec:
        """Return the stage of a gate at the emulated version."""
        return _spec_at(name, self.emulated_version, self.min_compatibility_version)

    def enabled(self, name: str) -> bool:
        """Return whether a gate is on; an unknown name is a bug, and raises KeyError."""
        return self.values[name]

    def replace(self, **changes: bool) -> Self:
        """Return gates with other values of the named ones."""
        return self.of(
            {**self.explicit, **changes},
            emulated_version=self.emulated_version,
            min_compatibility_version=self.min_compatibility_version,
        )

    def states(self) -> Iterator[GateState]:
        """Return name, stage and value of every gate that exists at the emulated version."""
        for name, value in self.values.items():
            stage = self.spec(name).stage
            if stage is not Stage.PRE_ALPHA:
                yield GateState(name, stage, value)

    def help_lines(self) -> list[str]:
        """Return the lines of ``--help`` about gates that can be set."""
        lines = []
        for name in self.values:
            now = self.spec(name)
            with_new_peers = _spec_at(name, self.emulated_version, self.emulated_version)
            texts = [_settable_text(name, now)]
            if with_new_peers != now:
                oldest_peer = dotted(with_new_peers.min_compatibility)
                texts.append(
                    f"{_settable_text(name, with_new_peers)} "
                    f"if --min-compatibility-version>={oldest_peer}"
                )
            if now.stage in {Stage.ALPHA, Stage.BETA}:
                lines.append(f"{_COMPONENT}:{', or '.join(texts)}")
        return sorted(lines)


def _settable_text(name: str, spec: GateSpec) -> str:
    return f"{name}=true|false ({spec.stage.value} - default={_go_bool(spec.default)})"


def _spec_at(name: str, emulated: Version, oldest_peer: Version) -> GateSpec:
    current = _UNBORN
    for spec in _known_gates()[name]:
        if spec.since <= emulated and spec.min_compatibility <= oldest_peer:
            current = spec
    return current


@cache
def _known_gates() -> Mapping[str, tuple[GateSpec, ...]]:
    special = {
        ALL_ALPHA: (GateSpec((0, 0), Stage.ALPHA, default=False),),
        ALL_BETA: (GateSpec((0, 0), Stage.BETA, default=False),),
    }
    table = {
        name: tuple(_parse_spec(text) for text in stages.split("; "))
        for name, stages in GATES.items()
    }
    return dict(sorted({**special, **table}.items()))


def _parse_spec(text: str) -> GateSpec:
    since, stage, default, *more = text.split()
    oldest_peer = [word.partition("=")[2] for word in more if "=" in word]
    return GateSpec(
        since=_numbers(since),
        stage=Stage[stage.upper()],
        default=default == "on",
        locked="locked" in more,
        min_compatibility=_numbers(oldest_peer[0]) if oldest_peer else (0, 0),
    )


def _numbers(dotted: str) -> Version:
    major, minor = dotted.split(".")
    return int(major), int(minor)


def _parse_pairs(text: str) -> dict[str, bool]:
    pairs: dict[str, bool] = {}
    prefixes = set()
    for item in filter(None, text.split(",")):
        component, colon, pair = (part.strip() for part in item.partition(":"))
        if not colon:
            component, pair = "", component
        prefixes.add(component)
        if component not in {"", _COMPONENT}:
            raise ConfigError(f"component not registered: {component}")
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise ConfigError(f"missing bool value for {name}")
        if value not in _TRUE | _FALSE:
            raise ConfigError(
                f"invalid value of {name}={value}, "
                f'err: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        pairs[name] = value in _TRUE
    if len(prefixes) > 1:
        raise ConfigError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, "
            "do not mix use"
        )
    return pairs


def check_reported_version(text: str) -> None:
    """Reject a value of ``--version=`` that differs from our version in more than the suffix."""
    if text == KUBERNETES_VERSION:
        return
    ours, _ = _parse_numbers(KUBERNETES_VERSION)
    theirs, extra = _parse_numbers(text)
    if len(theirs) != 3:
        raise ConfigError(f'illegal version string "{text}"')
    for number in theirs:
        _refuse_zero_prefix(number, text)
    found = _EXTRA.fullmatch(extra)
    if found is None:
        raise ConfigError(f'could not parse pre-release/metadata ({extra}) in version "{text}"')
    for part in (found["release"] or "").split("."):
        if part.isdigit():
            _refuse_zero_prefix(part, text)
    if theirs != ours:
        raise ConfigError(
            f'version "{text}" must match major/minor/patch of default version '
            f'"{KUBERNETES_VERSION}"'
        )


def _parse_versions(text: str) -> Version | None:
    """Parse ``[kube=]major.minor``; "" means not given."""
    versions: dict[str, Version] = {}
    for item in filter(None, text.split(",")):
        component, number = _COMPONENT, item
        if "=" in item:
            component, number = (part.strip() for part in item.split("=", 1))
        numbers, _ = _parse_numbers(number)
        if len(numbers) < 2:
            raise ConfigError(f'illegal version string "{number}"')
        _refuse_zero_prefix(numbers[0], number)
        if int(numbers[2] if len(numbers) > 2 else 0):
            shown = ".".join(str(int(part)) for part in numbers)
            raise ConfigError(f"patch version not allowed, got: {component}={shown}")
        version = int(numbers[0]), int(numbers[1])
        if component in versions:
            raise ConfigError(
                f"duplicate version flag, {component}={dotted(versions[component])} "
                f"and {component}={dotted(version)}"
            )
        versions[component] = version
    for component in versions:
        if component != _COMPONENT:
            raise ConfigError(f"component not registered: {component}")
    return versions.get(_COMPONENT)


def _parse_numbers(text: str) -> tuple[list[str], str]:
    """Split a version into its numbers and its suffix."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ConfigError(f'could not parse "{text}" as version')
    numbers = match["numbers"].split(".")
    for number in numbers:
        if len(number) > _UINT64_DIGITS or int(number) >= 2**64:
            raise ConfigError(
                f'illegal non-numeric version component "{number}" in "{text}": '
                f'strconv.ParseUint: parsing "{number}": value out of range'
            )
    return numbers, match["extra"]


def _refuse_zero_prefix(number: str, text: str) -> None:
    if number.startswith("0") and number != "0":
        raise ConfigError(f'illegal zero-prefixed version component "{number}" in "{text}"')


def _version_problems(emulated: Version, oldest_peer: Version) -> list[str]:
    floor = dotted(OLDEST_EMULATED_VERSION)
    errors = []
    if not OLDEST_EMULATED_VERSION <= emulated <= BINARY_VERSION:
        errors.append(
            f"emulation version {dotted(emulated)} is not between "
            f"[{floor}, {dotted(BINARY_VERSION)}.0]"
        )
    if not OLDEST_EMULATED_VERSION <= oldest_peer <= emulated:
        errors.append(
            f"minCompatibilityVersion version {dotted(oldest_peer)} is not between "
            f"[{floor}, {dotted(emulated)}]"
        )
    return errors


def _check_settable(
    asked: Mapping[str, bool], specs: Mapping[str, GateSpec], *, versions: tuple[Version, Version]
) -> None:
    errors = []
    for name, value in sorted(asked.items()):
        spec = specs.get(name)
        if spec is None:
            errors.append(f"unrecognized feature gate: {name}")
            break
        refusal = f"cannot set feature gate {name} to {_go_bool(value)}, feature is "
        if spec.locked and spec.default != value:
            errors.append(f"{refusal}locked to {_go_bool(spec.default)}")
        elif spec.stage is Stage.PRE_ALPHA:
            emulated, oldest_peer = (dotted(version) for version in versions)
            errors.append(
                f"{refusal}PreAlpha at emulated version {emulated}, "
                f"min compatibility version {oldest_peer}"
            )
    _raise_all(errors)


def _resolve(asked: Mapping[str, bool], specs: Mapping[str, GateSpec]) -> dict[str, bool]:
    """Return the value of every gate: as set, else by AllAlpha or AllBeta, else the default."""
    of_stage = {
        stage: asked[special]
        for stage, special in ((Stage.ALPHA, ALL_ALPHA), (Stage.BETA, ALL_BETA))
        if special in asked
    }
    return {
        name: asked[name]
        if name in asked
        else spec.default
        if name in {ALL_ALPHA, ALL_BETA}
        else of_stage.get(spec.stage, spec.default)
        for name, spec in specs.items()
    }


def _dependency_problems(values: Mapping[str, bool]) -> list[str]:
    errors = []
    for name, needed in DEPENDENCIES.items():
        disabled = [other for other in needed if not values[other]]
        if values[name] and disabled:
            errors.append(
                f"{name} is enabled, but depends on features that are disabled: "
                f"[{' '.join(disabled)}]"
            )
    return errors


def _raise_all(errors: list[str]) -> None:
    if errors:
        raise ConfigError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _previous(version: Version) -> Version:
    return max((version[0], version[1] - 1), OLDEST_EMULATED_VERSION)


def dotted(version: Version) -> str:
    """Format a version as in flags and messages."""
    return f"{version[0]}.{version[1]}"


def _go_bool(value: bool) -> str:
    return "true" if value else "false"
