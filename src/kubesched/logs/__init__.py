"""Log lines as Kubernetes' components write them: klog's text, or one JSON object a line.

    StructuredLogger ─┐
    logging.Logger ───┴─> records ─> verbosity, --vmodule ─> text or JSON ─> stderr (and stdout)

There are two kinds of lines, as in klog. A plain one is any call of a standard logger, written as
it is. A structured one has a constant message and named values, quoted so that programs can parse
it::

    _log = logs.get_logger(__name__)
    _log.v(2, "Successfully bound pod to node", pod=logs.ref("default", "web-0"), node="n1")
    # I1115 22:50:00.649047   24362 binding.py:157] "Successfully bound pod to node" pod="default/web-0" node="n1"

Verbosities are levels below INFO: ``verbose(n)`` is the level of klog's V(n), from ``INFO`` for 0
over 15 for 1 and ``DEBUG`` for 2 down to 2 for 10. So a standard ``debug()`` is a V(2), the usual
verbosity of clusters. A suppressed line costs a dictionary lookup; in a loop over pods or nodes
call ``_log.enabled(n)`` once, before building the values.

``set_verbosity`` changes the verbosity at run time.
"""  # noqa: E501 (the example is a log line, which is as long as it is)

from __future__ import annotations

from kubesched.go_text import quoted as quote
from kubesched.logs.fields import ObjectRef, klog_line, ref
from kubesched.logs.levels import ERRORS_ONLY, verbose
from kubesched.logs.options import JSON, TEXT, LoggingOptions, ModuleVerbosity
from kubesched.logs.setup import configure, flush, set_verbosity, shutdown, verbosity
from kubesched.logs.structured import StructuredLogger, get_logger

__all__ = [
    "ERRORS_ONLY",
    "JSON",
    "TEXT",
    "LoggingOptions",
    "ModuleVerbosity",
    "ObjectRef",
    "StructuredLogger",
    "configure",
    "flush",
    "get_logger",
    "klog_line",
    "quote",
    "ref",
    "set_verbosity",
    "shutdown",
    "verbose",
    "verbosity",
]
