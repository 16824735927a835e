"""The flags of the group metrics; refusals are letter for letter those of kube-scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.metrics.options import MetricsOptions

KEYS = (
    "must have keys with format `metricName,labelName` where metricName matches "
    '"[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"'
)


def refusal(options: MetricsOptions) -> str:
    with pytest.raises(ConfigError) as caught:
        options.check()
    return str(caught.value)


def test_defaults_are_fine() -> None:
    options = MetricsOptions()
    options.check()
    assert options.allow_lists() == {}


def test_only_hidden_metrics_of_the_previous_version_can_be_shown() -> None:
    MetricsOptions(show_hidden_metrics_for_version="1.36").check()
    assert refusal(MetricsOptions(show_hidden_metrics_for_version="1.30")) == (
        'metrics.showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the '
        "value '1.36'; only the previous minor version is allowed"
    )


def test_disabled_metrics_must_be_names() -> None:
    MetricsOptions(disabled_metrics=("scheduler_pending_pods", "no:such_metric")).check()
    assert refusal(MetricsOptions(disabled_metrics=("ok", "bad-name", "x"))) == (
        'metrics.disabledMetrics: Invalid value: ["ok","bad-name","x"]: must be fully qualified '
        'metric names matching "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "bad-name"'
    )


def test_keys_of_allow_lists_name_a_metric_and_a_label() -> None:
    options = MetricsOptions(allow_metric_labels={"d": "e", "a,b": "c"})
    assert refusal(options) == (
        f'metrics.allowListMapping: Invalid value: {{"a,b":"c","d":"e"}}: {KEYS}'
    )


def test_allow_lists() -> None:
    options = MetricsOptions(
        allow_metric_labels={"m,result": "scheduled,error", "m,profile": "", "n,queue": "active"}
    )
    options.check()
    assert options.allow_lists() == {
        "m": {"result": frozenset({"scheduled", "error"}), "profile": frozenset({""})},
        "n": {"queue": frozenset({"active"})},
    }


# --- the file ---------------------------------------------------------------------------------


def manifest(folder: Path, text: str) -> MetricsOptions:
    file = folder / "allowed.yaml"
    file.write_text(text)
    return MetricsOptions(allow_metric_labels_manifest=str(file))


def test_allow_lists_from_a_file(tmp_path: Path) -> None:
    options = manifest(tmp_path, '"m,l": "a,b"\n"n,code": 200\nn,yes: true\n')
    options.check()
    assert options.allow_lists() == {
        "m": {"l": frozenset({"a", "b"})},
        "n": {"code": frozenset({"200"}), "yes": frozenset({"true"})},
    }


def test_empty_file_allows_everything(tmp_path: Path) -> None:
    options = manifest(tmp_path, "")
    options.check()
    assert options.allow_lists() == {}


def test_missing_file() -> None:
    assert refusal(MetricsOptions(allow_metric_labels_manifest="/nonexistent")) == (
        'metrics.allowListMappingManifest: Invalid value: "/nonexistent": failed to read allow '
        "list manifest: open /nonexistent: no such file or directory"
    )


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    said = refusal(MetricsOptions(allow_metric_labels_manifest=str(tmp_path)))
    assert said.endswith(f"failed to read allow list manifest: read {tmp_path}: is a directory")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('"a: b\n', "failed to parse allow list manifest: yaml: while scanning"),
        ("- a\n", "yaml: the file must map metricName,labelName to values"),
        ('allowListMapping:\n  "a,b": "c"\n', "yaml: the values of allowListMapping must be one"),
    ],
)
def test_file_that_is_no_mapping_of_texts(tmp_path: Path, text: str, want: str) -> None:
    said = refusal(manifest(tmp_path, text))
    assert said.startswith("metrics.allowListMappingManifest: Invalid value: ")
    assert want in said
    assert "\n" not in said


def test_keys_in_a_file_name_a_metric_and_a_label(tmp_path: Path) -> None:
    options = manifest(tmp_path, '"a": "c"\n')
    path = options.allow_metric_labels_manifest
    assert refusal(options) == (
        f'metrics.allowListMappingManifest: Invalid value: "{path}": invalid allow list mapping in '
        f'manifest: [metrics.allowListMappingManifest: Invalid value: {{"a":"c"}}: {KEYS}]'
    )


def test_flag_and_file_together_are_refused_and_all_errors_are_said(tmp_path: Path) -> None:
    path = manifest(tmp_path, '"a,b": "c"\n').allow_metric_labels_manifest
    options = MetricsOptions(
        show_hidden_metrics_for_version="1.29",
        disabled_metrics=("x",),
        allow_metric_labels={"a,b": "c"},
        allow_metric_labels_manifest=path,
    )
    assert refusal(options) == (
        '[metrics.showHiddenMetricsForVersion: Invalid value: "1.29": must be omitted or have the '
        "value '1.36'; only the previous minor version is allowed, metrics: Invalid value: "
        '{"showHiddenMetricsForVersion":"1.29","disabledMetrics":["x"],"allowListMapping":'
        f'{{"a,b":"c"}},"allowListMappingManifest":"{path}"}}: cannot specify both '
        "allowListMapping and allowListMappingManifest]"
    )
