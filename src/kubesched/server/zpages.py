"""``/flagz`` and ``/statusz``, as text or as an object.

The text is declared not to be machine-readable, and its delimiter is random to enforce that.
"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Callable, Mapping

from kubesched.clock import Clock
from kubesched.server import accept, answers
from kubesched.server.accept import CBOR, JSON, TEXT, YAML, MediaChoice, Target
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.sources import StatusPage

_GROUP = "config.k8s.io"
_VERSIONS = ("v1alpha1", "v1beta1")
_DEPRECATED = "v1alpha1"
_OFFERS = (JSON, YAML, TEXT)
_DELIMITERS = (":", ": ", "=", " ")
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)

_Fields = Mapping[str, object]


class ZPage:
    """One such page."""

    def __init__(self, component: str, kind: str, *, cbor: bool) -> None:
        self._component = component
        self._offers = (*_OFFERS, CBOR) if cbor else _OFFERS
        #: kind of the object, e.g. ``Statusz``
        self._kind = kind

    def answer(
        self, request: ServerRequest, *, text: Callable[[], str], fields: Callable[[], _Fields]
    ) -> ServerAnswer:
        """Return the text, or an object of these fields if requested."""
        header = request.header("accept")
        if not header.strip():
            chosen: MediaChoice | None = MediaChoice(TEXT)
        else:
            chosen = accept.negotiate(header, self._offers, allows=self._allows)
        if chosen is None:
            return answers.not_acceptable(request, self._offers)
        if chosen.target is None:
            return answers.text(f"\n{self._component} {self._kind.lower()}\n{_WARNING}\n{text()}")
        return self._object(request, chosen.media_type, chosen.target, fields())

    def _allows(self, choice: MediaChoice) -> bool:
        if choice.media_type == TEXT:
            return choice.target is None
        return choice.target in [Target(_GROUP, version, self._kind) for version in _VERSIONS]

    def _object(
        self, request: ServerRequest, media_type: str, target: Target, fields: _Fields
    ) -> ServerAnswer:
        value = {
            "kind": self._kind,
            "apiVersion": f"{_GROUP}/{target.version}",
            "metadata": {"name": self._component},
            **fields,
        }
        warning = (
            f'299 - "This version of the {self._kind.lower()} endpoint is deprecated. '
            'Please use a newer version."'
        )
        return ServerAnswer(
            answers.encode(value, media_type, pretty=answers.wants_pretty(request)),
            content_type=f"{media_type};g={target.group};v={target.version};as={target.kind}",
            headers=(("warning", warning),) if target.version == _DEPRECATED else (),
        )


class Flagz:
    """All flags and their values."""

    def __init__(
        self, component: str, flags: Callable[[], Mapping[str, str]], *, cbor: bool = False
    ) -> None:
        self._page = ZPage(component, "Flagz", cbor=cbor)
        self._flags = flags
        self._delimiter = _any_delimiter()

    def __call__(self, request: ServerRequest) -> ServerAnswer:
        """Answer one request."""
        return self._page.answer(
            request, text=self._text, fields=lambda: {"flags": dict(sorted(self._flags().items()))}
        )

    def _text(self) -> str:
        flags = sorted(self._flags().items())
        return "".join(f"{name}{self._delimiter}{value}\n" for name, value in flags)


class Statusz:
    """Versions, uptime, and other paths."""

    def __init__(
        self,
        component: str,
        page: StatusPage,
        *,
        paths: Callable[[], list[str]],
        started: float,
        clock: Clock,
        cbor: bool = False,
    ) -> None:
        """``started`` is the process' start in seconds since the epoch."""
        self._page = ZPage(component, "Statusz", cbor=cbor)
        self._status = page
        self._paths = paths
        self._started = int(started)
        self._clock = clock

    def __call__(self, request: ServerRequest) -> ServerAnswer:
        """Answer one request."""
        return self._page.answer(request, text=self._text, fields=self._fields)

    def _fields(self) -> _Fields:
        status = self._status
        emulation = status.emulation_version
        return {
            "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            "uptimeSeconds": self._uptime_s(),
            # The field's name is interface, although the language is another.
            "goVersion": _runtime(),
            "binaryVersion": status.binary_version,
            **({"emulationVersion": emulation} if emulation else {}),
            "paths": first_segments(self._paths()),
            **({"kubesched": found} if (found := self._findings()) else {}),
        }

    def _findings(self) -> dict[str, list[str]]:
        """Return the findings that kube-scheduler's page does not have, by field, without empty
        ones.
        """
        told = ((finding.field, finding.lines()) for finding in self._status.findings)
        return {field: lines for field, lines in told if lines}

    def _text(self) -> str:
        up = self._uptime_s()
        lines = {
            "Started": time.strftime("%a %b %e %H:%M:%S %Z %Y", time.localtime(self._started)),
            "Up": f"{up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec",
            "Go version": _runtime(),
            "Binary version": self._status.binary_version,
            "Emulation version": self._status.emulation_version,
            "Paths": " ".join(first_segments(self._paths())),
        }
        delimiter = _any_delimiter()
        shown = (
            f"{name}{delimiter} {_escaped(value)}" if value else "" for name, value in lines.items()
        )
        return "\n" + "\n".join(shown) + "\n" + self._findings_text()

    def _findings_text(self) -> str:
        found = self._findings()
        return "".join(
            f"\n{finding.title}\n"
            + "".join(f"  {_escaped(line)}\n" for line in found[finding.field])
            for finding in self._status.findings
            if finding.field in found
        )

    def _uptime_s(self) -> int:
        return max(0, int(self._clock.time() - self._started))


def first_segments(paths: list[str]) -> list[str]:
    """Return the first segments of paths, each once, sorted."""
    return sorted({"/" + path.split("/")[1] for path in paths if path.strip("/")})


def _runtime() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def _any_delimiter() -> str:
    return random.choice(_DELIMITERS)  # noqa: S311 (not a secret)


def _escaped(text: str) -> str:
    import html  # noqa: PLC0415 (with a table of all entities; not for a start)

    return html.escape(text)
