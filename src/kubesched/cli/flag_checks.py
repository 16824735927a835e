"""Validation of flags by group, with kube-scheduler's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubesched.cli.flag_tls import cipher_error, curve_error, version_error
from kubesched.config.features import FeatureGates
from kubesched.config.field_errors import forbidden, invalid
from kubesched.config.types import LeaderElection
from kubesched.logs import JSON, TEXT, LoggingOptions
from kubesched.logs import quote as quoted
from kubesched.scheduler.checked_state import CheckedState
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
)

_LARGEST_PORT: Final = 65535
#: minimum ratio of renew deadline and retry period
_JITTER_FACTOR: Final = 1.2
#: Removed lock types with kube-scheduler's messages; one differs from the others.
_REMOVED_LOCKS: Final = {
    **{
        lock: f"{lock} lock is removed, migrate to leases"
        for lock in ("endpoints", "configmaps", "endpointsleases")
    },
    "configmapsleases": "configmapsleases lock is removed, migrated to leases",
}
_LARGEST_BUDGET: Final = 0.5

_STANDARD_HEADERS: Final = (
    ("username-headers", "requestheader_username_headers", "X-Remote-User", "header"),
    ("group-headers", "requestheader_group_headers", "X-Remote-Group", "header"),
    (
        "extra-headers-prefix",
        "requestheader_extra_headers_prefix",
        "X-Remote-Extra-",
        "header prefix",
    ),
)
_UNNOTICED: Final = "API aggregation will not work"


def logging_errors(
    options: LoggingOptions,
    gates: FeatureGates,
    *,
    flush_frequency: object,
    alpha: Mapping[str, object],
) -> list[str]:
    """Validate the group logs; ``alpha`` has the flags that need a gate, by path."""
    errors = []
    if options.flush_frequency_s <= 0:
        errors.append(invalid("flushFrequency", flush_frequency, "Must be greater than zero"))
    if options.format not in {TEXT, JSON}:
        errors.append(invalid("format", options.format, "Unsupported log format"))
    elif options.format == JSON and not gates.enabled("LoggingBetaOptions"):
        detail = "Log format json is disabled, see LoggingBetaOptions feature"
        errors.append(forbidden("format", detail))
    if options.vmodule and options.format not in {"", TEXT}:
        errors.append(forbidden("vmodule", "Only supported for text log format"))
    if not gates.enabled("LoggingAlphaOptions"):
        errors += [
            forbidden(f"options.{path}", "Feature LoggingAlphaOptions is disabled")
            for path, value in alpha.items()
            if value
        ]
    return errors


def serving_errors(serving: ServingOptions) -> list[str]:
    """Validate the group secure serving, as far as possible before serving."""
    port = serving.secure_port
    if 0 <= port <= _LARGEST_PORT:
        return []
    # For a port that is too large, kube-scheduler prints the wrong sentence.
    lowest, zero = (
        (0, "0 for turning off secure port") if port < 0 else (1, "It cannot be turned off with 0")
    )
    limits = f"between {lowest} and {_LARGEST_PORT}, inclusive"
    return [f"--secure-port {port} must be {limits}. {zero}"]


def authentication_errors(options: AuthenticationOptions, gates: FeatureGates) -> list[str]:
    """Validate the group authentication."""
    checked = (
        ("username-headers", options.requestheader_username_headers),
        ("group-headers", options.requestheader_group_headers),
        ("extra-headers-prefix", options.requestheader_extra_headers_prefix),
        ("allowed-names", options.requestheader_allowed_names),
    )
    errors = [
        f'empty value in "requestheader-{name}"'
        for name, values in checked
        if not all(value.strip() for value in values)
    ]
    uid_headers = options.requestheader_uid_headers
    flag = "--requestheader-uid-headers"
    if not uid_headers:
        return errors
    if not gates.enabled("RemoteRequestHeaderUID"):
        return [*errors, f'{flag} requires the "RemoteRequestHeaderUID" feature to be enabled']
    if not all(value.strip() for value in uid_headers):
        errors.append('empty value in "requestheader-uid-headers"')
    if not _has(uid_headers, "X-Remote-Uid"):
        errors.append(
            f"{flag} is set without specifying the standard X-Remote-Uid header - {_UNNOTICED}"
        )
    return errors


def authentication_remarks(options: AuthenticationOptions) -> list[str]:
    """Return warnings about the group authentication."""
    return [
        f"--requestheader-{flag} is set without specifying the standard {header} {kind} - "
        f"{_UNNOTICED}"
        for flag, attribute, header, kind in _STANDARD_HEADERS
        if getattr(options, attribute) and not _has(getattr(options, attribute), header)
    ]


def tls_error(serving: ServingOptions) -> str:
    """Return the error about ciphers, curves or versions, if any."""
    return (
        cipher_error(serving.tls_cipher_suites)
        or curve_error(serving.tls_curve_preferences)
        or version_error(serving.tls_min_version)
    )


def paths_error(options: AuthorizationOptions) -> str:
    """Return the error about --authorization-always-allow-paths, if any."""
    for path in options.always_allow_paths:
        bare = path.removeprefix("/")
        if "*" in bare[:-1]:
            return f"only trailing * allowed in {quoted(bare)}"
    return ""


def lock_error(election: LeaderElection) -> str:
    """Return the error about the lock of leader election, if any."""
    lock = election.resource_lock
    if not election.leader_elect or lock == "leases":
        return ""
    why = _REMOVED_LOCKS.get(lock, f"Invalid lock-type {lock}")
    return f"couldn't create resource lock: {why}"


def elector_error(election: LeaderElection) -> str:
    """Return the error about the durations of leader election, if any."""
    lease, renew, retry = (
        each.nanoseconds
        for each in (election.lease_duration, election.renew_deadline, election.retry_period)
    )
    checks = (
        (lease > renew, "leaseDuration must be greater than renewDeadline"),
        (
            renew > int(_JITTER_FACTOR * retry),
            "renewDeadline must be greater than retryPeriod*JitterFactor",
        ),
        (lease > 0, "leaseDuration must be greater than zero"),
        (renew > 0, "renewDeadline must be greater than zero"),
        (retry > 0, "retryPeriod must be greater than zero"),
    )
    if not election.leader_elect:
        return ""
    return next((f"couldn't create leader elector: {why}" for fine, why in checks if not fine), "")


def budget_errors(budget: float) -> list[str]:
    """Validate --queue-check-budget."""
    if 0 <= budget <= _LARGEST_BUDGET:
        return []
    return [f"--queue-check-budget {budget:g} must be between 0 and {_LARGEST_BUDGET}, inclusive"]


def binding_check_errors(checked: str) -> list[str]:
    """Validate --check-before-binding."""
    known = [each.value for each in CheckedState]
    if checked in known:
        return []
    return [f'--check-before-binding "{checked}" must be one of {", ".join(known)}']


def _has(headers: Sequence[str], header: str) -> bool:
    return header.lower() in (each.lower() for each in headers)
