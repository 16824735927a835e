"""The static type of each node, and the overloads that each call may mean.

Names are resolved on the way: ``a.b.c`` is a field selection unless ``a.b.c`` is a declared name,
and ``a.b.c()`` is a method unless ``a.b.c`` is a declared function. All errors are reported, in
one go.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel import types
from kubesched.cel.device import DEVICE
from kubesched.cel.environment import DEVICE_FIELDS, FUNCTIONS, TYPE_NAMES
from kubesched.cel.functions import Function, Overload
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
    children,
)
from kubesched.cel.types import Kind, Type, list_of, map_of, optional_of, unwrapped
from kubesched.cel.unification import Substitution, most_general
from kubesched.cel.values import type_of

_CONTAINER: Final = "(in container '')"
#: Types that nest more than this come only from expressions made to exhaust the checker.
_MAX_TYPE_SIZE: Final = 10_000


def check(expr: Expr, source: CelSource) -> Type:
    """Annotate the tree with types and overloads; errors go to the source."""
    checker = _Checker(source)
    checker.check(expr)
    checker.finish(expr)
    return expr.type


class _Checker:
    def __init__(self, source: CelSource) -> None:
        self._source = source
        self._bindings = Substitution()
        self._scopes: list[dict[str, Type]] = []
        self._variables = 0

    # -- names ----------------------------------------------------------------------------------

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _resolve(self, name: str) -> tuple[str, Type] | None:
        """Return a name as it is to be looked up at run time, and its type."""
        bare = name.removeprefix(".")
        local = self._local(bare)
        if local is not None and bare == name:
            return name, local
        declared = _declared(bare)
        if declared is None:
            return None
        return ("." + bare if local is not None else bare), declared

    def _resolve_selection(self, expr: Select) -> tuple[str, Type] | None:
        """Return the declared name that a selection spells, if it does."""
        parts: list[str] = []
        operand: Expr = expr
        while isinstance(operand, Select):
            if operand.test_only:
                return None
            parts.append(operand.field)
            operand = operand.operand
        if not isinstance(operand, Ident):
            return None
        bare = operand.name.removeprefix(".")
        local = self._local(bare)
        if local is not None and bare == operand.name:
            return None
        name = ".".join([bare, *reversed(parts)])
        declared = _declared(name)
        if declared is None:
            return None
        return ("." + name if local is not None else name), declared

    # -- nodes ----------------------------------------------------------------------------------

    def check(self, expr: Expr) -> None:
        match expr:
            case Literal():
                expr.type = type_of(expr.value)
            case Ident():
                self._check_ident(expr)
            case Select():
                self._check_select(expr)
            case Call():
                self._check_call(expr)
            case ListExpr():
                self._check_list(expr)
            case MapExpr():
                self._check_map(expr)
            case StructExpr():
                self._check_struct(expr)
            case Comprehension():
                self._check_comprehension(expr)
            case _:
                expr.type = types.ERROR
        if expr.type.size > _MAX_TYPE_SIZE:
            self._source.report(expr.offset, "type of the expression nests too deeply")
            expr.type = types.ERROR

    def finish(self, expr: Expr) -> None:
        """Replace type variables that are left by what they stand for."""
        pending = [expr]
        while pending:
            node = pending.pop()
            node.type = self._bindings.substitute(node.type, free_to_dyn=True)
            pending += children(node)

    def _error(self, expr: Expr, message: str) -> Type:
        self._source.report(expr.offset, message)
        return types.ERROR

    def _mismatch(self, expr: Expr, expected: Type, found: Type) -> Type:
        return self._error(expr, f"expected type '{expected}' but found '{found}'")

    def _is_assignable(self, left: Type, right: Type) -> bool:
        return self._bindings.unify([left], [right])

    def _new_variable(self) -> Type:
        self._variables += 1
        return types.param(f"_var{self._variables - 1}")

    def _check_ident(self, expr: Ident) -> None:
        found = self._resolve(expr.name)
        if found is None:
            text = f"undeclared reference to '{expr.name}' {_CONTAINER}"
            expr.type = self._error(expr, text)
        else:
            expr.name, expr.type = found

    def _check_select(self, expr: Select) -> None:
        found = self._resolve_selection(expr)
        if found is not None:
            # A constant: types are the only names with dots in them.
            expr.type = found[1]
            expr.operand = Ident(expr.offset, found[0], type=found[1])
            expr.field = ""
            return
        self.check(expr.operand)
        field_type = self._field_type(expr, expr.operand, expr.field, is_optional=False)
        expr.type = types.BOOL if expr.test_only else self._bindings.substitute(field_type)

    def _field_type(self, expr: Expr, operand: Expr, field: str, *, is_optional: bool) -> Type:
        target, was_optional = unwrapped(self._bindings.substitute(operand.type))
        match target.kind:
            case Kind.MAP:
                result = target.parameters[1]
            case Kind.STRUCT:
                fields = DEVICE_FIELDS if target == types.DEVICE else {}
                if target != types.DEVICE:
                    text = f"unexpected failed resolution of '{target.name}'"
                    result = self._error(expr, text)
                elif field in fields:
                    result = fields[field]
                else:
                    result = self._error(expr, f"undefined field '{field}'")
            case Kind.PARAM:
                self._is_assignable(types.DYN, target)
                result = types.DYN
            case _:
                if not target.is_dyn_or_error:
                    self._error(expr, f"type '{target}' does not support field selection")
                result = types.DYN
        return optional_of(result) if was_optional or is_optional else result

    # -- calls ----------------------------------------------------------------------------------

    def _check_call(self, expr: Call) -> None:
        if expr.function == "_?._":
            operand, field = expr.args
            assert isinstance(field, Literal)  # noqa: S101 - the parser makes it
            self.check(operand)
            self.check(field)
            field_type = self._field_type(expr, operand, field.value, is_optional=True)
            expr.type = self._bindings.substitute(field_type)
            return
        for arg in expr.args:
            self.check(arg)
        name = expr.function.removeprefix(".")
        function = FUNCTIONS.get(name)
        if expr.target is not None:
            qualified = _qualified_name(expr.target)
            namespaced = FUNCTIONS.get(f"{qualified}.{name}") if qualified else None
            if namespaced is not None:
                expr.function, expr.target, function = namespaced.name, None, namespaced
            else:
                self.check(expr.target)
        if function is None:
            text = f"undeclared reference to '{expr.function}' {_CONTAINER}"
            expr.type = self._error(expr, text)
            return
        expr.function = function.name
        self._resolve_overloads(expr, function)

    def _resolve_overloads(self, expr: Call, function: Function) -> None:
        if function.name in ("_&&_", "_||_"):
            self._check_logic(expr, function)
            return
        arg_types = [operand.type for operand in expr.operands]
        result: Type | None = None
        matching = []
        for overload in function.overloads:
            if overload.is_member != (expr.target is not None):
                continue
            if len(overload.args) != len(arg_types):
                continue
            declared_args, declared_result = self._instantiated(overload)
            if not self._bindings.unify(arg_types, declared_args):
                continue
            matching.append(overload.id)
            overload_result = self._bindings.substitute(declared_result)
            if result is None:
                result = overload_result
            elif result.kind is not Kind.DYN and overload_result != result:
                result = types.DYN
        if result is None:
            signature = self._signature(arg_types, is_member=expr.target is not None)
            text = f"found no matching overload for '{function.name}' applied to '{signature}'"
            expr.type = self._error(expr, text)
            return
        expr.type, expr.overloads = result, tuple(matching)

    def _check_logic(self, expr: Call, function: Function) -> None:
        expr.type, expr.overloads = types.BOOL, (function.overloads[0].id,)
        for arg in expr.args:
            if not self._is_assignable(arg.type, types.BOOL):
                expr.type = self._mismatch(arg, types.BOOL, arg.type)

    def _instantiated(self, overload: Overload) -> tuple[list[Type], Type]:
        """Return a signature with fresh type variables."""
        fresh: dict[str, Type] = {}

        def renamed(type_: Type) -> Type:
            if type_.kind is Kind.PARAM:
                if type_.name not in fresh:
                    fresh[type_.name] = self._new_variable()
                return fresh[type_.name]
            if not type_.parameters:
                return type_
            return Type(type_.kind, type_.name, tuple(map(renamed, type_.parameters)))

        return [renamed(arg) for arg in overload.args], renamed(overload.result)

    def _signature(self, arg_types: list[Type], *, is_member: bool) -> str:
        shown = [str(self._bindings.substitute(it, free_to_dyn=True)) for it in arg_types]
        target = f"{shown.pop(0)}." if is_member else ""
        return f"{target}({', '.join(shown)})"

    # -- literals -------------------------------------------------------------------------------

    def _joined(self, before: Type | None, current: Type) -> Type:
        """Return the type of elements so far, and of one more."""
        if before is None:
            return current
        if self._is_assignable(before, current):
            return most_general(before, current)
        # That elements differ is the validators' to report, as some may.
        return types.DYN

    def _unwrapped_element(self, expr: Expr) -> Type:
        """Return what an optional element adds, which must be optional itself."""
        element, is_optional = unwrapped(expr.type)
        if not is_optional and element.kind is not Kind.DYN:
            self._mismatch(expr, optional_of(element), element)
        return element

    def _check_list(self, expr: ListExpr) -> None:
        element: Type | None = None
        for index, part in enumerate(expr.elements):
            self.check(part)
            added = self._unwrapped_element(part) if index in expr.optional else part.type
            element = self._joined(element, added)
        expr.type = list_of(self._new_variable() if element is None else element)

    def _check_map(self, expr: MapExpr) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in expr.entries:
            self.check(entry.key)
            key = self._joined(key, entry.key.type)
            self.check(entry.value)
            added = self._unwrapped_element(entry.value) if entry.optional else entry.value.type
            value = self._joined(value, added)
        if key is None or value is None:
            key, value = self._new_variable(), self._new_variable()
        expr.type = map_of(key, value)

    def _check_struct(self, expr: StructExpr) -> None:
        # No message can be built here: those of this environment are the scheduler's to make.
        expr.type = self._error(expr, f"undeclared reference to '{expr.type_name}' {_CONTAINER}")
        for entry in expr.fields:
            entry.key.type = types.STRING
            self.check(entry.value)

    # -- comprehensions -------------------------------------------------------------------------

    def _check_comprehension(self, expr: Comprehension) -> None:
        self.check(expr.range)
        self.check(expr.init)
        first, second = self._element_types(expr)
        accumulator = expr.init.type
        self._scopes.append({expr.accumulator: accumulator})
        variables = {expr.variable: first}
        if expr.variable2 is not None:
            variables[expr.variable2] = second
        self._scopes.append(variables)
        self.check(expr.condition)
        self._assert_type(expr.condition, types.BOOL)
        self.check(expr.step)
        self._assert_type(expr.step, accumulator)
        self._scopes.pop()
        self.check(expr.result)
        self._scopes.pop()
        expr.type = self._bindings.substitute(expr.result.type)

    def _element_types(self, expr: Comprehension) -> tuple[Type, Type]:
        """Return the types of the two variables: index or key, and element or value."""
        range_type = self._bindings.substitute(expr.range.type)
        has_two = expr.variable2 is not None
        match range_type.kind:
            case Kind.LIST:
                element = range_type.parameters[0]
                return (types.INT, element) if has_two else (element, element)
            case Kind.MAP:
                return range_type.parameters[0], range_type.parameters[1]
            case Kind.DYN | Kind.ERROR | Kind.PARAM:
                self._is_assignable(types.DYN, range_type)
                return types.DYN, types.DYN
        text = (
            f"expression of type '{range_type}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)"
        )
        error = self._error(expr.range, text)
        return error, error

    def _assert_type(self, expr: Expr, expected: Type) -> None:
        if not self._is_assignable(expected, expr.type):
            self._mismatch(expr, expected, expr.type)


def _declared(name: str) -> Type | None:
    if name == DEVICE:
        return types.DEVICE
    named = TYPE_NAMES.get(name)
    return None if named is None else types.type_of(named)


def _qualified_name(expr: Expr) -> str | None:
    if isinstance(expr, Ident):
        return expr.name.removeprefix(".")
    if isinstance(expr, Select) and not expr.test_only:
        operand = _qualified_name(expr.operand)
        return None if operand is None else f"{operand}.{expr.field}"
    return None
