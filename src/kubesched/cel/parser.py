"""From text to syntax tree: recursive descent over the CEL grammar, macros expanded on the way.

    expr        = or ["?" or ":" expr]
    or          = and {"||" and}            and   = relation {"&&" relation}
    relation    = calc {op calc}            calc  = unary {op unary}, * / % before + -
    unary       = {"!"} member | {"-"} member
    member      = primary {"." ["?"] name | "." name "(" args ")" | "[" ["?"] expr "]"}

Bounded for hostile texts: at most 100,000 characters, at most 250 levels of nesting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel import lexer, literals
from kubesched.cel.lexer import EOF, IDENTIFIER, Token
from kubesched.cel.macros import MacroError, expand
from kubesched.cel.source import NO_PLACE, CelSource
from kubesched.cel.syntax import (
    Call,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapEntry,
    MapExpr,
    Select,
    StructExpr,
)

MAX_CHARACTERS: Final = 100_000
MAX_DEPTH: Final = 250

_RESERVED: Final = frozenset(
    [
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import",
        "in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void",
        "while",
    ]
)  # fmt: skip
_RELATIONS: Final = {
    "<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in",
}  # fmt: skip
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
#: What a value can begin with, in the order of the grammar's error texts.
_STARTS: Final = (
    "'['", "'{'", "'('", "'.'", "'-'", "'!'", "'true'", "'false'", "'null'",
    "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER",
)  # fmt: skip
_ANY_START: Final = "{" + ", ".join(_STARTS) + "}"

_Rule = Callable[[], Expr]


class _SyntaxError(Exception):
    """Parsing cannot go on; the error is recorded."""


def parse(source: CelSource) -> Expr | None:
    """Return the tree, or None; errors are reported to the source in either case."""
    if len(source.text) > MAX_CHARACTERS:
        size = len(source.text)
        source.report(
            NO_PLACE,
            f"expression code point size exceeds limit: size: {size}, limit {MAX_CHARACTERS}",
        )
        return None
    try:
        return _CelParser(source).parse()
    except _SyntaxError:
        return None


class _CelParser:
    def __init__(self, source: CelSource) -> None:
        self._source = source
        self._tokens = lexer.tokens(source)
        self._at = 0
        self._expr_depth = 0
        self._calc_depth = 0

    def parse(self) -> Expr:
        expr = self._expr()
        if self._next.kind != EOF:
            self._unexpected("<EOF>")
        return expr

    # -- tokens ---------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != EOF
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._next.kind == kind else None

    def _expect(self, kind: str) -> Token:
        token = self._accept(kind)
        if token is None:
            raise self._unexpected(kind if kind == IDENTIFIER else f"'{kind}'")
        return token

    def _unexpected(self, expected: str) -> _SyntaxError:
        token = self._next
        is_last = token.kind != EOF and self._tokens[self._at + 1].kind == EOF
        if expected == "<EOF>" and is_last:
            text = f"extraneous input '{token.text}' expecting {expected}"
        else:
            text = f"mismatched input '{token.text}' expecting {expected}"
        self._source.report(token.offset, f"Syntax error: {text}")
        raise _SyntaxError

    def _deeper(self, depth: int) -> int:
        """Return the depth of a node one level above ``depth``, unless that is too deep."""
        if depth >= MAX_DEPTH:
            self._source.report(NO_PLACE, "max recursion depth exceeded")
            raise _SyntaxError
        return depth + 1

    def _check_nesting(self) -> None:
        if max(self._expr_depth, self._calc_depth) > MAX_DEPTH:
            self._source.report(NO_PLACE, f"expression recursion limit exceeded: {MAX_DEPTH}")
            raise _SyntaxError

    # -- operators ------------------------------------------------------------------------------

    def _expr(self) -> Expr:
        self._expr_depth += 1
        self._check_nesting()
        condition = self._or()
        question = self._accept("?")
        if question is None:
            self._expr_depth -= 1
            return condition
        if_true = self._or()
        self._expect(":")
        if_false = self._expr()
        self._expr_depth -= 1
        return self._operation(question, "_?_:_", condition, if_true, if_false)

    def _or(self) -> Expr:
        return self._logic("||", "_||_", self._and)

    def _and(self) -> Expr:
        return self._logic("&&", "_&&_", lambda: self._binary(self._calc, _RELATIONS))

    def _logic(self, operator: str, function: str, term: _Rule) -> Expr:
        # One node for all terms: they are evaluated from left to right either way.
        terms, offsets = [term()], []
        while token := self._accept(operator):
            offsets.append(token.offset)
            terms.append(term())
        if not offsets:
            return terms[0]
        depth = max(part.depth for part in terms)
        return Call(offsets[len(offsets) // 2], function, terms, depth=depth)

    def _calc(self) -> Expr:
        self._calc_depth += 1
        self._check_nesting()
        expr = self._binary(lambda: self._binary(self._unary, _PRODUCTS), _SUMS)
        self._calc_depth -= 1
        return expr

    def _binary(self, term: _Rule, operators: dict[str, str]) -> Expr:
        left = term()
        while self._next.kind in operators:
            token = self._take()
            self._calc_depth += 1
            right = term()
            self._calc_depth -= 1
            left = self._operation(token, operators[token.kind], left, right)
        return left

    def _operation(self, token: Token, function: str, *args: Expr) -> Expr:
        depth = self._deeper(max(arg.depth for arg in args))
        return Call(token.offset, function, list(args), depth=depth)

    def _unary(self) -> Expr:
        first = self._next
        if first.kind not in ("!", "-"):
            return self._member()
        if first.kind == "-" and self._tokens[self._at + 1].kind in ("NUM_INT", "NUM_FLOAT"):
            return self._member()  # a single minus is the sign of the literal
        count = 0
        while self._accept(first.kind):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        function = "!_" if first.kind == "!" else "-_"
        return Call(first.offset, function, [operand], depth=operand.depth)

    # -- members --------------------------------------------------------------------------------

    def _member(self) -> Expr:
        expr = self._primary()
        while True:
            if dot := self._accept("."):
                expr = self._selection(expr, dot)
            elif bracket := self._accept("["):
                function = "_[?_]" if self._accept("?") else "_[_]"
                index = self._expr()
                self._expect("]")
                expr = self._operation(bracket, function, expr, index)
            else:
                return expr

    def _selection(self, operand: Expr, dot: Token) -> Expr:
        if self._accept("?"):
            name = self._field()
            depth = self._deeper(operand.depth)
            field = Literal(name.offset, _unescaped(name))
            return Call(dot.offset, "_?._", [operand, field], depth=depth)
        name = self._field()
        if name.kind == IDENTIFIER and (parenthesis := self._accept("(")):
            args = self._arguments()
            depth = self._deeper(max(arg.depth for arg in [operand, *args]))
            return self._call(parenthesis.offset, name.text, args, operand, depth)
        return Select(dot.offset, operand, _unescaped(name), depth=self._deeper(operand.depth))

    def _field(self) -> Token:
        if self._next.kind in (IDENTIFIER, lexer.ESC_IDENTIFIER):
            return self._take()
        token = self._next
        self._source.report(
            token.offset, f"Syntax error: no viable alternative at input '.{_at_end(token)}'"
        )
        raise _SyntaxError

    def _arguments(self) -> list[Expr]:
        if self._accept(")"):
            return []
        args = [self._expr()]
        while self._accept(","):
            args.append(self._expr())
        self._expect(")")
        return args

    def _call(
        self, offset: int, name: str, args: list[Expr], target: Expr | None, depth: int
    ) -> Expr:
        try:
            expanded = expand(offset, name, args, target)
        except MacroError as error:
            self._source.report(error.offset, str(error))
            return Expr(offset)
        if expanded is None:
            expanded = Call(offset, name, args, target)
        expanded.depth = depth
        return expanded

    # -- values ---------------------------------------------------------------------------------

    def _primary(self) -> Expr:
        token = self._next
        match token.kind:
            case "(":
                self._take()
                expr = self._expr()
                self._expect(")")
                return expr
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | lexer.IDENTIFIER:
                return self._name()
        return self._literal()

    def _list(self) -> Expr:
        bracket = self._take()
        elements: list[Expr] = []
        optional: set[int] = set()
        while self._next.kind not in ("]", ",") or (self._next.kind == "," and not elements):
            if self._accept(","):
                break
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expr())
            if not self._accept(","):
                break
        self._expect("]")
        depth = max((part.depth for part in elements), default=0)
        return ListExpr(bracket.offset, elements, frozenset(optional), depth=depth)

    def _map(self) -> Expr:
        brace = self._take()
        entries: list[MapEntry] = []
        while self._next.kind not in ("}", ",") or (self._next.kind == "," and not entries):
            if self._accept(","):
                break
            optional = self._accept("?") is not None
            key = self._expr()
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self._expr(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        depth = max((max(e.key.depth, e.value.depth) for e in entries), default=0)
        return MapExpr(brace.offset, entries, depth=depth)

    def _name(self) -> Expr:
        first = self._next
        dot = "." if self._accept(".") else ""
        if self._next.kind != IDENTIFIER:
            token = self._next
            self._source.report(
                token.offset, f"Syntax error: no viable alternative at input '.{_at_end(token)}'"
            )
            raise _SyntaxError
        name = self._take()
        if parenthesis := self._accept("("):
            args = self._arguments()
            if name.text in _RESERVED:
                return self._reserved(first, name)
            depth = max((arg.depth for arg in args), default=0)
            return self._call(parenthesis.offset, dot + name.text, args, None, depth)
        if self._is_message():
            return self._message(dot + name.text)
        if name.text in _RESERVED:
            return self._reserved(first, name)
        return Ident(name.offset, dot + name.text)

    def _reserved(self, first: Token, name: Token) -> Expr:
        self._source.report(first.offset, f"reserved identifier: {name.text}")
        return Expr(first.offset)

    def _is_message(self) -> bool:
        """Whether names with dots between them, and then a brace, follow."""
        at = self._at
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == IDENTIFIER:
            at += 2
        return self._tokens[at].kind == "{"

    def _message(self, name: str) -> Expr:
        while self._accept("."):
            name += "." + self._take().text
        brace = self._take()
        fields: list[MapEntry] = []
        while self._next.kind not in ("}", ",") or (self._next.kind == "," and not fields):
            if self._accept(","):
                break
            optional = self._accept("?") is not None
            field = self._field()
            colon = self._expect(":")
            key = Literal(field.offset, _unescaped(field))
            fields.append(MapEntry(colon.offset, key, self._expr(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        depth = max((entry.value.depth for entry in fields), default=0)
        return StructExpr(brace.offset, name, fields, depth=depth)

    def _literal(self) -> Expr:
        sign = self._take() if self._next.kind == "-" else None
        token = self._next
        offset = token.offset if sign is None else sign.offset
        text = token.text if sign is None else "-" + token.text
        try:
            value: object
            match token.kind:
                case "NUM_INT":
                    value = literals.integer(text)
                case "NUM_FLOAT":
                    value = literals.double(text)
                case "NUM_UINT" if sign is None:
                    value = literals.unsigned(text)
                case "STRING" if sign is None:
                    value = literals.string(text)
                case "BYTES" if sign is None:
                    value = literals.byte_string(text)
                case "true" | "false" if sign is None:
                    value = token.kind == "true"
                case "null" if sign is None:
                    value = None
                case _:
                    raise self._unexpected(_ANY_START)
        except literals.LiteralError as error:
            self._take()
            self._source.report(offset, str(error))
            return Expr(offset)
        self._take()
        return Literal(offset, value)


def _unescaped(name: Token) -> str:
    return name.text if name.kind == IDENTIFIER else name.text[1:-1]


def _at_end(token: Token) -> str:
    return "" if token.kind == EOF else token.text
