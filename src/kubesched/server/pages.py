"""Pages that only format their sources: metrics, configuration, debug flags."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.go_text import quoted
from kubesched.metrics.exposition import CONTENT_TYPE
from kubesched.server import answers
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.sources import MetricsPage

_UINT32_LIMIT = 1 << 32
_UINT32_DIGITS = 10
_INT32_LIMIT = 1 << 31

_FLAGS_INDEX = """<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


def metrics(page: MetricsPage, *, started: float) -> Callable[[ServerRequest], ServerAnswer]:
    """Create the handler of a metrics page; ``started`` is the process' start time."""
    start_header = ("process-start-time-unix", str(int(started)))

    def handle(request: ServerRequest) -> ServerAnswer:
        if request.method == "DELETE" and page.reset is not None:
            page.reset()
            return answers.text("metrics reset\n")
        rendered = page.render()
        if rendered is None:
            return ServerAnswer()
        if isinstance(rendered, bytes):
            return ServerAnswer(rendered, content_type=CONTENT_TYPE, headers=(start_header,))
        return ServerAnswer(content_type=CONTENT_TYPE, headers=(start_header,), pieces=rendered)

    return handle


def configz(configuration: Callable[[], bytes]) -> Callable[[ServerRequest], ServerAnswer]:
    """Create the handler of the configuration."""

    def handle(_request: ServerRequest) -> ServerAnswer:
        body = b'{"componentconfig":%s}' % configuration()
        return ServerAnswer(body, content_type="application/json", headers=answers.NO_SNIFF)

    return handle


def flags_index(_request: ServerRequest) -> ServerAnswer:
    """List the flags that can be changed."""
    return answers.text(_FLAGS_INDEX, content_type=answers.HTML)


class VerbosityFlag:
    """``/debug/flags/v``: PUT a number."""

    def __init__(self, set_verbosity: Callable[[int], None]) -> None:
        self._set_verbosity = set_verbosity

    async def __call__(self, request: ServerRequest) -> ServerAnswer:
        """Answer one request."""
        if request.method != "PUT":
            return _line("unsupported http method", 406)
        try:
            body = await request.body()
        except (ValueError, TimeoutError) as error:
            return _line(f"error reading request body: {error}", 400)
        value = body.decode("utf-8", errors="replace")
        if problem := _number_problem(value):
            return _line(problem, 400)
        self._set_verbosity(int(value))
        return _line(f"successfully set klog.logging.verbosity to {value}", 200)


def _number_problem(value: str) -> str:
    """Return Go's error for a text that is not a verbosity; "" if it is one."""
    if not (value.isascii() and value.isdigit()):
        return f"strconv.ParseUint: parsing {quoted(value)}: invalid syntax"
    if len(value.lstrip("0")) > _UINT32_DIGITS or int(value) >= _UINT32_LIMIT:
        return f"strconv.ParseUint: parsing {quoted(value)}: value out of range"
    if int(value) >= _INT32_LIMIT:
        problem = f"strconv.ParseInt: parsing {quoted(value)}: value out of range"
        return f"failed set klog.logging.verbosity {value}: {problem}"
    return ""


def _line(text: str, code: int) -> ServerAnswer:
    return ServerAnswer(f"{text}\n".encode(), code, "text/plain", answers.NO_SNIFF)
