"""Which API server is asked for reviews, if any."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.server.review_client import review_client
from tests.support.serving import write_kubeconfig


def test_the_kubeconfig_says_which(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "k", "http://127.0.0.1:1")
    client = review_client(path, purpose="authentication", environment={})

    assert client is not None
    assert client.access.server.url == "http://127.0.0.1:1"


def test_outside_of_a_cluster_there_is_none() -> None:
    assert review_client("", purpose="authentication", environment={}) is None


def test_a_pod_without_a_token_has_none_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    assert review_client("", purpose="authorization", environment=environment) is None
    assert "failed to read in-cluster kubeconfig for delegated authorization" in caplog.text


def test_a_kubeconfig_that_is_no_good() -> None:
    with pytest.raises(ConfigError) as refused:
        review_client("/absent", purpose="authentication", environment={})

    assert str(refused.value) == (
        "failed to get delegated authentication kubeconfig: "
        "cannot read kubeconfig /absent: No such file or directory"
    )
