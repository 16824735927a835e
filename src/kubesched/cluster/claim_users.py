"""The pending pods that name each claim to devices: an event of a claim concerns no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kubesched.api.core import Pod
from kubesched.cluster.resource_claims import ClaimKey
from kubesched.errors import require


class ClaimUsers:
    """Pending pods by the claims that they name, directly or through a template."""

    def __init__(self) -> None:
        #: claim → uid of a pod → the pod's namespace and name
        self._users: dict[ClaimKey, dict[str, str]] = {}
        #: uid of a pod → its claims
        self._claims: dict[str, tuple[ClaimKey, ...]] = {}

    def of(self, key: ClaimKey) -> Collection[str]:
        """Return the pods that name a claim, as namespace/name."""
        return self._users.get(key, {}).values()

    def uids(self, key: ClaimKey) -> Collection[str]:
        """Return the uids of the pods that name a claim."""
        return self._users.get(key, {}).keys()

    def put(self, pod: Pod) -> None:
        """Note a pending pod, or its new version."""
        if not pod.spec.resource_claims and pod.metadata.uid not in self._claims:
            return
        self.remove(pod.metadata.uid)
        claims = tuple(dict.fromkeys(_claims_of(pod)))
        if claims:
            meta = pod.metadata
            self._claims[meta.uid] = claims
            for key in claims:
                self._users.setdefault(key, {})[meta.uid] = f"{meta.namespace}/{meta.name}"

    def remove(self, uid: str) -> None:
        """Drop a pod: it was deleted, or has a node."""
        for key in self._claims.pop(uid, ()):
            del self._users[key][uid]
            if not self._users[key]:
                del self._users[key]

    def validate(self) -> None:
        """Check that both indexes agree."""
        pairs = {(uid, key) for uid, keys in self._claims.items() for key in keys}
        require(
            pairs == {(uid, key) for key, users in self._users.items() for uid in users},
            "pods by claim are claims by pod",
        )
        require(all(self._users.values()) and all(self._claims.values()), "no empty entries")


def _claims_of(pod: Pod) -> Iterable[ClaimKey]:
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        if name is None and reference.resource_claim_template_name is not None:
            name = made.get(reference.name)
        if name is not None:
            yield pod.metadata.namespace, name
