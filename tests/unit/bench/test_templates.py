"""Objects from files with the little of Go's templates that they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.bench.go_template import GoTemplate
from kubesched.bench.templates import FileTemplate
from kubesched.errors import ConfigError


def render(text: str, index: int = 7, count: int = 20) -> str:
    return GoTemplate(text, where="here").render({"Index": index, "Count": count})


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("node-{{.Index}} of {{ .Count }}", "node-7 of 20"),
        ("{{Mod .Index 5}}", "2"),
        ("{{ Mod -7 5 }}", "-2"),
        ("{{DivideInt 30000 .Count}}", "1500"),
        ("{{DivideInt .Index 2}}", "3"),
        ("{{DivideFloat .Index 2}}", "3.5"),
        ("{{AddInt 1 2 .Index}}", "10"),
        ("{{AddFloat 0.5 .Index}}", "7.5"),
        ("{{SubtractInt .Count .Index}}", "13"),
        ("{{SubtractFloat 1 0.25}}", "0.75"),
        ("{{MultiplyInt .Index 3}}", "21"),
        ('{{MultiplyFloat "1.5" 2}}', "3"),
        ("{{AddInt (MultiplyInt .Index 2) (Mod .Count 6)}}", "16"),
        ("{{- .Index -}}", "7"),
        ("a {{- .Index }} b", "a7 b"),
        ("a {{ .Index -}} b", "a 7b"),
        ("{{if .Index}}yes{{else}}no{{end}}", "yes"),
        ("{{if .Name}}yes{{else}}no{{end}}", "no"),
        ('{{if eq .Name "x"}}yes{{end}}', ""),
        ("{{if .Index}}{{if .Name}}both{{else}}one{{end}}{{end}}!", "one!"),
        ("{{or .Name 5}}", "5"),
        ("{{$n := or .Name 2}}{{range ($n | Int)}}<{{.}}>{{end}}", "<0><1>"),
        ("{{range $i := 2}}{{$i}}{{if ge $i 1}}+{{.Index}}{{end}}{{end}}", "01+7"),
        ("{{(or .Name nil) | JSON}}", "null"),
        ("{{not .Name}}", "true"),
        ("{{ 42 }}", "42"),
    ],
)
def test_actions(text: str, rendered: str) -> None:
    assert render(text) == rendered


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        ("{{.Name}}", "there is no field .Name"),
        ("{{Upper .Index}}", "there is no function Upper"),
        ("{{DivideInt .Index 0}}", "division by zero"),
        ("{{Mod .Index 0}}", "division by zero"),
        ("{{AddInt (Mod .Index 2}}", "a parenthesis is not closed"),
        ("{{DivideInt 1}}", "DivideInt 1"),
        ("{{.Index .Count}}", "there is more after its end"),
        ("{{}}", "a value is missing"),
        ('{{AddInt "x"}}', "'x' is not a number"),
        ("{{AddInt .Name}}", "there is no field .Name"),
        ("{{$n}}", "there is no variable $n"),
        ("{{end}}", "where nothing is open"),
        ("{{else}}", "where nothing is open"),
        ("{{if .Index}}", "without {{end}}"),
        ("{{range .Name}}{{end}}", "not a number"),
        ("{{range 2}}{{.Index}}{{end}}", "there is no field .Index of a number"),
    ],
)
def test_an_action_that_cannot_be_meant_is_refused(action: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: ") as refused:
        render(f"before {action} after")
    assert complaint in str(refused.value)


def test_a_file_is_filled_in_and_read_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\nmetadata:\n  name: pod-{{.Index}}\n  labels: {a: '{{.Count}}'}\n")

    template = FileTemplate(path)

    expected = {"kind": "Pod", "metadata": {"name": "pod-3", "labels": {"a": "9"}}}
    assert template(3, 9) == expected
    assert template(4, 9)["metadata"]["name"] == "pod-4"


def test_a_file_may_have_parameters(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\nspec: {group: 'g-{{DivideInt .Index .size}}', priority: {{.p}}}\n")

    template = FileTemplate(path, {"size": 3, "p": 9})

    assert template(7, 9)["spec"] == {"group": "g-2", "priority": 9}


def test_a_file_without_actions_is_one_object(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\n")

    template = FileTemplate(path)

    assert template(0, 2) is template(1, 2)


def test_field_names_begin_in_lower_case_but_data_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("Spec:\n- NodeTaintsPolicy: Honor\n  labels: {Team: Green}\n")

    made = FileTemplate(path)(0, 1)

    assert made == {"spec": [{"nodeTaintsPolicy": "Honor", "labels": {"Team": "Green"}}]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a: [", "this is not YAML"), ("just words", "this is not an object")],
)
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=complaint) as refused:
        FileTemplate(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: No such file"):
        FileTemplate(tmp_path / "gone.yaml")
