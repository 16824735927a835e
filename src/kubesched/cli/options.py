"""The options of a command line, validated and complete.

    arguments ──> flags ──> gates ──> logging ──> other groups ──> configuration ──> CommandOptions

The order is kube-scheduler's, because it decides which error is reported first: gates, then
logging, then all other flags together, then the configuration. Files are read, none is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api import quantity
from kubesched.cli import flag_checks
from kubesched.cli.flag_kinds import VersionFlag
from kubesched.cli.flag_table import FLAGS
from kubesched.cli.flags import ParsedFlags
from kubesched.config import loading
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates, Stage, Version
from kubesched.config.field_errors import aggregate
from kubesched.config.gate_effects import without_effect
from kubesched.config.types import LeaderElection, SchedulerConfiguration
from kubesched.errors import ConfigError, UsageError
from kubesched.logs import TEXT, LoggingOptions, quote
from kubesched.metrics.options import MetricsOptions
from kubesched.recording.options import RecordingOptions
from kubesched.scheduler.checked_state import CheckedState
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
)
from kubesched.tracing import configuration as tracing_configuration
from kubesched.tracing.configuration import TracingConfiguration

COMMAND: Final = "kube-scheduler"

#: Flags that have no effect with a configuration file.
_WITHOUT_CONFIG: Final = (
    "contention-profiling",
    "kube-api-burst",
    "kube-api-content-type",
    "kube-api-qps",
    "kubeconfig",
    "profiling",
)


class Note(msgspec.Struct, frozen=True):
    """A line to log at startup: a warning, or a structured line."""

    message: str
    fields: Mapping[str, Any] | None = None


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of the command."""

    serving: ServingOptions
    authentication: AuthenticationOptions
    authorization: AuthorizationOptions
    logging: LoggingOptions
    metrics: MetricsOptions
    gates: FeatureGates
    config: SchedulerConfiguration
    #: "" or the configuration file
    config_file: str
    #: "" or the file to write the configuration to, instead of scheduling
    write_config_to: str
    #: "" or an address that overrides the kubeconfig's
    master: str
    #: how long a pod stays parked if nothing wakes it
    max_unschedulable_s: float
    #: None breaks ties differently in every run
    seed: int | None
    #: share of a CPU
    queue_check_budget: float
    #: what is checked directly before a binding
    check_before_binding: CheckedState = CheckedState.NONE
    recording: RecordingOptions
    #: None: nothing is traced
    tracing: TracingConfiguration | None = None
    #: plugin files, FILE or FILE:CLASS
    plugin_files: tuple[str, ...]
    #: whether the web page is served
    web_ui: bool = False
    #: the reported version
    reported_version: str
    #: every flag by name, in order, with its value as text
    flag_values: Mapping[str, str]
    notes: tuple[Note, ...] = ()

    @property
    def emulated_version(self) -> Version:
        """The emulated Kubernetes version."""
        return self.gates.emulated_version

    @property
    def min_compatibility_version(self) -> Version:
        """The oldest compatible version of other components."""
        return self.gates.min_compatibility_version


def make_options(arguments: Sequence[str]) -> CommandOptions:
    """Parse and validate a command line.

    Raises UsageError if it cannot be parsed, ConfigError if it is invalid.
    """
    flags = FLAGS.parse(arguments)
    refuse_arguments(flags)
    return complete_options(flags, make_gates(flags))


def refuse_arguments(flags: ParsedFlags) -> None:
    """Reject positional arguments."""
    if any(flags.arguments):
        shown = " ".join(quote(each) for each in flags.arguments)
        raise UsageError(f'"{COMMAND}" does not take any arguments, got [{shown}]')


def make_gates(flags: ParsedFlags) -> FeatureGates:
    """Set the feature gates; ``complete_options`` reports errors about versions."""
    pairs = flags.get("feature-gates", tuple)
    return FeatureGates.asked(
        ",".join(f"{component}:{gate}" if component else gate for component, gate in pairs),
        emulated_version=",".join(flags.get("emulated-version", tuple)),
        min_compatibility_version=",".join(flags.get("min-compatibility-version", tuple)),
    )


def make_logging(flags: ParsedFlags, gates: FeatureGates) -> LoggingOptions:
    """Parse and validate the logging options."""
    form = flags.get("logging-format", str)
    alpha = {
        f"{each}.{path}": flags.get(f"log-{each}-{flag}", kind)
        for each in ("text", "json")
        for path, flag, kind in (
            ("splitStream", "split-stream", bool),
            ("infoBufferSize", "info-buffer-size", str),
        )
    }
    sizes = {path: quantity.value(str(alpha[path])) for path in alpha if path.endswith("Size")}
    chosen = form or TEXT
    frequency = flags.get("log-flush-frequency", Duration)
    options = LoggingOptions(
        format=form,
        verbosity=flags.get("v", int),
        vmodule=flags.get("vmodule", tuple),
        flush_frequency_s=frequency.seconds,
        split_stream=bool(alpha.get(f"{chosen}.splitStream")),
        info_buffer_bytes=sizes.get(f"{chosen}.infoBufferSize", 0),
    )
    errors = flag_checks.logging_errors(
        options, gates, flush_frequency=frequency, alpha={**alpha, **sizes}
    )
    _refuse(errors)
    return options


def complete_options(flags: ParsedFlags, gates: FeatureGates) -> CommandOptions:
    """Validate everything else, and read the configuration."""
    logging = make_logging(flags, gates)
    _refuse(_flag_errors(flags, gates))
    options = CommandOptions(
        serving=_serving(flags),
        authentication=_authentication(flags),
        authorization=_authorization(flags),
        logging=logging,
        metrics=_metrics(flags),
        gates=gates,
        config=read_configuration(flags, gates),
        config_file=flags.get("config", str),
        write_config_to=flags.get("write-config-to", str),
        master=flags.get("master", str),
        max_unschedulable_s=flags.get("pod-max-in-unschedulable-pods-duration", Duration).seconds,
        seed=flags.get("seed", int) if flags.is_given("seed") else None,
        queue_check_budget=flags.get("queue-check-budget", float),
        check_before_binding=CheckedState(flags.get("check-before-binding", str)),
        recording=_recording(flags),
        tracing=_tracing(flags),
        plugin_files=flags.get("plugin", tuple),
        web_ui=flags.get("web-ui", bool),
        reported_version=flags.get("version", VersionFlag).reported,
        flag_values=flags.texts(),
        notes=tuple(_notes(flags, gates)),
    )
    _refuse_what_cannot_start(options)
    return options


def _flag_errors(flags: ParsedFlags, gates: FeatureGates) -> list[str]:
    return [
        *gates.problems(),
        *flag_checks.serving_errors(_serving(flags)),
        *flag_checks.authentication_errors(_authentication(flags), gates),
        *_metrics(flags).errors(),
        *flag_checks.budget_errors(flags.get("queue-check-budget", float)),
        *flag_checks.binding_check_errors(flags.get("check-before-binding", str)),
        *_recording(flags).errors(),
        *_web_errors(flags),
    ]


def _web_errors(flags: ParsedFlags) -> list[str]:
    if flags.get("web-ui", bool) and not flags.get("secure-port", int):
        return ["--web-ui needs a --secure-port to be served on"]
    return []


def _refuse_what_cannot_start(options: CommandOptions) -> None:
    """Reject what kube-scheduler rejects only when it starts its parts."""
    election = options.config.leader_election
    errors = [flag_checks.lock_error(election)]
    if options.serving.secure_port:
        tls, paths = (
            flag_checks.tls_error(options.serving),
            flag_checks.paths_error(options.authorization),
        )
        errors = [tls, paths, *errors]
    if not options.write_config_to:
        errors.append(flag_checks.elector_error(election))
    _refuse(list(filter(None, errors))[:1])


# --- groups -----------------------------------------------------------------------------------


def _recording(flags: ParsedFlags) -> RecordingOptions:
    return RecordingOptions(
        path=flags.get("record", str),
        max_bytes=quantity.value(flags.get("record-max-size", str)),
        files=flags.get("record-files", int),
        redact=flags.get("record-redact", bool),
    )


def _tracing(flags: ParsedFlags) -> TracingConfiguration | None:
    path = flags.get("tracing-config-file", str)
    return tracing_configuration.read(Path(path)) if path else None


def _serving(flags: ParsedFlags) -> ServingOptions:
    return ServingOptions(
        bind_address=flags.get("bind-address", str),
        secure_port=flags.get("secure-port", int),
        cert_dir=flags.get("cert-dir", str),
        tls_cert_file=flags.get("tls-cert-file", str),
        tls_private_key_file=flags.get("tls-private-key-file", str),
        tls_cipher_suites=flags.get("tls-cipher-suites", tuple),
        tls_curve_preferences=flags.get("tls-curve-preferences", tuple),
        tls_min_version=flags.get("tls-min-version", str),
        tls_sni_cert_key=flags.get("tls-sni-cert-key", tuple),
        permit_port_sharing=flags.get("permit-port-sharing", bool),
        permit_address_sharing=flags.get("permit-address-sharing", bool),
    )


def _authentication(flags: ParsedFlags) -> AuthenticationOptions:
    return AuthenticationOptions(
        kubeconfig=flags.get("authentication-kubeconfig", str),
        token_cache_ttl_s=_seconds(flags, "authentication-token-webhook-cache-ttl"),
        client_ca_file=flags.get("client-ca-file", str),
        requestheader_username_headers=flags.get("requestheader-username-headers", tuple),
        requestheader_uid_headers=flags.get("requestheader-uid-headers", tuple),
        requestheader_group_headers=flags.get("requestheader-group-headers", tuple),
        requestheader_extra_headers_prefix=flags.get("requestheader-extra-headers-prefix", tuple),
        requestheader_client_ca_file=flags.get("requestheader-client-ca-file", str),
        requestheader_allowed_names=flags.get("requestheader-allowed-names", tuple),
        skip_lookup=flags.get("authentication-skip-lookup", bool),
        tolerate_lookup_failure=flags.get("authentication-tolerate-lookup-failure", bool),
    )


def _authorization(flags: ParsedFlags) -> AuthorizationOptions:
    return AuthorizationOptions(
        kubeconfig=flags.get("authorization-kubeconfig", str),
        allow_cache_ttl_s=_seconds(flags, "authorization-webhook-cache-authorized-ttl"),
        deny_cache_ttl_s=_seconds(flags, "authorization-webhook-cache-unauthorized-ttl"),
        always_allow_paths=flags.get("authorization-always-allow-paths", tuple),
    )


def _metrics(flags: ParsedFlags) -> MetricsOptions:
    labels = "allow-metric-labels"
    return MetricsOptions(
        disabled_metrics=flags.get("disabled-metrics", tuple),
        allow_metric_labels=flags.get(labels, dict) if flags.is_given(labels) else None,
        allow_metric_labels_manifest=flags.get("allow-metric-labels-manifest", str),
        show_hidden_metrics_for_version=flags.get("show-hidden-metrics-for-version", str),
    )


def _seconds(flags: ParsedFlags, name: str) -> float:
    return flags.get(name, Duration).seconds


# --- configuration ----------------------------------------------------------------------------


def read_configuration(flags: ParsedFlags, gates: FeatureGates) -> SchedulerConfiguration:
    """Read the configuration from flags and file; also for reloads."""

    def amend(config: SchedulerConfiguration) -> SchedulerConfiguration:
        return replace(config, leader_election=_election(flags, config.leader_election))

    file = flags.get("config", str)
    if file:
        return loading.load(file, gates=gates, amend=amend)
    return amend(_without_file(flags, SchedulerConfiguration.default(gates)))


def _without_file(flags: ParsedFlags, config: SchedulerConfiguration) -> SchedulerConfiguration:
    """Apply the deprecated flags."""
    connection: dict[str, object] = {}
    for name, attribute, kind in (
        ("kubeconfig", "kubeconfig", str),
        ("kube-api-content-type", "content_type", str),
        ("kube-api-qps", "qps", float),
        ("kube-api-burst", "burst", int),
    ):
        if flags.is_given(name):
            connection[attribute] = flags.get(name, kind)
    profiling, contention = config.enable_profiling, config.enable_contention_profiling
    if flags.is_given("profiling"):
        profiling = flags.get("profiling", bool)
    if flags.is_given("contention-profiling"):
        contention = flags.get("contention-profiling", bool)
    return replace(
        config,
        client_connection=replace(config.client_connection, **connection),
        enable_profiling=profiling,
        enable_contention_profiling=contention,
    )


def _election(flags: ParsedFlags, election: LeaderElection) -> LeaderElection:
    """Apply the given flags of leader election: they override the file."""
    changes: dict[str, object] = {}
    for name, attribute, kind in (
        ("leader-elect", "leader_elect", bool),
        ("leader-elect-lease-duration", "lease_duration", Duration),
        ("leader-elect-renew-deadline", "renew_deadline", Duration),
        ("leader-elect-retry-period", "retry_period", Duration),
        ("leader-elect-resource-lock", "resource_lock", str),
        ("leader-elect-resource-name", "resource_name", str),
        ("leader-elect-resource-namespace", "resource_namespace", str),
    ):
        if flags.is_given(name):
            changes[attribute] = flags.get(name, kind)
    return replace(election, **changes)


# --- notes ------------------------------------------------------------------------------------


def _notes(flags: ParsedFlags, gates: FeatureGates) -> list[Note]:
    notes = []
    for state in gates.retiring():
        stage = "GA" if state.stage is Stage.GA else "deprecated"
        message = f"Warning: setting {stage} feature gate. It will be removed in a future release."
        notes.append(Note(message, {"featureGate": state.name, "value": state.enabled}))
    idle = without_effect(gates)
    if idle:
        notes.append(Note(f"feature gates that have no effect in kubesched: {', '.join(idle)}"))
    alpha = [each.name for each in gates.states() if each.stage is Stage.ALPHA and each.enabled]
    if alpha:
        notes.append(
            Note(
                "component has alpha features enabled in emulated version, this is unsupported: "
                f"features=[{' '.join(alpha)}]"
            )
        )
    notes += [Note(text) for text in flag_checks.authentication_remarks(_authentication(flags))]
    for flag in flags.given():
        if flags.get("config", str) and flag.name in _WITHOUT_CONFIG:
            notes.append(Note(f"--{flag.name} is ignored, because --config is given"))
        elif flag.no_effect:
            notes.append(Note(f"--{flag.name} is accepted, but has no effect: {flag.no_effect}"))
    return notes


def _refuse(errors: list[str]) -> None:
    if errors:
        raise ConfigError(aggregate(errors))
