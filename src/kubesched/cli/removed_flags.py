"""Flags that kube-scheduler has removed, and their replacements.

They are unknown flags, as in kube-scheduler; the error says what to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_POLICY: Final = "'kubesched config convert POLICY -o FILE' makes a file for --config of the policy"
_LOGGING: Final = "logs go to standard error; see --v, --vmodule and --logging-format"

REMOVED_FLAGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "policy-config-file",
            "policy-configmap",
            "policy-configmap-namespace",
            "use-legacy-policy-config",
        ),
        _POLICY,
    ),
    "algorithm-provider": "'kubesched config convert --algorithm-provider NAME -o FILE' makes a "
    "file for --config of it",
    "scheduler-name": "set profiles[0].schedulerName in the file of --config",
    "hard-pod-affinity-symmetric-weight": "set hardPodAffinityWeight of the plugin "
    "InterPodAffinity in the file of --config",
    "address": "use --bind-address: there is no port without TLS any more",
    "port": "use --secure-port: there is no port without TLS any more",
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "failure-domains": "pod affinity names its topologyKey itself",
    "enable-equivalence-cache": "nothing takes its place, and nothing has to",
    "google-json-key": "set an exec plugin in the kubeconfig",
    **dict.fromkeys(
        (
            "add-dir-header",
            "alsologtostderr",
            "log-backtrace-at",
            "log-dir",
            "log-file",
            "log-file-max-size",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
            "stderrthreshold",
        ),
        _LOGGING,
    ),
    "experimental-logging-sanitization": "nothing takes its place: secrets are not logged",
}


def instead_of(name: str) -> str:
    """Return the replacement of a removed flag, as the end of a sentence; "" if there is none."""
    instead = REMOVED_FLAGS.get(name.replace("_", "-"))
    return f"; it was removed: {instead}" if instead else ""
