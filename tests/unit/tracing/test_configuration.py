"""The file of --tracing-config-file, and what is wrong with it, in component-base's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.tracing.configuration import read

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tracing.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "endpoint", "share"),
    [
        (HEAD, None, 0.0),
        (HEAD + "samplingRatePerMillion: 100000\n", None, 0.1),
        (HEAD + "endpoint: otel:4317\nsamplingRatePerMillion: 1000000\n", "otel:4317", 1.0),
        (HEAD.replace("v1\n", "v1beta1\n") + "endpoint: unix:///run/otel\n", "unix:///run/otel", 0),
        (HEAD.replace("v1\n", "v1alpha1\n") + "endpoint: dns://otel:1\n", "dns://otel:1", 0),
        ('{"apiVersion":"apiserver.config.k8s.io/v1","kind":"TracingConfiguration"}', None, 0),
    ],
)
def test_what_it_says(tmp_path: Path, text: str, endpoint: str | None, share: float) -> None:
    config = read(written(tmp_path, text))

    assert (config.endpoint, config.share) == (endpoint, share)


VALIDATION = {
    "samplingRatePerMillion: -1": (
        "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"
    ),
    "samplingRatePerMillion: 1000001": (
        "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less "
        "than or equal to one million"
    ),
    "endpoint: http://localhost:4317": (
        'endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  Options are '
        "none, dns, unix, or unix-abstract.  See "
        "https://github.com/grpc/grpc/blob/master/doc/naming.md"
    ),
}


@pytest.mark.parametrize(("field", "said"), VALIDATION.items())
def test_values_that_are_invalid(tmp_path: Path, field: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(written(tmp_path, HEAD + field))

    assert str(refused.value) == f"failed to validate tracing configuration: {said}"


def test_several_invalid_values_are_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(written(tmp_path, HEAD + "samplingRatePerMillion: -1\nendpoint: http://x\n"))

    assert ": [samplingRatePerMillion: Invalid value: -1" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: [\n",
        HEAD + "samplingRate: 5\n",
        HEAD + "samplingRatePerMillion: many\n",
        HEAD.replace("Tracing", "Scheduler"),
        HEAD.replace("/v1", "/v9"),
    ],
)
def test_files_that_cannot_be_decoded(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        read(path)

    start = f"failed to read tracing config: unable to decode tracing configuration data: {path}: "
    assert str(refused.value).startswith(start)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(
        ConfigError, match=f'configuration from "{path}": open {path}: no such file'
    ):
        read(path)
