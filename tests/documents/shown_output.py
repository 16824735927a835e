"""What a document shows of a command's output, and what the command printed.

Compared is everything but what differs from run to run: times, ports, folders of files, and
how wide the columns of a table are. ``…`` in the document stands for any text, and alone on a line
for any lines. What is shown without it is all there is.

A folder or address that is shown is remembered with what stood in its place, because a reader
would go on with the latter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_ELLIPSIS: Final = "…"
#: What differs from run to run: how it looks, and what it matches.
_VOLATILE: Final = {
    "klog": (
        r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [\w.]+:\d+\]",
        r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [\w.]+:\d+\]",
    ),
    "address": (r"https?://[\d.]+:\d+", r"https?://[\d.]+:\d+"),
    "token": (r"token=[\w-]+", r"token=[\w-]+"),
    "clock": (r"\d{1,2}:\d\d:\d\d(?:\.\d+)?", r"\d{1,2}:\d\d:\d\d(?:\.\d+)?"),
    "ip": (r"10(?:\.\d+){3}", r"10(?:\.\d+){3}"),
    # The name of the file counts, not where it is.
    "path": (r"/(?:tmp|home)/[\w./-]*\w", r"/[\w./@+-]*/{name}"),
    "amount": (
        r"\d+(?:\.\d+)? ?(?:ms|s|pods/s)\b",
        r"\d+(?:\.\d+)? ?{unit}",
    ),
}
_TOKEN: Final = re.compile(
    _ELLIPSIS + "|" + "|".join(f"(?P<{name}>{look})" for name, (look, _) in _VOLATILE.items())
)
_REMEMBERED: Final = frozenset({"address", "path"})


class MismatchError(AssertionError):
    """The command printed something else."""


def compare(shown: Sequence[str], printed: str, *, whole: bool = True) -> dict[str, str]:
    """Raise unless `printed` is as shown; return what stood in place of shown addresses and paths.

    Without `whole`, more may follow.
    """
    wanted = _tidied(shown)
    said = _tidied(printed.splitlines())
    for count in range(1, len(wanted) + 1):
        if not _match(wanted[:count], said, whole=False):
            raise MismatchError(_explain(wanted[count - 1], said))
    names: list[str] = []
    found = _match(wanted, said, whole=whole, names=names)
    if not found:
        raise MismatchError(_explain("the end", said))
    return dict(zip(names, found.groups(), strict=True))


def _match(
    wanted: Sequence[str],
    said: Sequence[str],
    *,
    whole: bool,
    names: list[str] | None = None,
) -> re.Match[str] | None:
    remembered: list[str] = []
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == _ELLIPSIS else f"{_pattern(line, remembered)}\n"
        for line in wanted
    )
    if names is not None:
        names += remembered
    text = "".join(f"{line}\n" for line in said)
    return re.compile(pattern + (r"\Z" if whole else "")).match(text)


def _pattern(line: str, remembered: list[str]) -> str:
    parts: list[str] = []
    at = 0
    for token in _TOKEN.finditer(line):
        parts.append(re.escape(line[at : token.start()]))
        parts.append(_any(token, remembered))
        at = token.end()
    return "".join([*parts, re.escape(line[at:])])


def _any(token: re.Match[str], remembered: list[str]) -> str:
    name = token.lastgroup
    if name is None:
        return r"[^\n]*?"
    pattern = _VOLATILE[name][1]
    if name == "path":
        pattern = pattern.replace("{name}", re.escape(token[0].rpartition("/")[2]))
    elif name == "amount":
        pattern = pattern.replace("{unit}", re.sub(r"[\d. ]", "", token[0]))
    if name in _REMEMBERED:
        remembered.append(token[0])
        return f"({pattern})"
    return pattern


def _tidied(lines: Iterable[str]) -> list[str]:
    """Without empty lines, and with single spaces: columns are as wide as what is in them."""
    return [" ".join(line.split()) for line in lines if line.strip()]


def _explain(line: str, said: Sequence[str]) -> str:
    return "\n".join(["the document shows", f"    {line}", "but it printed", *_indented(said)])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
