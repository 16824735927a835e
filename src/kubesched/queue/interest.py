"""Who wants to hear of which event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.queue.events import ClusterEvent

#: Plugin → the events it wants to hear of; None means all.
Registrations = Mapping[str, Sequence[ClusterEvent] | None]

#: A plugin of a profile: scheduler name and plugin name.
Subscriber = tuple[str, str]


class Interest:
    """What the plugins of all profiles registered; answers are remembered, events are few."""

    def __init__(self, registrations: Mapping[str, Registrations]) -> None:
        #: by scheduler name
        self._registrations = registrations
        self._subscribers: dict[ClusterEvent, frozenset[Subscriber]] = {}

    def subscribers(self, event: ClusterEvent) -> frozenset[Subscriber]:
        """Return the plugins that want to hear of an event."""
        known = self._subscribers.get(event)
        if known is None:
            known = self._subscribers[event] = frozenset(
                (scheduler_name, plugin)
                for scheduler_name, registered in self._registrations.items()
                for plugin, events in registered.items()
                if events is None
                or event.is_wildcard
                or any(event.matches(each) for each in events)
            )
        return known

    def concerns(self, event: ClusterEvent, scheduler_name: str, plugins: Iterable[str]) -> bool:
        """Tell whether one of some plugins of a profile wants to hear of an event."""
        subscribers = self.subscribers(event)
        return any((scheduler_name, plugin) in subscribers for plugin in plugins)
