"""What a command line means, once everything about it is right; what must not be said."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubesched.cli.options import CommandOptions, Note, make_options
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.errors import ConfigError, UsageError
from kubesched.logs import LoggingOptions, ModuleVerbosity
from kubesched.metrics.options import MetricsOptions
from kubesched.scheduler.checked_state import CheckedState
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    SniCertificate,
)


def write(folder: Path, **document: object) -> str:
    path = folder / "config.yaml"
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    path.write_text(yaml.safe_dump({**head, **document}))
    return f"--config={path}"


def refusal(*arguments: str) -> str:
    with pytest.raises((ConfigError, UsageError)) as refused:
        make_options(arguments)
    return str(refused.value)


def messages(options: CommandOptions) -> list[str]:
    return [note.message for note in options.notes]


def test_tracing_is_off_unless_a_file_says_how_much(tmp_path: Path) -> None:
    path = tmp_path / "tracing.yaml"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
    path.write_text(f"{head}samplingRatePerMillion: 100000\n")
    tracing = make_options([f"--tracing-config-file={path}"]).tracing

    assert make_options([]).tracing is None
    assert tracing is not None
    assert tracing.share == 0.1
    path.write_text(f"{head}samplingRatePerMillion: 1000001\n")
    assert "must be less than or equal to one million" in refusal(f"--tracing-config-file={path}")


# --- groups -----------------------------------------------------------------------------------


def test_nothing_said_means_the_defaults() -> None:
    options = make_options([])

    assert options.serving == ServingOptions()
    assert options.authentication == AuthenticationOptions()
    assert options.authorization == AuthorizationOptions()
    assert options.logging == LoggingOptions()
    assert options.metrics == MetricsOptions()
    assert options.config.leader_election == LeaderElection()
    assert (options.master, options.write_config_to, options.seed) == ("", "", None)
    assert (options.max_unschedulable_s, options.queue_check_budget) == (300.0, 0.01)
    assert options.check_before_binding is CheckedState.NONE
    assert options.emulated_version == (1, 37)
    assert options.min_compatibility_version == (1, 36)
    assert options.reported_version == "v1.37.1"
    assert options.notes == ()


def test_serving() -> None:
    options = make_options(
        [
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--cert-dir=/c",
            "--tls-cert-file=/crt",
            "--tls-private-key-file=/key",
            "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA",
            "--tls-curve-preferences=29,23",
            "--tls-min-version=VersionTLS13",
            "--tls-sni-cert-key=a,b:*.x",
            "--permit-port-sharing",
            "--permit-address-sharing=true",
        ]
    )

    assert options.serving == ServingOptions(
        bind_address="127.0.0.1",
        secure_port=0,
        cert_dir="/c",
        tls_cert_file="/crt",
        tls_private_key_file="/key",
        tls_cipher_suites=("TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"),
        tls_curve_preferences=(29, 23),
        tls_min_version="VersionTLS13",
        tls_sni_cert_key=(SniCertificate("a", "b", ("*.x",)),),
        permit_port_sharing=True,
        permit_address_sharing=True,
    )


def test_authentication_and_authorization() -> None:
    options = make_options(
        [
            "--authentication-kubeconfig=/a",
            "--authentication-token-webhook-cache-ttl=1m",
            "--client-ca-file=/ca",
            "--requestheader-username-headers=X-Remote-User,b",
            "--requestheader-uid-headers=X-Remote-Uid",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-client-ca-file=/rca",
            "--requestheader-allowed-names=n",
            "--authentication-skip-lookup",
            "--authentication-tolerate-lookup-failure=false",
            "--authorization-kubeconfig=/z",
            "--authorization-webhook-cache-authorized-ttl=500ms",
            "--authorization-webhook-cache-unauthorized-ttl=0s",
            "--authorization-always-allow-paths=/metrics,/debug/*",
        ]
    )

    assert options.authentication == AuthenticationOptions(
        kubeconfig="/a",
        token_cache_ttl_s=60.0,
        client_ca_file="/ca",
        requestheader_username_headers=("X-Remote-User", "b"),
        requestheader_uid_headers=("X-Remote-Uid",),
        requestheader_group_headers=("X-Remote-Group",),
        requestheader_extra_headers_prefix=("X-Remote-Extra-",),
        requestheader_client_ca_file="/rca",
        requestheader_allowed_names=("n",),
        skip_lookup=True,
        tolerate_lookup_failure=False,
    )
    assert options.authorization == AuthorizationOptions(
        kubeconfig="/z",
        allow_cache_ttl_s=0.5,
        deny_cache_ttl_s=0.0,
        always_allow_paths=("/metrics", "/debug/*"),
    )


def test_logging() -> None:
    options = make_options(["-v=4", "--vmodule=binding=5,ex*=2", "--log-flush-frequency=1s"])

    assert options.logging == LoggingOptions(
        verbosity=4,
        vmodule=(ModuleVerbosity("binding", 5), ModuleVerbosity("ex*", 2)),
        flush_frequency_s=1.0,
    )


@pytest.mark.parametrize(("form", "other"), [("text", "json"), ("json", "text")])
def test_only_the_streams_of_the_chosen_format_count(form: str, other: str) -> None:
    options = make_options(
        [
            f"--logging-format={form}",
            "--feature-gates=LoggingAlphaOptions=true",
            f"--log-{form}-split-stream",
            f"--log-{form}-info-buffer-size=64Ki",
            f"--log-{other}-info-buffer-size=1",
        ]
    )

    assert options.logging == LoggingOptions(
        format=form, split_stream=True, info_buffer_bytes=65536
    )


def test_metrics() -> None:
    options = make_options(
        [
            "--disabled-metrics=a,b",
            "--show-hidden-metrics-for-version=1.36",
            "--allow-metric-labels=m,l=x,y",
            "--allow-metric-labels=m,k=z",
            "--allow-metric-labels=n,l=",
        ]
    )

    assert options.metrics == MetricsOptions(
        disabled_metrics=("a", "b"),
        allow_metric_labels={"m,l": "x,y", "m,k": "z", "n,l": ""},
        show_hidden_metrics_for_version="1.36",
    )


def test_allowed_labels_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "labels.yaml"
    file.write_text('"m,l": "x,y"\nn,k: 1\n')
    options = make_options([f"--allow-metric-labels-manifest={file}"])

    assert options.metrics.allow_lists() == {
        "m": {"l": frozenset({"x", "y"})},
        "n": {"k": frozenset({"1"})},
    }


def test_gates_and_versions() -> None:
    options = make_options(
        [
            "--feature-gates=SchedulerAsyncAPICalls=true",
            "--feature-gates=SchedulerAsyncPreemption=false",
            "--emulated-version=kube=1.35",
            "--min-compatibility-version=1.34",
        ]
    )

    assert options.gates.enabled("SchedulerAsyncAPICalls")
    assert not options.gates.enabled("SchedulerAsyncPreemption")
    assert (options.emulated_version, options.min_compatibility_version) == ((1, 35), (1, 34))


def test_our_own_flags() -> None:
    options = make_options(["--seed=-3", "--queue-check-budget=0.5", "--check-before-binding=live"])

    assert (options.seed, options.queue_check_budget) == (-3, 0.5)
    assert options.check_before_binding is CheckedState.LIVE


def test_values_of_all_flags_as_text() -> None:
    values = make_options(["--disabled-metrics=a,b", "-v2"]).flag_values

    assert len(values) > 60
    assert list(values) == sorted(values)
    assert (values["disabled-metrics"], values["v"], values["seed"]) == ("[a,b]", "2", "")
    assert values["pod-max-in-unschedulable-pods-duration"] == "5m0s"


# --- configuration ----------------------------------------------------------------------------


def test_deprecated_flags_make_a_configuration() -> None:
    config = make_options(
        [
            "--kubeconfig=/k",
            "--kube-api-qps=7.5",
            "--kube-api-burst=9",
            "--kube-api-content-type=application/json",
            "--profiling=false",
            "--contention-profiling=false",
        ]
    ).config
    connection = config.client_connection

    assert (connection.kubeconfig, connection.qps, connection.burst) == ("/k", 7.5, 9)
    assert connection.content_type == "application/json"
    assert (config.enable_profiling, config.enable_contention_profiling) == (False, False)


def test_a_file_makes_deprecated_flags_meaningless_and_says_so(tmp_path: Path) -> None:
    file = write(tmp_path, clientConnection={"kubeconfig": "/from/file", "qps": 3})
    options = make_options(
        [
            file,
            "--kubeconfig=/from/flag",
            "--kube-api-qps=99",
            "--contention-profiling",
            "--pod-max-in-unschedulable-pods-duration=1m",
        ]
    )

    assert options.config.client_connection.kubeconfig == "/from/file"
    assert options.config.client_connection.qps == 3
    assert options.max_unschedulable_s == 60.0, "which counts all the same"
    assert options.config_file == file.removeprefix("--config=")
    assert messages(options) == [
        "--contention-profiling is ignored, because --config is given",
        "--kube-api-qps is ignored, because --config is given",
        "--kubeconfig is ignored, because --config is given",
    ]


def test_leader_election_by_flags_outranks_the_file_where_it_is_given(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        leaderElection={"leaseDuration": "20s", "renewDeadline": "12s", "resourceName": "f"},
    )
    arguments = [
        file,
        "--leader-elect-renew-deadline=11s",
        "--leader-elect-retry-period=3s",
        "--leader-elect-resource-namespace=n",
    ]
    election = make_options(arguments).config.leader_election

    assert election == LeaderElection(
        lease_duration=Duration.of_seconds(20),
        renew_deadline=Duration.of_seconds(11),
        retry_period=Duration.of_seconds(3),
        resource_name="f",
        resource_namespace="n",
    )
    assert not make_options([file, "--leader-elect=false"]).config.leader_election.leader_elect


def test_a_default_given_explicitly_outranks_the_file_too(tmp_path: Path) -> None:
    file = write(tmp_path, leaderElection={"leaderElect": False, "leaseDuration": "20s"})
    election = make_options(
        [file, "--leader-elect", "--leader-elect-lease-duration=15s"]
    ).config.leader_election

    assert election == LeaderElection()


# --- notes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag",
    [
        "--disable-http2-serving",
        "--http2-max-streams-per-connection=5",
        "--contention-profiling=false",
        "--kube-api-content-type=application/json",
    ],
)
def test_flags_without_effect_say_so(flag: str) -> None:
    (note,) = messages(make_options([flag]))

    assert note.startswith(f"{flag.partition('=')[0]} is accepted, but has no effect: ")


def test_gates_about_to_go_are_mentioned() -> None:
    (note,) = make_options(["--feature-gates=NodeDeclaredFeatures=true"]).notes

    assert note == Note(
        "Warning: setting GA feature gate. It will be removed in a future release.",
        {"featureGate": "NodeDeclaredFeatures", "value": True},
    )


def test_alpha_features_are_mentioned() -> None:
    (note,) = messages(make_options(["--feature-gates=TaintTolerationComparisonOperators=true"]))

    assert note == (
        "component has alpha features enabled in emulated version, this is unsupported: "
        "features=[TaintTolerationComparisonOperators]"
    )


def test_headers_that_nobody_sends_are_mentioned() -> None:
    options = make_options(
        ["--requestheader-username-headers=x", "--requestheader-extra-headers-prefix=y"]
    )

    without, end = "is set without specifying the standard", "- API aggregation will not work"
    assert messages(options) == [
        f"--requestheader-username-headers {without} X-Remote-User header {end}",
        f"--requestheader-extra-headers-prefix {without} X-Remote-Extra- header prefix {end}",
    ]


# --- refusals: that their words are kube-scheduler's is for the integration tests --------------


def test_what_is_wrong_with_flags_is_said_at_once() -> None:
    said = refusal(
        "--emulated-version=1.32",
        "--secure-port=-1",
        "--requestheader-allowed-names= ",
        "--disabled-metrics=a-b",
        "--queue-check-budget=0.6",
        "--check-before-binding=always",
    )

    for part in (
        "[emulation version 1.32 is not between [1.34, 1.37.0]",
        "--secure-port -1 must be between 0 and 65535",
        'empty value in "requestheader-allowed-names"',
        'metrics.disabledMetrics: Invalid value: ["a-b"]',
        "--queue-check-budget 0.6 must be between 0 and 0.5, inclusive",
        '--check-before-binding "always" must be one of none, cache, live]',
    ):
        assert part in said


@pytest.mark.parametrize("budget", ["-0.1", "0.51", "inf", "nan"])
def test_a_budget_beyond_its_limits(budget: str) -> None:
    assert "must be between 0 and 0.5" in refusal(f"--queue-check-budget={budget}")


def test_gates_come_before_logging_and_logging_before_the_rest() -> None:
    gate, form, port = "--feature-gates=Foo=true", "--logging-format=xml", "--secure-port=-1"

    assert refusal(gate, form, port) == "unrecognized feature gate: Foo"
    assert refusal(form, port) == 'format: Invalid value: "xml": Unsupported log format'
    assert refusal(port, "--config=/absent").startswith("--secure-port -1")


def test_arguments_are_refused() -> None:
    assert refusal("a b", "") == '"kube-scheduler" does not take any arguments, got ["a b" ""]'
    assert make_options([""]).notes == ()


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--tls-cipher-suites=foo", "Cipher suite foo not supported or doesn't exist"),
        ("--tls-min-version=1", 'unknown tls version "1"'),
        ("--tls-curve-preferences=5", "curve preference 5 is not supported by the current Go"),
        ("--authorization-always-allow-paths=/a*b", 'only trailing * allowed in "a*b"'),
    ],
)
def test_what_is_served_is_checked_if_anything_is(flag: str, said: str) -> None:
    assert said in refusal(flag)
    make_options([flag, "--secure-port=0"])


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--leader-elect-lease-duration=5s", "leaseDuration must be greater than renewDeadline"),
        ("--leader-elect-retry-period=9s", "greater than retryPeriod*JitterFactor"),
        ("--leader-elect-retry-period=0s", "retryPeriod must be greater than zero"),
        ("--leader-elect-retry-period=-1s", "retryPeriod must be greater than zero"),
    ],
)
def test_times_of_an_election_are_checked_if_there_is_one(flag: str, said: str) -> None:
    assert refusal(flag).startswith("couldn't create leader elector: ")
    assert said in refusal(flag)
    make_options([flag, "--leader-elect=false"])
    make_options([flag, "--write-config-to=x"])


def test_only_leases_lock() -> None:
    assert refusal("--leader-elect-resource-lock=pods") == (
        "couldn't create resource lock: Invalid lock-type pods"
    )
    make_options(["--leader-elect-resource-lock=pods", "--leader-elect=false"])


def test_a_file_of_labels_that_is_none(tmp_path: Path) -> None:
    assert "failed to read allow list manifest: open " in refusal(
        f"--allow-metric-labels-manifest={tmp_path / 'absent'}"
    )


def test_a_gate_that_changes_nothing_here_is_named() -> None:
    asked = make_options(["--feature-gates=SchedulerPopFromBackoffQ=false"])
    assert [note.message for note in asked.notes] == [
        "feature gates that have no effect in kubesched: SchedulerPopFromBackoffQ=false"
    ]
    assert make_options(["--feature-gates=SchedulerPopFromBackoffQ=true"]).notes == ()
