"""Defaults of a pod's spec, by the API and by admission.

All of it depends on the spec alone, so it is done once for all pods with the same spec (see
``pods``). The functions modify their argument, which is not shared yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kubesched.api import quantity
from kubesched.embedded.quantities import canonical_amounts

JsonObject = dict[str, Any]

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_COMPUTE: Final = ("cpu", "memory")
#: Fields of a volume that are not its source.
_NOT_A_SOURCE: Final = frozenset({"name"})
_TEXTS: Final = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_DEFAULT_MODE: Final = 0o644
_HOUR_S: Final = 3600


def without_empty_lists(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return a value without empty lists, which the API treats as absent."""
    if isinstance(value, dict):
        return {k: without_empty_lists(v) for k, v in value.items() if v != []}
    if isinstance(value, list):
        return [without_empty_lists(item) for item in value]
    return value


def set_spec_defaults(spec: JsonObject, *, is_template: bool = False) -> None:
    """Set defaults; pods get more of them than pod templates."""
    for container in containers_of(spec):
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    for name, text in _TEXTS:
        if not spec.get(name):
            spec[name] = text
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    canonical_amounts(spec, "overhead")
    canonical_amounts(spec.get("resources") or {}, "requests", "limits")
    if not is_template:
        _pod_only(spec)


def _pod_only(spec: JsonObject) -> None:
    for container in _ordinary(spec):
        _requests_from_limits(container["resources"])
    if spec.get("hostNetwork"):
        for container in _ordinary(spec):
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")
    _pod_level_requests(spec)
    spec.setdefault("enableServiceLinks", True)


def containers_of(spec: JsonObject) -> Iterator[JsonObject]:
    """Return the containers of all kinds."""
    yield from _ordinary(spec)
    yield from spec.get("ephemeralContainers") or ()


def _ordinary(spec: JsonObject) -> Iterator[JsonObject]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _container(container: JsonObject) -> None:
    resources = container.setdefault("resources", {})
    for name in ("requests", "limits", "claims"):
        if name in resources and not resources[name]:
            del resources[name]
    canonical_amounts(resources, "requests", "limits")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        if isinstance(source.get("fieldRef"), dict):
            source["fieldRef"].setdefault("apiVersion", "v1")
    for name in _PROBES:
        if container.get(name) is not None:
            _probe(container[name])


def pull_policy(image: str) -> str:
    """Return Always for an image without a tag or with latest, IfNotPresent otherwise."""
    reference, _, digest = image.partition("@")
    tag = reference.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _probe(probe: JsonObject) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(name):
            probe[name] = value
    if isinstance(http := probe.get("httpGet"), dict):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")
    if isinstance(grpc := probe.get("grpc"), dict):
        grpc.setdefault("service", "")


def _volume(volume: JsonObject) -> None:
    if not volume.keys() - _NOT_A_SOURCE:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(source := volume.get(name), dict):
            source.setdefault("defaultMode", _DEFAULT_MODE)
    if isinstance(host_path := volume.get("hostPath"), dict):
        host_path.setdefault("type", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if isinstance(token := source.get("serviceAccountToken"), dict):
            token.setdefault("expirationSeconds", _HOUR_S)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
    if isinstance(claim := template.get("spec"), dict):
        claim.setdefault("volumeMode", "Filesystem")
        canonical_amounts(claim.get("resources") or {}, "requests", "limits")


def _requests_from_limits(resources: JsonObject) -> None:
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _pod_level_requests(spec: JsonObject) -> None:
    """Set the pod-level requests, where the pod has pod-level limits."""
    resources = spec.get("resources") or {}
    if not resources.get("limits"):
        return
    requests = dict(resources.get("requests") or {})
    for name in _COMPUTE:
        if name not in requests and (total := _sum_of_requests(spec, name)):
            requests[name] = total
    for name, limit in resources["limits"].items():
        requests.setdefault(name, limit)
    resources["requests"] = requests


def _sum_of_requests(spec: JsonObject, name: str) -> str | None:
    """Return the sum of the containers' requests while they run, None if there is none."""

    def request(container: JsonObject) -> int:
        return quantity.nano(container["resources"].get("requests", {}).get(name, "0"))

    running = sum(map(request, spec.get("containers") or ()))
    sidecars, peak = 0, 0
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars += request(container)
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + request(container))
    total = max(running + sidecars, peak)
    if not total:
        return None
    holder: JsonObject = {"amounts": {name: f"{total}n"}}
    canonical_amounts(holder, "amounts")
    return str(holder["amounts"][name])


# ---------------------------------------------------------------- admission

_DEFAULT_TOLERATIONS: Final = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


def add_default_tolerations(spec: JsonObject) -> None:
    """Tolerate a node that is not ready or unreachable for five minutes."""
    tolerations = spec.get("tolerations") or []
    missing = [
        dict(default)
        for default in _DEFAULT_TOLERATIONS
        if not any(_covers(toleration, default["key"]) for toleration in tolerations)
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]


def _covers(toleration: JsonObject, key: object) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {
        "",
        "NoExecute",
    }


# ---------------------------------------------------------------- quality of service


def qos_class(spec: JsonObject) -> str:
    """Return BestEffort, Burstable or Guaranteed."""
    own = spec.get("resources")
    parts = [own] if own else [container["resources"] for container in _ordinary(spec)]
    requests = _positive_sums(part.get("requests") or {} for part in parts)
    limits = _positive_sums(part.get("limits") or {} for part in parts)
    if not requests and not limits:
        return "BestEffort"
    all_limited = all(
        _positive_sums([part.get("limits") or {}]).keys() >= set(_COMPUTE) for part in parts
    )
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _positive_sums(amounts: Iterable[JsonObject]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in amounts:
        for name in _COMPUTE:
            amount = quantity.nano(each[name]) if name in each else 0
            if amount > 0:
                sums[name] = sums.get(name, 0) + amount
    return sums
