"""KubeSchedulerConfiguration v1 with all defaults applied.

``loading`` creates it from a file, ``SchedulerConfiguration.default`` from nothing; it is
immutable. Fields are named as on the wire, in Python's spelling.
"""

from __future__ import annotations

from typing import Final, Self

from msgspec import field

from kubesched.api.meta import ApiStruct
from kubesched.config.defaults import default_profile
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile

__all__ = [
    "API_VERSION",
    "KIND",
    "ClientConnection",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "LeaderElection",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "Profile",
    "SchedulerConfiguration",
]

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"


class LeaderElection(ApiStruct, frozen=True):
    """Leader election among replicas."""

    leader_elect: bool = True
    lease_duration: Duration = Duration.of_seconds(15)
    renew_deadline: Duration = Duration.of_seconds(10)
    retry_period: Duration = Duration.of_seconds(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(ApiStruct, frozen=True):
    """The connection to the API server; without a kubeconfig, that of a pod in its cluster."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


class ExtenderTLSConfig(ApiStruct, frozen=True):
    """TLS of an extender; data takes precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(ApiStruct, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(ApiStruct, frozen=True):
    """An HTTP service that takes part in scheduling; an empty verb is one it does not offer."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    #: zero: the extender client's own default
    http_timeout: Duration = Duration()
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(ApiStruct, frozen=True):
    """A complete configuration."""

    profiles: tuple[Profile, ...]
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    #: 0: chosen by cluster size
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False

    @classmethod
    def default(cls, gates: FeatureGates) -> Self:
        """Return the configuration of an empty file."""
        return cls(profiles=(default_profile(gates),))
