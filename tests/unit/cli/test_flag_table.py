"""The flags of kube-scheduler: what help says, and that the table is whole."""

from __future__ import annotations

import pytest

from kubesched.cli.flag_help import help_text
from kubesched.cli.flag_kinds import BOOL, DURATION, STRING, STRINGS
from kubesched.cli.flag_table import FLAGS
from kubesched.cli.flags import Flag, FlagSet, Group
from kubesched.config.durations import Duration

SMALL = FlagSet(
    [
        Group(
            "first group",
            (
                Flag("zoo", STRING, "animals", "Where to go."),
                Flag("all", BOOL, True, "Everything.", shorthand="a"),
                Flag("none", BOOL, False, "Nothing.", no_effect="It is a joke."),
            ),
        ),
        Group(
            "second",
            (
                Flag("wait", DURATION, Duration.of_seconds(90), "How long.\nOr longer."),
                Flag("names", STRINGS, (), "Who."),
            ),
        ),
    ]
)


def test_help_has_groups_kinds_and_defaults() -> None:
    assert help_text(SMALL, command="go", about="Goes.") == (
        "Goes.\n"
        "\n"
        "Usage:\n"
        "  go [flags]\n"
        "\n"
        "First group flags:\n"
        "\n"
        "  -a, --all          Everything. (default true)\n"
        "      --none         Nothing. It is a joke.\n"
        '      --zoo string   Where to go. (default "animals")\n'
        "\n"
        "Second flags:\n"
        "\n"
        "      --names strings   Who.\n"
        "      --wait duration   How long.\n"
        "                        Or longer. (default 1m30s)\n"
    )


def test_help_is_wrapped_to_the_terminal() -> None:
    text = help_text(FLAGS, command="kube-scheduler", about="x", width=100)
    lines = [line for line in text.splitlines() if "kube:" not in line and "TLS_" not in line]

    assert max(map(len, lines)) <= 100
    assert text.split() == help_text(FLAGS, command="kube-scheduler", about="x").split()


def test_help_is_not_wrapped_to_nothing() -> None:
    narrow = help_text(SMALL, command="go", about="Goes.", width=20)

    assert narrow == help_text(SMALL, command="go", about="Goes.")


def test_no_name_is_there_twice() -> None:
    names = [flag.name for group in FLAGS.groups for flag in group.flags]

    assert len(names) == len(set(names)) == len(FLAGS.flags)


#: Flags whose default is nothing, and nothing is what their kind cannot read.
UNSAYABLE = {"seed", "tls-curve-preferences", "tls-sni-cert-key", "allow-metric-labels"}


@pytest.mark.parametrize("name", sorted(FLAGS.flags.keys() - UNSAYABLE))
def test_every_default_can_be_given(name: str) -> None:
    flag = FLAGS.flags[name]
    shown = flag.default_text
    if shown.startswith("["):
        shown = shown[1:-1]
    assert flag.kind.read(shown, None) == flag.default


@pytest.mark.parametrize("flag", FLAGS.flags.values(), ids=FLAGS.flags)
def test_every_flag_is_explained(flag: Flag) -> None:
    assert flag.help[0].isupper() or flag.help.startswith(("[Alpha] ", "kubeconfig "))
    assert flag.help.rstrip()[-1] in ".)'" or flag.help.endswith(")")


def test_the_groups_of_kube_scheduler_and_ours() -> None:
    assert [group.title for group in FLAGS.groups] == [
        "misc",
        "secure serving",
        "authentication",
        "authorization",
        "deprecated",
        "leader election",
        "feature gate",
        "metrics",
        "logs",
        "kubesched",
        "global",
    ]
