"""What functions of each library promise, in expressions that are true."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.errors import CelRuntimeError

STRINGS = [
    "'abc'.charAt(1) == 'b'",
    "'tacocat'.indexOf('co') == 2 && 'tacocat'.lastIndexOf('a') == 5",
    "'Hello'.lowerAscii() == 'hello' && 'Hello'.upperAscii() == 'HELLO'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
    "['a', 'b'].join('-') == 'a-b'",
    "'  a '.trim() == 'a'",
    "'hello'.substring(1, 3) == 'el' && 'hello'.substring(3) == 'lo'",
    "'aXbX'.replace('X', 'y') == 'ayby' && 'aXbX'.replace('X', 'y', 1) == 'aybX'",
    "'ä'.size() == 1 && b'ä'.size() == 2",
]
LISTS = [
    "[1, 2, 3].sum() == 6 && [1, 2, 3].min() == 1 && [1, 2, 3].max() == 3",
    "['a', 'b', 'b'].indexOf('b') == 1 && ['a', 'b', 'b'].lastIndexOf('b') == 2",
    "[1, 2, 2].isSorted() && ![2, 1].isSorted()",
    "[1, 2].includes(2) && !['a'].includes('b')",
    "[3, 1, 2].sort() == [1, 2, 3]",
    "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
    "[[1], [2, 3]].flatten() == [1, 2, 3]",
    "[1, 1, 2].distinct() == [1, 2]",
    "[1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]",
]
SETS = [
    "sets.contains([1, 2], [2]) && !sets.contains([1], [2])",
    "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    "sets.equivalent([1, 2, 2], [2, 1])",
]
URLS = [
    "isURL('https://h:80/p') && !isURL('h')",
    "url('https://h.example:80/p?a=1&a=2').getHost() == 'h.example:80'",
    "url('https://h.example:80/p').getHostname() == 'h.example'",
    "url('https://h.example:80/p').getPort() == '80' && url('https://h/p').getScheme() == 'https'",
    "url('https://h/p?a=1&a=2').getQuery() == {'a': ['1', '2']}",
    "url('https://h/a%20b').getEscapedPath() == '/a%20b'",
]
FORMATS = [
    "format.dns1123Label().validate('ok') == optional.none()",
    "format.named('dns1123Label').value().validate('Not Ok').hasValue()",
    "!format.named('nothing').hasValue()",
]
REGEX = [
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
    "'1 2 3'.findAll('[0-9]') == ['1', '2', '3'] && '1 2 3'.findAll('[0-9]', 1) == ['1']",
]
OPTIONALS = [
    "optional.of(1).hasValue() && !optional.none().hasValue()",
    "optional.none().orValue(3) == 3 && optional.of(1).or(optional.of(2)).value() == 1",
    "{'a': 1}[?'b'].orValue(2) == 2 && [1][?0].value() == 1",
    "optional.ofNonZeroValue('') == optional.none()",
    "optional.of(2).optMap(x, x + 1).value() == 3",
]
STANDARD = [
    "int('1') + int(2.9) + int(3u) == 6",
    "string(1.5) == '1.5' && double('2') == 2.0",
    "type(1) == int && type('a') == string && dyn(1) == 1",
    "duration('90m').getHours() == 1",
    "timestamp('2025-01-02T03:04:05Z').getDayOfYear() == 1",
    "'a' in ['a'] && 'a' in {'a': 1} && !('b' in {'a': 1})",
    "cel.bind(x, 2, x * x) == 4",
    "[1, 2, 3].exists_one(x, x > 2) && [1, 2].all(x, x > 0) && [1, 2].map(x, x * 2) == [2, 4]",
    "[1, 2].transformList(i, v, i + v) == [1, 3] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
]


@pytest.mark.parametrize(
    "expression",
    [
        *STRINGS, *LISTS, *SETS, *URLS, *FORMATS, *REGEX, *OPTIONALS, *STANDARD,
    ],
)  # fmt: skip
def test_it_is_so(expression: str) -> None:
    assert compile_selector(expression).matches(CelDevice("d"))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'abc'.charAt(9) == ''", "index out of range: 9"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range"),
        ("[].max() == 1", "max called on empty list"),
        ("optional.none().value() == 1", r"optional\.none\(\) dereference"),
        ("url('h').getHost() == ''", "URL parse error"),
        ("int(device.driver) == 1", "type conversion error from 'string' to 'int'"),
    ],
)
def test_what_has_no_value_says_why(expression: str, text: str) -> None:
    with pytest.raises(CelRuntimeError, match=text):
        compile_selector(expression).matches(CelDevice("d"))
