"""The HTTP client of one extender: each verb is a POST with limits of time and response size.

    arguments ──encode──> POST <urlPrefix>/<verb> ──200──> response, checked against the request
                                   └── any other status ──> ClientError, one line

Redirects are failures like every other status than 200. Idempotent requests (all but bind) are
repeated once if a keep-alive connection turns out to be closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from kubesched.api.core import Container, Pod
from kubesched.client.connection import Response
from kubesched.client.transport import Transport
from kubesched.clock import Clock
from kubesched.config.durations import Duration
from kubesched.config.extenders import DEFAULT_TIMEOUT
from kubesched.config.types import Extender
from kubesched.errors import ClientError, ExtenderError, RequestTimeoutError
from kubesched.scheduler import extender_wire as wire
from kubesched.scheduler.extender_access import (
    extender_access,
    request_target,
    verb_url,
    without_password,
)

T = TypeVar("T")

#: Largest response of an extender that receives and returns node names.
MAX_ANSWER_BYTES: Final = 64 << 20
#: Largest response of one that receives and returns whole nodes: 15,000 of 16 KiB each.
MAX_ANSWER_WITH_NODES_BYTES: Final = 256 << 20


class HttpExtender:
    """Client of one extender; bound to the event loop of its first request."""

    def __init__(
        self,
        config: Extender,
        *,
        where: str = "extender",
        environment: Mapping[str, str] | None = None,
        max_answer_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        #: the extender's URL, which is its name in messages
        self.name = without_password(config.url_prefix)
        self.weight = config.weight
        self.ignorable = config.ignorable
        #: whether requests have node names instead of nodes (nodeCacheCapable)
        self.node_cache_capable = config.node_cache_capable
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.binds = bool(config.bind_verb)
        self.preempts = bool(config.preempt_verb)
        self._config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._timeout = config.http_timeout if config.http_timeout > Duration() else DEFAULT_TIMEOUT
        access = extender_access(
            config,
            where=where,
            environment=os.environ if environment is None else environment,
            clock=clock,
        )
        self._credentials = access.credentials
        self._generation = access.credentials.generation
        #: largest response that is read
        self.max_answer_bytes = max_answer_bytes or (
            MAX_ANSWER_BYTES if config.node_cache_capable else MAX_ANSWER_WITH_NODES_BYTES
        )
        self._transport = Transport(
            access, user_agent="kube-scheduler", max_body_bytes=self.max_answer_bytes
        )

    async def aclose(self) -> None:
        """Close all connections; pending requests fail."""
        await self._transport.aclose()

    def is_interested(self, pod: Pod) -> bool:
        """Whether the pod requests a managed resource, or the extender manages all pods."""
        if not self._managed:
            return True
        spec = pod.spec
        return any(map(self._asks_for_managed, (*spec.containers, *spec.init_containers)))

    def _asks_for_managed(self, container: Container) -> bool:
        resources = container.resources
        if resources is None:
            return False
        return not (
            self._managed.isdisjoint(resources.requests or ())
            and self._managed.isdisjoint(resources.limits or ())
        )

    # --- verbs ------------------------------------------------------------------------------

    async def filter(self, arguments: bytes, node_names: Sequence[str]) -> wire.FilterAnswer:
        """Filter nodes; ``nodes`` of the answer are the feasible ones, in the given order."""
        body = await self._post(self._config.filter_verb, arguments)
        answer = self._read(self._config.filter_verb, wire.read_filter_answer, body)
        if answer.error:
            raise ExtenderError(answer.error)
        claimed = answer.node_names if self.node_cache_capable else None
        if claimed is None:
            claimed = answer.nodes or []
        passed = set(claimed)
        if not passed.issubset(node_names):
            asked = set(node_names)
            stranger = next(name for name in claimed if name not in asked)
            raise ExtenderError(
                f"extender {_quoted(self.name)} claims a filtered node {_quoted(stranger)} "
                "which is not found in the input node list"
            )
        fitting = [name for name in node_names if name in passed]
        return msgspec.structs.replace(answer, nodes=fitting, node_names=fitting)

    async def prioritize(self, arguments: bytes) -> list[tuple[str, int]]:
        """Score nodes; kube-scheduler expects scores from 0 to 10."""
        body = await self._post(self._config.prioritize_verb, arguments)
        return self._read(self._config.prioritize_verb, wire.read_priorities, body)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind a pod."""
        arguments = wire.ExtenderBindingArgs(
            pod_name=pod.metadata.name,
            pod_namespace=pod.metadata.namespace,
            pod_uid=pod.metadata.uid,
            node=node_name,
        )
        verb = self._config.bind_verb
        body = await self._post(verb, wire.encode(arguments), repeatable=False)
        error = self._read(verb, wire.read_binding_answer, body)
        if error:
            raise ExtenderError(error)

    async def preempt(self, arguments: bytes) -> dict[str, wire.MetaVictims]:
        """Return the candidates, nodes with victims, that the extender accepts."""
        body = await self._post(self._config.preempt_verb, arguments)
        return self._read(self._config.preempt_verb, wire.read_preemption_answer, body)

    # --- transport --------------------------------------------------------------------------

    async def _post(self, verb: str, arguments: bytes, *, repeatable: bool = True) -> bytes:
        await self._refresh_certificate()
        url = verb_url(self._config, verb)
        try:
            response = await self._transport.request(
                "POST",
                request_target(url),
                body=arguments,
                timeout_s=self._timeout.seconds,
                idempotent=repeatable,
            )
        except ClientError as error:
            error.args = (self._explain(error),)
            raise
        return self._accept(response, verb, without_password(url))

    async def _refresh_certificate(self) -> None:
        """Reload the client certificate if its files changed; new connections use it."""
        await self._credentials.authorization_header()
        if self._credentials.generation != self._generation:
            self._generation = self._credentials.generation
            self._transport.renew()

    def _accept(self, response: Response, verb: str, url: str) -> bytes:
        if response.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return response.body

    def _explain(self, error: ClientError) -> str:
        """Word an error in terms of the extender's configuration instead of a kubeconfig."""
        text = wire.one_line(str(error))
        if text.endswith("in the kubeconfig"):
            text = f"{text.rpartition('; check ')[0]}; check tlsConfig of the extender"
        if isinstance(error, RequestTimeoutError):
            text = f"{text} (httpTimeout is {self._timeout})"
        return text

    def _read(self, verb: str, reader: Callable[[bytes], T], body: bytes) -> T:
        try:
            return reader(body)
        except ExtenderError as error:
            url = without_password(verb_url(self._config, verb))
            error.args = (f"failed {verb} with extender at URL {url}: {error}",)
            raise


def _quoted(name: str) -> str:
    return msgspec.json.encode(wire.one_line(name)).decode()
