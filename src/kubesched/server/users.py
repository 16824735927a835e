"""Users: a name, groups, and extra fields."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.meta import ApiStruct

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


class User(ApiStruct, frozen=True):
    """A user, with the fields of a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None

    def authenticated(self) -> User:
        """Return the user with the group of authenticated users, unless anonymous."""
        settled = self.username == ANONYMOUS or {AUTHENTICATED, UNAUTHENTICATED} & {*self.groups}
        return self if settled else replace(self, groups=(*self.groups, AUTHENTICATED))


ANONYMOUS_USER = User(username=ANONYMOUS, groups=(UNAUTHENTICATED,))
