"""DefaultBinder: binds a pod to its node through the API server."""

from __future__ import annotations

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Bind
from kubesched.framework.registry import PluginContext, PodBinder
from kubesched.framework.status import SUCCESS, Status, error


class DefaultBinder(Bind):
    """Creates the pod's binding."""

    name = "DefaultBinder"

    def __init__(self, binder: PodBinder) -> None:
        self._binder = binder

    @classmethod
    def create(cls, context: PluginContext) -> DefaultBinder:
        """Create the plugin."""
        return cls(context.binder)

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Bind the pod."""
        try:
            await self._binder.bind(pod, node_name)
        except ClientError as failure:
            return error(str(failure))
        return SUCCESS
