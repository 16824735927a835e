"""Old configurations, converted: kube-scheduler loads them, and runs with what kubesched does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.cli.kubesched import main
from tests.support.legacy_configurations import DATA, FILES

from .configurations.asking import kube_scheduler_says, kubesched_says
from .configurations.case import Case

PROVIDERS = ["DefaultProvider", "ClusterAutoscalerProvider"]


def check_loaded(assets: Path, folder: Path, converted: Path) -> None:
    text = converted.read_text()
    if "kubeconfig" not in text:
        text += "clientConnection: {kubeconfig: kubeconfig.yaml}\n"
    asked = Case(text=text)

    real = kube_scheduler_says(assets / "kube-scheduler", folder, asked)

    assert real.error == ""
    assert kubesched_says(folder, asked).written == real.written


@pytest.mark.parametrize("file", FILES)
def test_a_converted_file_is_loaded(file: str, assets: Path, tmp_path: Path) -> None:
    converted = tmp_path / "converted.yaml"

    assert main(["config", "convert", str(DATA / file), "-o", str(converted)]) == 0

    check_loaded(assets, tmp_path, converted)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_converted_provider_is_loaded(provider: str, assets: Path, tmp_path: Path) -> None:
    converted = tmp_path / "converted.yaml"

    assert (
        main(["config", "convert", f"--algorithm-provider={provider}", "-o", str(converted)]) == 0
    )

    check_loaded(assets, tmp_path, converted)
