"""Authorization: masters may do everything, some paths are public, reviews decide the rest."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import Struct

from kubesched.errors import ClientError, ConfigError
from kubesched.go_text import quoted
from kubesched.server.reviews import AccessReviews
from kubesched.server.users import MASTERS, User

_log = logging.getLogger(__name__)


class AccessDecision(Struct, frozen=True):
    """Whether a request is allowed."""

    allowed: bool
    #: why not, for the caller; often ""
    reason: str = ""
    #: why it could not be decided, for our log; "" if it could
    failure: str = ""


ALLOWED = AccessDecision(allowed=True)
FORBIDDEN = AccessDecision(allowed=False)


class AllowedPaths:
    """Paths that need no permission: whole ones, and prefixes that end in ``*``."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Raise ConfigError if there is a ``*`` elsewhere than at the end."""
        self._exact: set[str] = set()
        prefixes: list[str] = []
        for path in paths:
            bare = path.removeprefix("/")
            if "*" in bare[:-1]:
                raise ConfigError(f"only trailing * allowed in {quoted(bare)}")
            if bare.endswith("*"):
                prefixes.append(bare[:-1])
            else:
                self._exact.add(bare)
        self._prefixes = tuple(prefixes)

    def __contains__(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._exact or bare.startswith(self._prefixes)


class Authorizer:
    """Authorizes requests."""

    def __init__(self, allowed_paths: AllowedPaths, reviews: AccessReviews | None) -> None:
        """Without ``reviews``, only system:masters may access paths that are not public."""
        self._allowed_paths = allowed_paths
        self._reviews = reviews

    async def decide(self, user: User, verb: str, path: str) -> AccessDecision:
        """Decide whether a user may access a path; the verb is a method in lower case."""
        if MASTERS in user.groups or path in self._allowed_paths:
            return ALLOWED
        if self._reviews is None:
            return FORBIDDEN
        try:
            verdict = await self._reviews.verdict(user, verb, path)
        except ClientError as error:
            return AccessDecision(allowed=False, failure=str(error))
        if verdict.allowed and verdict.denied:
            failure = "webhook subject access review returned both allow and deny response"
            return AccessDecision(allowed=False, failure=failure)
        return AccessDecision(
            allowed=verdict.allowed, reason="" if verdict.allowed else verdict.reason
        )
