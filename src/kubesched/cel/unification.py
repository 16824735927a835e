"""Whether one type can stand for another, and what type variables must be for that.

Each question that is answered with yes may bind type variables; one that is answered with no
leaves no trace. The rules are upstream's: an unbound variable takes the first type that is
offered, the more general type wins when it is bound again, and ``dyn`` goes with everything.
"""

from __future__ import annotations

from kubesched.cel.types import DYN, Kind, Type

_NULLABLE = frozenset({Kind.OPAQUE, Kind.STRUCT, Kind.DURATION, Kind.TIMESTAMP})
_NESTED = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP, Kind.TYPE})


class Substitution:
    """What type variables stand for."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        #: bindings of the current question, with what was there before, to take them back
        self._trail: list[tuple[str, Type | None]] = []

    def unify(self, left: list[Type], right: list[Type]) -> bool:
        """Whether each type of one list can stand for that of the other; binds if so."""
        self._trail.clear()
        if self._all_assignable(tuple(left), tuple(right)):
            return True
        for name, before in reversed(self._trail):
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def substitute(self, type_: Type, *, free_to_dyn: bool = False) -> Type:
        """Return the type with its variables replaced; free ones stay, or become ``dyn``."""
        if type_.kind is Kind.PARAM:
            bound = self._bound.get(type_.name)
            if bound is not None:
                return self.substitute(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else type_
        if not type_.parameters:
            return type_
        parameters = tuple(
            self.substitute(part, free_to_dyn=free_to_dyn) for part in type_.parameters
        )
        return type_ if parameters == type_.parameters else Type(type_.kind, type_.name, parameters)

    def _bind(self, name: str, type_: Type) -> None:
        self._trail.append((name, self._bound.get(name)))
        self._bound[name] = type_

    def _all_assignable(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        return len(left) == len(right) and all(
            self._is_assignable(one, other) for one, other in zip(left, right, strict=True)
        )

    def _is_assignable(self, left: Type, right: Type) -> bool:  # noqa: PLR0911 - one line a rule
        if right.kind is Kind.PARAM:
            valid, is_bound = self._substitutes(left, right)
            if valid or is_bound:
                return valid
        if left.kind is Kind.PARAM:
            return self._substitutes(right, left)[0]
        if left.is_dyn_or_error or right.is_dyn_or_error:
            return True
        if Kind.NULL in (left.kind, right.kind):
            other = right if left.kind is Kind.NULL else left
            return other.kind in _NULLABLE or other.kind is Kind.NULL
        if left.kind is Kind.TYPE:
            return right.kind is Kind.TYPE
        if left.kind is not right.kind or left.name != right.name:
            return False
        return self._all_assignable(left.parameters, right.parameters)

    def _substitutes(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable can stand for the type, and whether it is bound already."""
        if type_ == variable:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is None:
            if self._is_free_of(variable, type_):
                self._bind(variable.name, type_)
                return True, False
            return False, False
        if type_ == bound:
            return True, True
        if not self._is_assignable(type_, bound):
            return False, True
        general = most_general(type_, bound)
        if self._is_free_of(variable, general):
            self._bind(variable.name, general)
        return True, True

    def _is_free_of(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return False
        if within.kind is Kind.PARAM:
            bound = self._bound.get(within.name)
            return bound is None or self._is_free_of(variable, bound)
        if within.kind in _NESTED:
            return all(self._is_free_of(variable, part) for part in within.parameters)
        return True


def most_general(left: Type, right: Type) -> Type:
    """Return the more general of two types that are known to unify."""
    return left if _is_equal_or_less_specific(left, right) else right


def _is_equal_or_less_specific(left: Type, right: Type) -> bool:
    if left.kind in (Kind.DYN, Kind.PARAM):
        return True
    if right.kind in (Kind.DYN, Kind.PARAM) or left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.kind not in _NESTED:
        return left == right
    return (
        left.name == right.name
        and len(left.parameters) == len(right.parameters)
        and all(
            _is_equal_or_less_specific(one, other)
            for one, other in zip(left.parameters, right.parameters, strict=True)
        )
    )
