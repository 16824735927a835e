"""The file of ``--tracing-config-file``: component-base's TracingConfiguration.

kube-apiserver reads the same file, and rejects it with the same words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from kubesched.config.field_errors import aggregate, invalid
from kubesched.errors import ConfigError

DEFAULT_ENDPOINT: Final = "localhost:4317"
MILLION: Final = 1_000_000
_VERSIONS: Final = tuple(
    f"apiserver.config.k8s.io/{each}" for each in ("v1alpha1", "v1beta1", "v1")
)
_KIND: Final = "TracingConfiguration"
_SCHEMES: Final = ("dns", "unix", "unix-abstract")


class TracingConfiguration(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where spans are sent, and of how many attempts."""

    api_version: str = ""
    kind: str = ""
    #: of the collector, as gRPC names targets; None for the default
    endpoint: str | None = None
    #: None and 0: no attempt is traced
    sampling_rate_per_million: int | None = None

    @property
    def share(self) -> float:
        """The share of attempts that is traced."""
        return (self.sampling_rate_per_million or 0) / MILLION


def read(path: Path) -> TracingConfiguration:
    """Read and validate the file; raises ConfigError."""
    try:
        data = path.read_bytes()
    except OSError as failed:
        why = (failed.strerror or "").lower()
        raise ConfigError(
            f'failed to read tracing config: unable to read tracing configuration from "{path}": '
            f"open {path}: {why}"
        ) from None
    try:
        config = msgspec.yaml.decode(data, type=TracingConfiguration)
        _check_kind(config)
    except (msgspec.MsgspecError, ValueError) as wrong:
        told = " ".join(str(wrong).split())
        raise ConfigError(
            f"failed to read tracing config: unable to decode tracing configuration data: "
            f"{path}: {told}"
        ) from None
    if errors := [*_rate_errors(config), *_endpoint_errors(config)]:
        raise ConfigError(f"failed to validate tracing configuration: {aggregate(errors)}")
    return config


def _check_kind(config: TracingConfiguration) -> None:
    if config.kind != _KIND or config.api_version not in _VERSIONS:
        found = f"{config.api_version or 'no apiVersion'}, {config.kind or 'no kind'}"
        raise ValueError(f"{found}: it must be {_VERSIONS[-1]}, {_KIND}")


def _rate_errors(config: TracingConfiguration) -> list[str]:
    rate, field = config.sampling_rate_per_million or 0, "samplingRatePerMillion"
    if rate < 0:
        return [invalid(field, rate, "sampling rate must be positive")]
    if rate > MILLION:
        detail = "sampling rate per million must be less than or equal to one million"
        return [invalid(field, rate, detail)]
    return []


def _endpoint_errors(config: TracingConfiguration) -> list[str]:
    endpoint = config.endpoint
    if endpoint is None:
        return []
    url = endpoint if "//" in endpoint else f"dns://{endpoint}"
    try:
        scheme = urlsplit(url).scheme
    except ValueError as wrong:
        return [invalid("endpoint", url, str(wrong))]
    if scheme in _SCHEMES:
        return []
    detail = (
        f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  "
        f"See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    )
    return [invalid("endpoint", url, detail)]
