"""The current, the desired and the permitted number of workers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bettong.cluster.objects import FIXED, Object, name_of
from bettong.errors import ClusterError

_PARTITIONS = 16  # the default of settings.partitions


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a release. `slots`: concurrent tasks per worker."""

    name: str
    wanted: int
    live: int
    slots: int
    partitions: int

    def line(self) -> str:
        """Describes the workers in one line."""
        text = f"workers: {self.live} of {self.wanted} live, {self._slots(self.live)}"
        return f"{text}: nothing is processed" if not self.live else text

    def change_lines(self, count: int) -> list[str]:
        """Describes the effects of another count, one line each."""
        lines = [f"{self.name}: {self.wanted} -> {count} workers, {self._slots(count)}"]
        if count == 0:
            lines.append("nothing is processed until there are workers again; new records wait in Kafka")
        return lines

    def _slots(self, count: int) -> str:
        total = count * self.slots
        text = f"{total} slots for {self.partitions} partitions a stage"
        return f"{text}: {total - self.partitions} slots are idle" if total > self.partitions else text


def workers(stateful_set: Object, settings: Mapping[str, str]) -> Workers:
    """Reads the workers from their StatefulSet and the ConfigMap with the settings."""
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    words = [str(each) for each in container.get("args", [])]
    slots = words[words.index("--cores") + 1] if "--cores" in words else "1"
    return Workers(
        name=name_of(stateful_set),
        wanted=int(stateful_set["spec"].get("replicas", 1)),
        live=int(stateful_set["status"].get("readyReplicas", 0)),
        slots=int(slots),
        partitions=int(settings.get("BETTONG_PARTITIONS", _PARTITIONS)),
    )


def settings_map(stateful_set: Object) -> str:
    """The name of the ConfigMap from which the StatefulSet's container gets its settings."""
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            return str(source["configMapRef"]["name"])
    raise ClusterError(f"{name_of(stateful_set)} has no ConfigMap of settings: is it of Bettong's chart?")


def refuse(stateful_set: Object, found: Workers, count: int, scalers: Iterable[Object]) -> None:
    """Raises ClusterError when setting this count is not allowed, or would be undone."""
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) == ("StatefulSet", found.name):
            raise ClusterError(
                f"{found.name} is scaled by the autoscaler {name_of(scaler)}, which would undo it: change its"
                " minReplicas and maxReplicas (values: worker.autoscaling, worker.keda)"
            )
    if (stateful_set["metadata"].get("annotations") or {}).get(FIXED) == "values":
        raise ClusterError(
            f"the values of the release fix the count of {found.name} (worker.replicas), and the next upgrade would"
            " undo it: change it there. To scale by hand from now on, set it to null and upgrade: that upgrade sets 1;"
            " scale again right after it"
        )
    if count > found.partitions:
        raise ClusterError(
            f"{count} workers for {found.partitions} partitions: more than partitions find nothing to do; partitions"
            " are fixed for the life of an application (settings.partitions)"
        )
