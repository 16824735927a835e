"""Every exception that kubesched raises on purpose.

KubeschedError
├── UsageError            an invalid command line
├── ConfigError           an invalid configuration file
│   └── OldKindError      … because only older kube-schedulers read it
├── ObjectError           an API object that cannot be used
│   ├── QuantityError     … because a quantity is malformed or out of range
│   ├── SelectorError     … because a selector is malformed
│   ├── CelError          … because an expression does not compile
│   └── CelRuntimeError   … because an expression fails for a device
├── PluginError           a plugin that broke its contract
├── OutputError           a file, or standard output, that cannot be written
├── InvariantError        an inconsistent structure: a bug of ours
├── KubeconfigError       a kubeconfig, or credentials it names, that cannot be used
└── ClientError           talking to the API server
    ├── ConnectionFailedError     no connection, or it broke before a response
    ├── RequestTimeoutError       no answer in time
    ├── ExtenderError             an extender failed, or its response is invalid
    ├── LeadershipLostError       we lost the lease, or may have lost it
    ├── NotLeadingError           another replica may lead: nothing was sent
    ├── WithdrawnError            the caller withdrew it before it was sent
    └── ApiError          the API server answered with a failure
        ├── UnauthorizedError     401
        ├── ForbiddenError        403
        ├── NotFoundError         404
        ├── ConflictError         409
        │   └── AlreadyExistsError
        ├── GoneError             410, the resource version is too old: list again
        ├── InvalidError          422
        └── TooManyRequestsError  429

Expected outcomes of scheduling (a node that does not fit, a plugin that waits) are values,
``framework.status.Status``, and never exceptions.

The text of each is one line that says what, where and, if it helps, what to do: it is shown to
users as it is.
"""

from __future__ import annotations


class KubeschedError(Exception):
    """Base of all exceptions raised on purpose."""

    #: what the ``kubesched`` command ends with
    exit_code = 1


class UsageError(KubeschedError):
    """An invalid command line."""


class ConfigError(KubeschedError):
    """An invalid configuration; the text names the field."""


class OldKindError(ConfigError):
    """A configuration that only older kube-schedulers read: it can be converted."""


class ObjectError(KubeschedError):
    """An API object that cannot be used; scheduling goes on without it."""


class QuantityError(ObjectError):
    """A resource quantity that is malformed or out of range."""


class SelectorError(ObjectError):
    """A label, field or node selector that is malformed."""


class CelError(ObjectError):
    """A CEL expression that does not compile; the text is kube-scheduler's, of several lines."""


class CelRuntimeError(ObjectError):
    """A CEL expression that has no value for a device."""


class PluginError(KubeschedError):
    """A plugin that cannot be built, or that broke the contract of its extension point."""


class OutputError(KubeschedError):
    """A file that a flag names, or standard output, that cannot be written."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"cannot write {what}: {reason}")
        #: in the system's words
        self.reason = reason


class InvariantError(KubeschedError):
    """An inconsistent structure, found by its ``validate()``: a bug of ours."""


def require(holds: object, what: str) -> None:
    """Raise InvariantError unless `holds`; the building block of every ``validate()``."""
    if not holds:
        raise InvariantError(what)


class KubeconfigError(KubeschedError):
    """A kubeconfig, or credentials it names, that cannot be used."""


class ClientError(KubeschedError):
    """A request to the API server failed."""


class ConnectionFailedError(ClientError):
    """No connection could be made, or it broke before a response."""


class RequestTimeoutError(ClientError):
    """The API server did not answer in time."""


class ExtenderError(ClientError):
    """An extender failed, or its response is invalid."""


class LeadershipLostError(ClientError):
    """We lost the lease, or may have lost it."""


class NotLeadingError(ClientError):
    """Another replica may lead by now, so a write was not sent."""


class WithdrawnError(ClientError):
    """The caller withdrew a request before it was sent."""


class ApiError(ClientError):
    """The API server answered with a failure, a ``Status`` object or plain text."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        #: HTTP status code
        self.code = code
        #: Kubernetes' machine-readable reason, "" if the answer had none
        self.reason = reason
        #: the server's Retry-After
        self.retry_after_s = retry_after_s


class UnauthorizedError(ApiError):
    """401: the credentials are missing, wrong or expired."""


class ForbiddenError(ApiError):
    """403: the credentials lack the permission."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409: the object was changed meanwhile, or its state does not allow this."""


class AlreadyExistsError(ConflictError):
    """409 with the reason AlreadyExists."""


class GoneError(ApiError):
    """410: the resource version is too old, list again."""


class InvalidError(ApiError):
    """422: the object does not pass validation."""


class TooManyRequestsError(ApiError):
    """429: retry later."""
