"""Commands that a test cannot run: at least, they name programs, flags and files that exist.

Each program has its own check in `_CHECKS`; one without is refused, so that none goes unchecked.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from kubesched.cli import kube_scheduler, kubesched

from .markdown import ROOT, Command
from .terminal import CommandFailedError, syntax_error

_SEPARATORS: Final = frozenset({"&&", "||", "|", ";"})
_REDIRECTIONS: Final = frozenset({"<", ">", ">>"})
_FLAG: Final = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
#: Plugins of kubectl that tests do not install → flags that their documentation has.
_PLUGIN_FLAGS: Final = {"krew": "--archive --index --manifest --manifest-url --no-update-index"}
#: Commands of programs that tests do not install → flags that their documentation has.
_DOCUMENTED: Final = {
    "aws ecr get-login-password": "--region",
    "aws eks update-kubeconfig": "--alias --dry-run --kubeconfig --name --region --role-arn",
    "docker build": "--file --platform --tag",
    "docker cp": "--archive --follow-link --quiet",
    "docker exec": "--interactive --tty --user --workdir",
    "docker login": "--username --password-stdin",
    "docker push": "--all-tags --quiet",
    "docker save": "--output --platform",
    "gcloud auth configure-docker": "--include-artifact-registry --registries",
    "gcloud container clusters get-credentials": "--location --project --region --zone",
    "k3s ctr images import": "--all-platforms --digests --platform",
    "kind create cluster": "--config --image --kubeconfig --name --retain --wait",
    "kind load docker-image": "--name --nodes",
    "kubeadm config validate": "--allow-experimental-api --config",
    "kubeadm init": "--config --dry-run --patches --skip-phases",
    "kubeadm join": (
        "--config --control-plane --discovery-token-ca-cert-hash --dry-run --patches --token"
    ),
    "kubeadm upgrade apply": "--config --dry-run --patches --yes",
    "kubeadm upgrade node": "--config --dry-run --patches",
    "minikube cp": "--profile",
    "minikube image build": "--file --push --tag",
    "minikube image load": "--daemon --pull --remote",
    "minikube ssh": "--native-ssh --node",
    "minikube start": "--cni --container-runtime --extra-config --kubernetes-version --nodes",
}


def check(command: Command, *, kubectl: Path | None = None) -> None:
    """Raise if a command could not work anywhere; `kubectl` is asked for its flags if given."""
    if complaint := syntax_error(command.text):
        raise CommandFailedError(f"{command.where}: {complaint}")
    for words in simple_commands(command.text):
        program, *arguments = words
        try:
            if program == "kubectl":
                if kubectl is not None:
                    _check_kubectl(arguments, kubectl)
            elif program in _CHECKS:
                _CHECKS[program](arguments)
            else:
                raise _WrongError(f"there is no check for {program}")  # noqa: TRY301
        except _WrongError as wrong:
            raise CommandFailedError(f"{command.where}: {shlex.join(words)}: {wrong}") from None


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each command in a line of them."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _SEPARATORS:
            yield words
            words = []
        elif word in _REDIRECTIONS:
            next(lexer)
        else:
            words.append(word)
    if words:
        yield words


def check_ours(program: str, arguments: Sequence[str]) -> None:
    """Raise unless a command of ours has these subcommands and flags."""
    try:
        (_check_kubesched if program == "kubesched" else _check_kube_scheduler)(arguments)
    except _WrongError as wrong:
        raise CommandFailedError(f"{program} {shlex.join(arguments)}: {wrong}") from None


class _WrongError(Exception):
    """What is wrong with a command."""


def _check_kubesched(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] == "--version":
        return
    _must_know(arguments, help_of(*_subcommand(arguments)))


def _subcommand(arguments: Sequence[str]) -> list[str]:
    """The words that name a command: `simulate run`, `explain`."""
    return list(arguments[: 2 if arguments[0] == "simulate" and len(arguments) > 1 else 1])


@functools.cache
def help_of(*subcommand: str) -> str:
    """What `kubesched … --help` prints; raises if there is no such command."""
    code, printed = _call(kubesched.main, [*subcommand, "--help"])
    if code:
        raise _WrongError(printed.strip())
    return printed


@functools.cache
def _kube_scheduler_help() -> str:
    return _call(kube_scheduler.main, ["--help"])[1]


def _call(main: Callable[[Sequence[str]], int], arguments: list[str]) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, printed.getvalue()


def _check_kube_scheduler(arguments: Sequence[str]) -> None:
    _must_know(arguments, _kube_scheduler_help())


def _check_kubectl(arguments: Sequence[str], kubectl: Path) -> None:
    verbs = [each for each in arguments if not each.startswith("-")]
    if verbs and verbs[0] in _PLUGIN_FLAGS:
        return _must_know(arguments, _PLUGIN_FLAGS[verbs[0]])
    # The value of a flag in front is no verb: `--namespace kube-system get`.
    for first in range(len(verbs)):
        help_text = _kubectl_help(kubectl, verbs[first])
        if help_text:
            options = _kubectl_help(kubectl, "options")
            return _must_know(arguments, help_text + options)
    raise _WrongError("kubectl has no such command")


@functools.cache
def _kubectl_help(kubectl: Path, verb: str) -> str:
    asked = [verb] if verb == "options" else [verb, "--help"]
    done = subprocess.run([kubectl, *asked], capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def _must_know(arguments: Sequence[str], help_text: str) -> None:
    known = set(_FLAG.findall(help_text))
    for each in arguments:
        if each.startswith("-") and each != "-":
            flag = each.partition("=")[0]
            if flag not in known:
                raise _WrongError(f"there is no flag {flag}")


def _check_make(arguments: Sequence[str]) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise _WrongError(done.stderr.strip())


def _check_helm(arguments: Sequence[str]) -> None:
    chart = next(ROOT / each for each in arguments if (ROOT / each / "Chart.yaml").exists())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for flag, setting in itertools.pairwise(arguments):
        if flag == "--set":
            here = values
            for key in setting.partition("=")[0].split("."):
                if key not in here:
                    raise _WrongError(f"values.yaml has no {key} of {setting}")
                here = here[key]


def _check_documented(words: Sequence[str]) -> None:
    """Raise unless a command of another program is documented, and has these flags."""
    said = shlex.join(words)
    command = next((each for each in _DOCUMENTED if said.startswith(f"{each} ")), None)
    if command is None:
        raise _WrongError("this command is not in the table of those that are documented")
    # What comes after `--` is another command, on another machine.
    arguments = list(itertools.takewhile(lambda each: each != "--", words))
    _must_know(arguments, _DOCUMENTED[command])


def _check_docker(arguments: Sequence[str]) -> None:
    _check_documented(["docker", *arguments])
    if arguments[0] == "build" and not (ROOT / arguments[-1] / "Dockerfile").exists():
        raise _WrongError("no Dockerfile")


def _check_files(arguments: Sequence[str]) -> None:
    """Files of the repository are there; others are the reader's."""
    for each in arguments:
        if not each.startswith(("-", "/", "~", "..")) and not (ROOT / each).exists():
            raise _WrongError(f"the repository has no {each}")


def _check_sed(arguments: Sequence[str]) -> None:
    _check_files([each for each in arguments if not each.startswith("-")][1:])


def _nothing_to_check(_: Sequence[str]) -> None:
    """Another project's program, about things outside of this repository."""


def _check_pip(arguments: Sequence[str]) -> None:
    if arguments[0] not in ("install", "wheel"):
        raise _WrongError("only pip install and pip wheel are known here")


def _documented(program: str) -> Callable[[Sequence[str]], None]:
    return lambda arguments: _check_documented([program, *arguments])


_CHECKS: Final[dict[str, Callable[[Sequence[str]], None]]] = {
    ".": _nothing_to_check,
    "aws": _documented("aws"),
    "cp": _check_files,
    "curl": _nothing_to_check,
    "docker": _check_docker,
    "export": _nothing_to_check,
    "gcloud": _documented("gcloud"),
    "helm": _check_helm,
    "kube-scheduler": _check_kube_scheduler,
    "k3s": _documented("k3s"),
    "kind": _documented("kind"),
    "kubeadm": _documented("kubeadm"),
    "kubesched": _check_kubesched,
    "make": _check_make,
    "minikube": _documented("minikube"),
    "mkdir": _nothing_to_check,
    "mv": _nothing_to_check,
    "pip": _check_pip,
    "sed": _check_sed,
    "python": _nothing_to_check,
    "systemctl": _nothing_to_check,
}
