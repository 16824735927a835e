"""Exit codes of commands whose result is a yes or a no, as ``diff`` and ``kubectl diff`` have them.

All other commands end with 0, or with 1 if they cannot do their work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kubesched.errors import KubeschedError, OutputError

YES: Final = 0
NO: Final = 1
#: There is no answer: invalid input, or no connection.
TROUBLE: Final = 2


@contextmanager
def answering() -> Iterator[None]:
    """Let errors end the command with the code for trouble, also if nothing can be printed."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # the reader has seen enough
    except OSError as failed:
        unwritten = OutputError("to standard output", failed.strerror or str(failed))
        unwritten.exit_code = TROUBLE
        raise unwritten from None
    except KubeschedError as refused:
        refused.exit_code = TROUBLE
        raise
