"""Regular expressions with RE2's syntax and guarantee: matching takes linear time.

Python's ``re`` backtracks, so a hostile pattern could block the scheduler. Here a pattern is parsed
(``parsing``), translated into a nondeterministic automaton (``program``) and run over the text with
all its states at once (``matching``), as RE2 and Go do it.
"""

from __future__ import annotations

from functools import lru_cache

from kubesched.cel.regex.matching import Regex
from kubesched.cel.regex.parsing import RegexError

__all__ = ["Regex", "RegexError", "compile_regex"]


@lru_cache(maxsize=256)
def compile_regex(pattern: str) -> Regex:
    """Return the compiled pattern; raises RegexError with Go's text."""
    return Regex(pattern)
