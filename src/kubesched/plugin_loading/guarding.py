"""Guards every extension point of a plugin, so that a bug costs one attempt at one pod.

    framework ──> guarded method ──> the plugin's own
                        ├─ raises, or returns an invalid answer: error of this attempt
                        └─ takes too long in a cycle: reported, and goes on

The guarded class is a subclass, so the framework uses it as the plugin. Only out-of-tree plugins
are guarded; in-tree ones have tests, and the guard would cost time.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final, cast

import numpy as np
from msgspec.json import encode
from msgspec.structs import replace

from kubesched import kinds
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.detail import Detail
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.group import PodGroupPostFilterResult
from kubesched.framework.plugin import NODE, Plugin, PostFilterResult, Reads, RowLocal
from kubesched.framework.registry import PluginContext, Registry
from kubesched.framework.status import Status, error
from kubesched.framework.verdict import Verdict
from kubesched.plugin_loading.arguments import arguments_of, check_type
from kubesched.plugin_loading.watching import BUDGET_S, WATCH, Watch, what, where

Method = Callable[..., Any]

_FORGET: Final = "_kubesched_forget"

#: Method → fallback answer for the framework.
_INSTEAD: Final[dict[str, Callable[[str], object]]] = {
    "pre_enqueue": error,
    "reserve": error,
    "pre_bind_pre_flight": error,
    "permit": lambda text: (error(text), 0.0),
    "post_filter": lambda text: PostFilterResult(error(text)),
    "generate_placements": lambda text: ([], error(text)),
    "score_placement": lambda text: (0, error(text)),
    "score_placements": lambda text: ([], error(text)),
    "normalize_placements": lambda text: ([], error(text)),
    "pod_group_post_filter": lambda text: PodGroupPostFilterResult(error(text)),
    # Anything may help: better to try a pod in vain than to forget it.
    "events_to_register": lambda _text: None,
    # Then each pod is checked on its own.
    "kept_out": lambda _text: None,
    "unreserve": lambda _text: None,
    "post_bind": lambda _text: None,
    # Last: a pod that cannot be ordered must not block others.
    "sort_key": lambda _text: (math.inf,),
}
#: Methods that return a function for one row; its failure also ends the attempt.
_MAKING: Final = ("row_filter", "row_scorer")
#: Methods whose failure ends the attempt.
_ENDING: Final = (
    "pre_filter",
    "filter",
    "count_bounds",
    "pre_score",
    "score",
    "normalize",
    "epoch",
)
_ASYNC: Final = ("pre_bind", "bind")
#: For explanations; the text of a failure takes the place of the details.
_DETAILS: Final = "details"
#: All methods that a plugin may implement; `create` is guarded where plugins are created.
GUARDED_METHODS: Final = frozenset({*_INSTEAD, *_ENDING, *_MAKING, *_ASYNC, _DETAILS, "create"})
#: Shortcut methods → the methods they replace.
_SHORT_FOR: Final[dict[str, tuple[str, ...]]] = {
    "count_bounds": ("filter",),
    "row_filter": ("filter",),
    "row_scorer": ("score",),
}
#: Methods that share the budget of a scheduling cycle; others have it for each call.
_IN_CYCLE: Final = frozenset({*_MAKING, *_ENDING, "post_filter"})


def guarded(plugin: type[Plugin], clock: Clock) -> type[Plugin]:
    """Return the guarded class of a plugin; raises PluginError if it is not one."""
    name = getattr(plugin, "name", None) or plugin.__name__
    _check_class(plugin, name)
    members: dict[str, object] = {
        "__module__": plugin.__module__,
        "__qualname__": plugin.__qualname__,
        "__doc__": plugin.__doc__,
        "name": name,
    }
    for method in (*_INSTEAD, *_ENDING, *_MAKING, *_ASYNC, _DETAILS):
        own = getattr(plugin, method, None)
        if own is not None and not _is_framework_s(own):
            members[method] = _wrapped(method, own)
    members |= _without_shortcuts(plugin)
    made = cast("type[Plugin]", type(plugin.__name__, (plugin,), members))
    made.create = classmethod(_creator(plugin, clock))  # type: ignore[method-assign, assignment]
    check_type(made)
    for each in plugin.watches:
        kinds.add(each)
    # Validate like a registry now, while the source of the class is known.
    Registry([made])
    return made


def file_of(plugin: type) -> str:
    """Return the file of a class."""
    try:
        return inspect.getfile(plugin)
    except (TypeError, OSError):
        return "<unknown>"


def _check_class(plugin: type[Plugin], name: str) -> None:
    missing = sorted(getattr(plugin, "__abstractmethods__", ()))
    if missing:
        raise PluginError(f"plugin {name} lacks {', '.join(missing)}")
    reads: object = getattr(plugin, "reads", NODE)
    if issubclass(plugin, RowLocal) and (not isinstance(reads, Reads) or not reads):
        raise PluginError(
            f"plugin {name} has reads = {reads!r}: combine NODE, PODS and REQUESTS of "
            "kubesched.framework.plugin"
        )


def _without_shortcuts(plugin: type[Plugin]) -> dict[str, object]:
    """Return overrides that disable inherited shortcuts of methods that the plugin overrides."""
    undone: dict[str, object] = {}
    for shortcut, methods in _SHORT_FOR.items():
        written = _written_in(plugin, shortcut)
        own = [each for method in methods for each in _written_in(plugin, method)[:1]]
        if written and any(issubclass(each, written[0]) for each in own if each != written[0]):
            # The framework's default: no shortcut.
            undone[shortcut] = vars(written[-1])[shortcut]
    if "count_bounds" in undone:
        undone["bounds_counts"] = False
    return undone


def _written_in(plugin: type[Plugin], method: str) -> list[type]:
    """Return the classes that define a method, the plugin's own first."""
    return [each for each in plugin.__mro__ if method in vars(each)]


def _is_framework_s(method: Method) -> bool:
    """Tell whether it is the framework's default: nothing to guard."""
    return method.__module__ == Plugin.__module__


# --- creation ---------------------------------------------------------------------------------


def _creator(plugin: type[Plugin], clock: Clock) -> Method:
    def create(cls: type[Plugin], context: PluginContext) -> Plugin:
        try:
            made = _made(cls, plugin, context)
        except ConfigError:
            raise
        except Exception as bug:  # noqa: BLE001 (reported as the plugin's error)
            file = file_of(plugin)
            raise ConfigError(f"cannot be made: {where(bug, file)}: {what(bug)}") from None
        if type(made) is not cls:
            # It was created by name. The guarded class only adds methods.
            made.__class__ = cls
        watch = Watch(
            cls.name,
            file_of(plugin),
            metrics=context.metrics,
            timer=clock.monotonic,
            budget_s=float(getattr(cls, "budget_s", BUDGET_S)),
        )
        object.__setattr__(made, WATCH, watch)
        object.__setattr__(made, _FORGET, partial(_forget_columns, context))
        return made

    return create


def _forget_columns(context: PluginContext) -> None:
    """Invalidate every cached column: one may be half updated."""
    # There is no evaluator before the framework is complete.
    context.evaluator.get().plans.clear()


def _made(cls: type[Plugin], plugin: type[Plugin], context: PluginContext) -> Plugin:
    if plugin.create.__func__ is not Plugin.create.__func__:  # type: ignore[attr-defined]
        # It overrides `create`, and may read its arguments with `arguments_of`.
        made: Plugin = plugin.create.__func__(cls, context)  # type: ignore[attr-defined]
        return made
    args = arguments_of(context.profile, cls)
    return cls() if args is None else cls(args)  # type: ignore[call-arg]


# --- calls ------------------------------------------------------------------------------------


def _wrapped(method: str, own: Method) -> Method:
    if method in _ASYNC:
        return _wrapped_async(own)
    if method in _ENDING:
        return _wrapped_ending(method, own)
    if method in _MAKING:
        return _wrapped_making(method, own)
    if method == _DETAILS:
        return _wrapped_details(own)
    return _wrapped_status(method, own)


def _wrapped_status(method: str, own: Method) -> Method:
    instead = _INSTEAD[method]
    in_cycle = method in _IN_CYCLE

    @wraps(own)
    def guarded_method(self: object, *arguments: object) -> object:
        watch = _watch_of(self)
        started = watch.timer()
        try:
            return own(self, *arguments)
        except Exception as bug:  # noqa: BLE001 (a plugin's bug must not stop the scheduler)
            return instead(watch.failed(bug, _pod_in(arguments)))
        finally:
            seconds = watch.timer() - started
            if not (in_cycle and watch.spent(method, seconds)):
                watch.took(method, seconds, _pod_in(arguments))

    return guarded_method


def _wrapped_ending(method: str, own: Method) -> Method:
    check = _CHECKS.get(method, _unchecked)

    @wraps(own)
    def guarded_method(self: Plugin, *arguments: object) -> object:
        watch = _watch_of(self)
        now = watch.timer
        started = now()
        try:
            return check(own(self, *arguments), arguments[-1])
        except AttemptError:
            raise
        except Exception as bug:
            raise _ended(self, watch, bug, _pod_in(arguments)) from bug
        finally:
            seconds = now() - started
            if not watch.spent(method, seconds):
                watch.took(method, seconds, _pod_in(arguments))

    return guarded_method


def _wrapped_making(method: str, own: Method) -> Method:
    make, check = _wrapped_ending(method, own), _ROW_CHECKS[method]

    @wraps(own)
    def guarded_method(self: Plugin, *arguments: object) -> object:
        ask = make(self, *arguments)
        if ask is None:
            return None
        watch = _watch_of(self)

        def guarded_ask(row: int) -> object:
            started = watch.timer()
            try:
                return check(ask(row))
            except Exception as bug:
                raise _ended(self, watch, bug) from bug
            finally:
                seconds = watch.timer() - started
                if not watch.spent(method, seconds):
                    watch.took(method, seconds)

        return guarded_ask

    return guarded_method


def _ended(
    plugin: Plugin, watch: Watch, bug: Exception, pod: PodInfo | None = None
) -> AttemptError:
    """Return the exception that ends an attempt because a plugin failed."""
    # A half updated column must not be taken for a valid one.
    getattr(plugin, _FORGET)()
    return AttemptError(error(watch.failed(bug, pod)).by(plugin.name))


def _wrapped_async(own: Method) -> Method:
    @wraps(own)
    async def guarded_method(self: object, *arguments: object) -> object:
        try:
            return await own(self, *arguments)
        except Exception as bug:  # noqa: BLE001 (as above)
            return error(_watch_of(self).failed(bug, _pod_in(arguments)))

    return guarded_method


def _wrapped_details(own: Method) -> Method:
    @wraps(own)
    def guarded_method(self: object, *arguments: object) -> list[Detail]:
        try:
            # A list, as a generator would fail later.
            return [_checked_detail(each) for each in own(self, *arguments)]
        except Exception as bug:  # noqa: BLE001 (as above)
            return [Detail(_watch_of(self).failed(bug, _pod_in(arguments)))]

    return guarded_method


def _pod_in(arguments: tuple[object, ...]) -> PodInfo | None:
    """Return the pod of a call; row-local methods get only its signature."""
    for each in arguments:
        if isinstance(each, PodInfo):
            return each
    return None


def _watch_of(plugin: object) -> Watch:
    watch: Watch = getattr(plugin, WATCH)
    return watch


# --- answers ----------------------------------------------------------------------------------


def _unchecked(answer: object, _about: object) -> object:
    return answer


def _checked_verdict(answer: object, nodes: Any) -> Verdict:  # noqa: ANN401 (NodeRows)
    if not isinstance(answer, Verdict):
        raise PluginError(f"filter returned {type(answer).__name__} instead of a Verdict")
    numbers = answer.answers
    if numbers is None:
        return answer
    if len(numbers) != len(nodes):
        raise PluginError(f"filter gave {len(numbers)} answers for {len(nodes)} nodes")
    if not np.issubdtype(numbers.dtype, np.integer):
        raise PluginError(f"filter gave answers of type {numbers.dtype} instead of integers")
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) <= len(answer.statuses):
        raise PluginError(f"filter gave answers beyond its {len(answer.statuses)} statuses")
    return answer


def _checked_scores(answer: object, about: Any) -> object:  # noqa: ANN401 (NodeRows, or scores)
    if answer is None:
        return None
    if isinstance(answer, DomainScores):
        return _checked_domain_scores(answer, about)
    if not isinstance(answer, np.ndarray):
        raise PluginError(f"scores are of type {type(answer).__name__} instead of an array")
    if len(answer) != len(about):
        raise PluginError(f"{len(answer)} scores for {len(about)} nodes")
    if answer.dtype == np.int64:
        return answer
    if not np.issubdtype(answer.dtype, np.integer):
        raise PluginError(f"scores are of type {answer.dtype} instead of integers: round them")
    return answer.astype(np.int64)


def _checked_domain_scores(answer: DomainScores, about: Any) -> DomainScores:  # noqa: ANN401
    values, domains = _checked_scores(answer.values, answer.values), answer.domains
    if len(answer) != len(about):
        raise PluginError(f"DomainScores of {len(answer)} nodes for {len(about)} nodes")
    if len(answer.counted) != len(answer.values):
        sizes = f"{len(answer.values)} values, but {len(answer.counted)} in counted"
        raise PluginError(f"DomainScores have {sizes}")
    if domains is not None and len(domains):
        least, most = int(domains.min()), int(domains.max())
        if not 0 <= least <= most < len(answer.values):
            raise PluginError(f"DomainScores name domains beyond its {len(answer.values)} values")
    return replace(answer, values=values)


def _checked_detail(answer: object) -> Detail:
    if not isinstance(answer, Detail):
        raise PluginError(f"details has {type(answer).__name__} instead of a Detail")
    encode(answer.values)
    return answer


def _checked_status(answer: object) -> object:
    if answer is not None and not isinstance(answer, Status):
        raise PluginError(
            f"row_filter's function returned {type(answer).__name__} instead of a Status or None"
        )
    return answer


def _checked_score(answer: object) -> object:
    if answer is not None and not isinstance(answer, int | np.integer):
        raise PluginError(
            f"row_scorer's function returned {type(answer).__name__} instead of an int or None"
        )
    return answer


#: Result checks of functions for one row.
_ROW_CHECKS: Final[dict[str, Callable[[object], object]]] = {
    "row_filter": _checked_status,
    "row_scorer": _checked_score,
}
_CHECKS: Final[dict[str, Callable[[object, Any], object]]] = {
    "filter": _checked_verdict,
    "score": _checked_scores,
    "normalize": _checked_scores,
}
