"""Who asks: a name, groups, and what else the API server wants to know of a user."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.meta import ApiStruct

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


class User(ApiStruct, frozen=True):
    """Somebody; a TokenReview describes users in the same words."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None

    def authenticated(self) -> User:
        """Return the user as a member of all authenticated ones, unless that is settled."""
        settled = self.username == ANONYMOUS or {AUTHENTICATED, UNAUTHENTICATED} & {*self.groups}
        return self if settled else replace(self, groups=(*self.groups, AUTHENTICATED))


NOBODY = User(username=ANONYMOUS, groups=(UNAUTHENTICATED,))
