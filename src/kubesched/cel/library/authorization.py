"""Functions on an authorizer, which device selectors have none of.

They are declared because upstream's environment declares them, so that errors name the same
alternatives. No call of them can succeed.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel.functions import Function, Overload, no_such_overload
from kubesched.cel.types import BOOL, STRING, Type, struct
from kubesched.cel.values import Value

_PACKAGE: Final = "kubernetes.authorization"
_AUTHORIZER = struct(f"{_PACKAGE}.Authorizer")
_PATH = struct(f"{_PACKAGE}.PathCheck")
_GROUP = struct(f"{_PACKAGE}.GroupCheck")
_RESOURCE = struct(f"{_PACKAGE}.ResourceCheck")
_DECISION = struct(f"{_PACKAGE}.Decision")


def _declared(name: str, *signatures: tuple[str, tuple[Type, ...], Type]) -> Function:
    def refuse(*args: Value) -> Value:
        return no_such_overload(name, args)

    overloads = tuple(
        Overload(id_, args, result, refuse, is_member=True) for id_, args, result in signatures
    )
    return Function(name, overloads)


FUNCTIONS: Final = [
    _declared("path", ("authorizer_path", (_AUTHORIZER, STRING), _PATH)),
    _declared("group", ("authorizer_group", (_AUTHORIZER, STRING), _GROUP)),
    _declared(
        "serviceAccount",
        ("authorizer_serviceaccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER),
    ),
    _declared("resource", ("groupcheck_resource", (_GROUP, STRING), _RESOURCE)),
    _declared("subresource", ("resourcecheck_subresource", (_RESOURCE, STRING), _RESOURCE)),
    _declared("namespace", ("resourcecheck_namespace", (_RESOURCE, STRING), _RESOURCE)),
    _declared("name", ("resourcecheck_name", (_RESOURCE, STRING), _RESOURCE)),
    _declared(
        "check",
        ("pathcheck_check", (_PATH, STRING), _DECISION),
        ("resourcecheck_check", (_RESOURCE, STRING), _DECISION),
    ),
    _declared("errored", ("decision_errored", (_DECISION,), BOOL)),
    _declared("error", ("decision_error", (_DECISION,), STRING)),
    _declared("allowed", ("decision_allowed", (_DECISION,), BOOL)),
    _declared("reason", ("decision_reason", (_DECISION,), STRING)),
    _declared("fieldSelector", ("authorizer_fieldselector", (_RESOURCE, STRING), _RESOURCE)),
    _declared("labelSelector", ("authorizer_labelselector", (_RESOURCE, STRING), _RESOURCE)),
]
