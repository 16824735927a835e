"""The conformance suite: every promise of the contract, tested on random clusters.

plugin_checks(Cheapest) ──> ("deterministic", check), ("row_by_row", check), …
check_plugin(Cheapest)  ──> runs them all; raises PluginCheckError at the first failure
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kubesched.api.core import Node, Pod
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.plugin import Plugin
from kubesched.testing import hook_promises, input_promises, promises
from kubesched.testing.trial import PluginCheckError, PluginTrial, Promise, Subject


def check_plugin(
    plugin: type[Plugin],
    *,
    args: Mapping[str, Any] | None = None,
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    seed: int = 0,
    examples: int = 6,
) -> None:
    """Check that a plugin keeps every promise it makes; raises PluginCheckError if not.

    `args` are as in ``pluginConfig``. `nodes` and `pods` should matter to the plugin, for instance
    have the label that it reads: random ones do not. `examples` is the number of random clusters
    per check; the same `seed` gives the same clusters.
    """
    __tracebackhide__ = True
    for _, check in plugin_checks(
        plugin, args=args, nodes=nodes, pods=pods, seed=seed, examples=examples
    ):
        check()


def plugin_checks(
    plugin: type[Plugin],
    *,
    args: Mapping[str, Any] | None = None,
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    seed: int = 0,
    examples: int = 6,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the checks that apply to a plugin, each with its name, for pytest to parametrize over.

    Arguments are those of `check_plugin`.
    """
    subject = Subject(
        plugin=plugin, args=args, nodes=nodes, pods=pods, seed=seed, examples=examples
    )
    for promise in ALL_PROMISES:
        if promise.applies_to(plugin):
            yield promise.name, partial(_run, promise, subject)


#: In the order of execution.
ALL_PROMISES: tuple[Promise, ...] = (
    *promises.PROMISES.all,
    *input_promises.PROMISES.all,
    *hook_promises.PROMISES.all,
)


def _run(promise: Promise, subject: Subject) -> None:
    __tracebackhide__ = True
    for trial in subject.trials(promise.name):
        try:
            _check(promise, trial)
        except PluginCheckError as broken:
            # The message says where the plugin is wrong; the check's traceback does not help.
            raise broken.with_traceback(None) from broken.__cause__


def _check(promise: Promise, trial: PluginTrial) -> None:
    try:
        promise.check(trial)
    except PluginCheckError:
        raise
    except AttemptError as failed:
        trial.fail(failed.status.message, cause=failed)
    except Exception as bug:  # noqa: BLE001 (a plugin may raise anything)
        trial.fail(f"it raised {type(bug).__name__}: {bug}", cause=bug)
