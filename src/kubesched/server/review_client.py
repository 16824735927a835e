"""The client for reviews: from a kubeconfig, or in-cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from kubesched.client import kubeconfig
from kubesched.client.requester import RequestObserver
from kubesched.client.rest import ApiClient
from kubesched.client.user_agent import user_agent
from kubesched.errors import ConfigError, KubeconfigError
from kubesched.server.reviews import TIMEOUT_S

_log = logging.getLogger(__name__)

#: High, because this limits our own response rate.
_QPS = 200.0
_BURST = 400


def review_client(
    path: str,
    *,
    purpose: str,
    environment: Mapping[str, str] | None = None,
    observe: Callable[[str, str], RequestObserver | None] = lambda _purpose, _host: None,
) -> ApiClient | None:
    """Create a client, None if there is neither a kubeconfig nor a pod; raises ConfigError.

    ``purpose`` is ``authentication`` or ``authorization``. ``observe`` returns the observer of its
    requests, by purpose and host.
    """
    environment = os.environ if environment is None else environment
    try:
        if path:
            access = kubeconfig.load(path, environment=environment)
        elif environment.get("KUBERNETES_SERVICE_HOST"):
            access = kubeconfig.in_cluster(environment=environment)
        else:
            return None
    except KubeconfigError as error:
        if path:
            raise ConfigError(f"failed to get delegated {purpose} kubeconfig: {error}") from error
        _log.warning("failed to read in-cluster kubeconfig for delegated %s: %s", purpose, error)
        return None
    return ApiClient(
        access,
        qps=_QPS,
        burst=_BURST,
        user_agent=user_agent(purpose),
        timeout_s=TIMEOUT_S,
        observer=observe(purpose, access.server.address),
    )
