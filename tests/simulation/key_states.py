"""The states of a stage's computations, by key, and when each of them ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bettong.application.lifetime import Lifetime
from bettong.application.timers import Clock
from tests.simulation.graphs import Node


@dataclass
class KeyStates:
    """By computation and key. `last_ns`: the newest time of a message since, by the clock that it lives by."""

    kept: dict[tuple[str, Any], Any] = field(default_factory=dict)
    last_ns: dict[tuple[str, Any], int] = field(default_factory=dict)

    def renewed(self, node: Node, key: Any, make: Callable[[], Any], *, log_ns: int, at_ns: int) -> Any:
        """The state that a message of that event time finds: a fresh one where there is none."""
        now_ns = at_ns if node.lifetime is not None and node.lifetime.clock is Clock.EVENT else log_ns
        own = (node.name, key)
        self.last_ns[own] = max(self.last_ns.get(own, 0), now_ns)
        if own not in self.kept:
            self.kept[own] = make()
        return self.kept[own]

    def delete(self, node: Node, key: Any) -> None:
        """Ends a state."""
        del self.kept[node.name, key], self.last_ns[node.name, key]

    def outlives(self, node: Node, key: Any, clock: Clock, at_ns: int) -> bool:
        """Whether that time comes after the end of a state, by the same clock."""
        of = node.lifetime
        return of is not None and of.clock is clock and at_ns > self.last_ns[node.name, key] + of.ttl_ns

    def end(self, node: Node, of: Lifetime, clock_ns: int) -> int:
        """Ends the states that are over, now that the clock is there. Returns how many they are."""
        over = [
            key
            for (name, key), last_ns in self.last_ns.items()
            if name == node.name and last_ns + of.ttl_ns <= clock_ns
        ]
        for key in over:
            self.delete(node, key)
        return len(over)

    def keys(self, node: Node) -> list[Any]:
        """The keys that have a state."""
        return [key for name, key in self.kept if name == node.name]
