"""What a file may look like: YAML, JSON, and neither."""

from __future__ import annotations

from .case import Case, Words, raw, text

_V1 = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_JSON = '"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"'

CASES: dict[str, Case] = {
    "an empty file": raw(""),
    # kube-scheduler shows the whole file as it is, kubesched its beginning on one line.
    "a comment": raw("# nothing\n", words=Words.ANY),
    "a list": raw("- 1\n"),
    "a text": raw("hello\n"),
    "a number": raw("1\n"),
    "null": raw("null\n", words=Words.ANY),
    "no kind": raw("apiVersion: kubescheduler.config.k8s.io/v1\n", words=Words.ANY),
    "no version": raw("kind: KubeSchedulerConfiguration\n", words=Words.ANY),
    "an empty object": raw("{}"),
    "JSON that ends early": raw(f"{{{_JSON}", words=Words.ANY),
    "JSON with more behind it": raw(f"{{{_JSON}}} x", words=Words.ANY),
    "JSON with a field twice": raw(f'{{{_JSON},"parallelism":1,"parallelism":2}}'),
    "JSON with a number as a float": raw(
        f'{{{_JSON},"parallelism":4.0,"clientConnection":{{"kubeconfig":"kubeconfig.yaml"}}}}'
    ),
    "JSON with a number and an exponent": raw(f'{{{_JSON},"parallelism":1e1}}'),
    "JSON with a comma too many": raw(f"{{{_JSON},}}", words=Words.ANY),
    "YAML with a tab": raw(_V1 + "\tparallelism: 1\n", words=Words.ANY),
    "YAML with an open bracket": raw(_V1 + "profiles: [\n", words=Words.ANY),
    "YAML with a key twice": text("parallelism: 1\nparallelism: 2\n"),
    "YAML with a nested key twice": text(
        "leaderElection:\n  leaderElect: true\n  leaderElect: false\n"
    ),
    "YAML of two documents": text("parallelism: 3\n---\nparallelism: x\n"),
    "YAML that begins with dashes": raw(
        "---\n" + _V1 + "clientConnection: {kubeconfig: kubeconfig.yaml}\n"
    ),
    "YAML with a hexadecimal number": text("parallelism: 0x10\n"),
    "YAML with an octal number": text("parallelism: 010\n"),
    "YAML with underscores": text("parallelism: 1_6\n"),
    "YAML with a whole float": text("parallelism: 4.0\n"),
    "YAML with a broken float": text("parallelism: 4.5\n"),
    "YAML with yes": text("enableProfiling: yes\n"),
    "YAML with off": text("enableProfiling: off\n"),
    "YAML with y": text("enableProfiling: y\n"),
    "YAML with a quoted number": text('parallelism: "4"\n'),
    "YAML with null": text("parallelism: ~\n"),
    "YAML with nothing": text("parallelism:\n"),
    "YAML with a number for a text": text("profiles: [{schedulerName: 12}]\n"),
    "YAML with a date for a text": text("profiles: [{schedulerName: 2001-01-01}]\n"),
    "YAML with a base-60 number": text("profiles: [{schedulerName: 1:30}]\n"),
    "YAML with an anchor": text(
        "profiles:\n- &a {schedulerName: a, percentageOfNodesToScore: 5}\n"
        "- {<<: *a, schedulerName: b}\n"
    ),
    "YAML with an alias that is unknown": text("profiles: [*a]\n", words=Words.ANY),
    "YAML with a tag": text('parallelism: !!int "7"\n'),
    "YAML with a name in Greek": text("profiles: [{schedulerName: πρόγραμμα}]\n"),
    "YAML with a name to quote": text("profiles: [{schedulerName: 'true'}]\n"),
    "YAML with a name of several lines": text('profiles: [{schedulerName: "a\\nb"}]\n'),
    "YAML with a colon in a name": text("profiles: [{schedulerName: 'a: b # c'}]\n"),
    "several unknown fields": text("zoo: 1\nalpha: 2\nmiddle: {a: 1}\n"),
    "unknown and doubled fields": text("zoo: 1\nparallelism: 1\nparallelism: 2\n"),
}
