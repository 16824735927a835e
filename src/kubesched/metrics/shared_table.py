"""The table of families that every Kubernetes component exports, or a server on its own paths.

Client, leader election, delegated authentication and authorization, build and feature information,
the process, health checks, and the resources that pods request.
"""

from __future__ import annotations

from typing import Final

from kubesched.metrics.spec import Stability, counter, exponential, gauge, histogram

STABLE: Final = Stability.STABLE
BETA: Final = Stability.BETA
ALPHA: Final = Stability.ALPHA
UNMARKED: Final = Stability.UNMARKED

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
#: from 1 ms to 16 s
_ATTEMPT: Final = exponential(0.001, 2, 15)
_REQUEST: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE: Final = (
    *(64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0),
    *(1048576.0, 4194304.0, 16777216.0),
)
_DELEGATED: Final = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_TOKEN_CACHE: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PROCESSING: Final = (0.001, *_TOKEN_CACHE)
_ROTATION: Final = (
    *(10 * _MINUTE, 30 * _MINUTE, _HOUR, 4 * _HOUR, _DAY, 7 * _DAY),
    *(30 * _DAY, 90 * _DAY, 180 * _DAY, 360 * _DAY, 1440 * _DAY),
)
_EXPIRATION: Final = (
    *(0.0, 30 * _MINUTE, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY),
    *(7 * _DAY, 30 * _DAY, 90 * _DAY, 180 * _DAY, 360 * _DAY),
)

_INFORMER_LABELS: Final = "name group version resource"

SHARED: Final = (
    # --- the API client -------------------------------------------------------------------------
    counter(
        ALPHA,
        "rest_client_requests_total",
        "Number of HTTP requests, partitioned by status code, method, and host.",
        labels="code method host",
    ),
    counter(
        ALPHA,
        "rest_client_request_retries_total",
        "Number of request retries, partitioned by status code, verb, and host.",
        labels="code verb host",
    ),
    histogram(
        ALPHA,
        "rest_client_request_duration_seconds",
        "Request latency in seconds. Broken down by verb, and host.",
        labels="verb host",
        buckets=_REQUEST,
    ),
    histogram(
        ALPHA,
        "rest_client_rate_limiter_duration_seconds",
        "Client side rate limiter latency in seconds. Broken down by verb, and host.",
        labels="verb host",
        buckets=_REQUEST,
    ),
    histogram(
        ALPHA,
        "rest_client_request_size_bytes",
        "Request size in bytes. Broken down by verb and host.",
        labels="verb host",
        buckets=_SIZE,
    ),
    histogram(
        ALPHA,
        "rest_client_response_size_bytes",
        "Response size in bytes. Broken down by verb and host.",
        labels="verb host",
        buckets=_SIZE,
    ),
    gauge(
        ALPHA,
        "rest_client_exec_plugin_ttl_seconds",
        "Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the "
        "auth exec plugin. The value is in seconds until certificate expiry (negative if "
        "already expired). If auth exec plugins are unused or manage no TLS certificates, the "
        "value will be +INF.",
    ),
    histogram(
        ALPHA,
        "rest_client_exec_plugin_certificate_rotation_age",
        "Histogram of the number of seconds the last auth exec plugin client certificate lived "
        "before being rotated. If auth exec plugin client certificates are unused, histogram "
        "will contain no data.",
        buckets=_ROTATION,
    ),
    counter(
        ALPHA,
        "rest_client_exec_plugin_call_total",
        "Number of calls to an exec plugin, partitioned by the type of event encountered "
        "(no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and "
        "an optional exit code. The exit code will be set to 0 if and only if the plugin call "
        "was successful.",
        labels="code call_status",
    ),
    counter(
        ALPHA,
        "rest_client_transport_ca_reload_total",
        "Number of times a CA reload is attempted, partitioned by the result and reason for "
        "the reload attempt",
        labels="result reason",
    ),
    # --- informers ------------------------------------------------------------------------------
    gauge(
        ALPHA,
        "informer_queued_items",
        "Number of items currently queued in the FIFO.",
        labels=_INFORMER_LABELS,
    ),
    histogram(
        ALPHA,
        "informer_processing_latency_seconds",
        "Time taken to process events after popping from the queue.",
        labels=_INFORMER_LABELS,
        buckets=_PROCESSING,
    ),
    gauge(
        ALPHA,
        "informer_store_resource_version",
        "The 15 least significant digits of the resource version of the store.",
        labels=_INFORMER_LABELS,
    ),
    # --- leader election ------------------------------------------------------------------------
    gauge(
        ALPHA,
        "leader_election_master_status",
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, "
        "1 indicates master. 'name' is the string used to identify the lease. Please make "
        "sure to group by name.",
        labels="name",
    ),
    counter(
        ALPHA,
        "leader_election_slowpath_total",
        "Total number of slow path exercised in renewing leader leases. 'name' is the string "
        "used to identify the lease. Please make sure to group by name.",
        labels="name",
    ),
    # --- authentication and authorization -------------------------------------------------------
    counter(
        ALPHA,
        "authenticated_user_requests",
        "Counter of authenticated requests broken out by username.",
        labels="username",
    ),
    counter(
        ALPHA,
        "authentication_attempts",
        "Counter of authenticated attempts.",
        labels="result",
    ),
    histogram(
        ALPHA,
        "authentication_duration_seconds",
        "Authentication duration in seconds broken out by result.",
        labels="result",
        buckets=_ATTEMPT,
    ),
    gauge(
        ALPHA,
        "authentication_token_cache_active_fetch_count",
        "",
        labels="status",
    ),
    counter(
        ALPHA,
        "authentication_token_cache_fetch_total",
        "",
        labels="status",
    ),
    counter(
        ALPHA,
        "authentication_token_cache_request_total",
        "",
        labels="status",
    ),
    histogram(
        ALPHA,
        "authentication_token_cache_request_duration_seconds",
        "",
        labels="status",
        buckets=_TOKEN_CACHE,
    ),
    counter(
        ALPHA,
        "authorization_attempts_total",
        "Counter of authorization attempts broken down by result. It can be either 'allowed', "
        "'denied', 'no-opinion' or 'error'.",
        labels="result",
    ),
    histogram(
        ALPHA,
        "authorization_duration_seconds",
        "Authorization duration in seconds broken out by result.",
        labels="result",
        buckets=_ATTEMPT,
    ),
    counter(
        ALPHA,
        "apiserver_delegated_authn_request_total",
        "Number of HTTP requests partitioned by status code.",
        labels="code",
    ),
    histogram(
        ALPHA,
        "apiserver_delegated_authn_request_duration_seconds",
        "Request latency in seconds. Broken down by status code.",
        labels="code",
        buckets=_DELEGATED,
    ),
    counter(
        ALPHA,
        "apiserver_delegated_authz_request_total",
        "Number of HTTP requests partitioned by status code.",
        labels="code",
    ),
    histogram(
        ALPHA,
        "apiserver_delegated_authz_request_duration_seconds",
        "Request latency in seconds. Broken down by status code.",
        labels="code",
        buckets=_DELEGATED,
    ),
    histogram(
        ALPHA,
        "apiserver_client_certificate_expiration_seconds",
        "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
        buckets=_EXPIRATION,
    ),
    # --- build and features ---------------------------------------------------------------------
    gauge(
        BETA,
        "kubernetes_build_info",
        "A metric with a constant '1' value labeled by major, minor, git version, git commit, "
        "git tree state, build date, Go version, and compiler from which Kubernetes was built, "
        "and platform on which it is running.",
        labels="major minor git_version git_commit git_tree_state build_date go_version compiler "
        "platform",
    ),
    gauge(
        ALPHA,
        "version_info",
        "Provides the compatibility version info of the component. The component label is the "
        "name of the component, usually kube, but is relevant for aggregated-apiservers.",
        labels="component binary emulation min_compat",
    ),
    gauge(
        BETA,
        "kubernetes_feature_enabled",
        "This metric records the data about the stage and enablement of a k8s feature.",
        labels="name stage",
    ),
    # --- the metrics themselves -----------------------------------------------------------------
    counter(
        BETA,
        "registered_metrics_total",
        "The count of registered metrics broken by stability level and deprecation version.",
        labels="stability_level deprecated_version",
    ),
    counter(
        BETA,
        "disabled_metrics_total",
        "The count of disabled metrics.",
    ),
    counter(
        BETA,
        "hidden_metrics_total",
        "The count of hidden metrics.",
    ),
    counter(
        ALPHA,
        "cardinality_enforcement_unexpected_categorizations_total",
        "The count of unexpected categorizations during cardinality enforcement.",
    ),
)

PROCESS: Final = (
    counter(
        UNMARKED,
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
    ),
    gauge(
        UNMARKED,
        "process_max_fds",
        "Maximum number of open file descriptors.",
    ),
    counter(
        UNMARKED,
        "process_network_receive_bytes_total",
        "Number of bytes received by the process over the network.",
    ),
    counter(
        UNMARKED,
        "process_network_transmit_bytes_total",
        "Number of bytes sent by the process over the network.",
    ),
    gauge(
        UNMARKED,
        "process_open_fds",
        "Number of open file descriptors.",
    ),
    gauge(
        UNMARKED,
        "process_resident_memory_bytes",
        "Resident memory size in bytes.",
    ),
    gauge(
        UNMARKED,
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
    ),
    gauge(
        UNMARKED,
        "process_virtual_memory_bytes",
        "Virtual memory size in bytes.",
    ),
    gauge(
        UNMARKED,
        "process_virtual_memory_max_bytes",
        "Maximum amount of virtual memory available in bytes.",
    ),
)

#: Health checks, on their own path.
HEALTH: Final = (
    gauge(
        STABLE,
        "kubernetes_healthcheck",
        "This metric records the result of a single healthcheck.",
        labels="name type",
    ),
    counter(
        STABLE,
        "kubernetes_healthchecks_total",
        "This metric records the results of all healthcheck.",
        labels="name type status",
    ),
    gauge(
        ALPHA,
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
    ),
)

_POD_RESOURCE_LABELS: Final = "namespace pod node scheduler priority resource unit"

#: Resources of pods, on their own path.
POD_LIMIT: Final = gauge(
    STABLE,
    "kube_pod_resource_limit",
    "Resources limit for workloads on the cluster, broken down by pod. This shows the resource "
    "usage the scheduler and kubelet expect per pod for resources along with the unit for the "
    "resource if any.",
    labels=_POD_RESOURCE_LABELS,
)
POD_REQUEST: Final = gauge(
    STABLE,
    "kube_pod_resource_request",
    "Resources requested by workloads on the cluster, broken down by pod. This shows the resource "
    "usage the scheduler and kubelet expect per pod for resources along with the unit for the "
    "resource if any.",
    labels=_POD_RESOURCE_LABELS,
)
