"""Response headers, parsed lazily: few callers read them."""

from __future__ import annotations

import contextlib

import httptools


class Head:
    """The headers in the first bytes of a response."""

    __slots__ = ("_headers", "_pieces")

    def __init__(self, pieces: list[bytes]) -> None:
        #: bytes up to the end of the head, possibly with some of the body
        self._pieces = pieces
        self._headers: list[tuple[bytes, bytes]] | None = None

    def get(self, name: str) -> str | None:
        """Return the first header of that name; case-insensitive."""
        if self._headers is None:
            self._headers = _Collector().collect(self._pieces)
        wanted = name.lower().encode("ascii")
        for key, value in self._headers:
            if key.lower() == wanted:
                return value.decode("latin-1")
        return None


class _Collector:
    """Parses the same bytes again, for the headers."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._done = False

    def collect(self, pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
        with contextlib.suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            for piece in pieces:
                self._parser.feed_data(piece)
        del self._parser  # it refers to us: a cycle that only the garbage collector would free
        return self._headers

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._done:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() >= 200:
            self._done = True
        else:
            self._headers.clear()  # 1xx, such as 100 Continue
