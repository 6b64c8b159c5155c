"""The real guard of crashes, over exclusions that are kept in a file: for tests without a broker."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from bettong.identifiers import PartitionId
from bettong.worker.exclusions import Exclusion, counting, decode_exclusion, encode_exclusion
from bettong_processor.crashes.guard import Guard
from bettong_processor.crashes.marks import Marks


class FileExclusions:
    """`Exclusions` in a file, a line each. Not for several processes at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: defaultdict[PartitionId, dict[int, Exclusion]] = defaultdict(dict)

    def known(self, partition: PartitionId) -> Mapping[int, Exclusion]:
        """See Exclusions."""
        return self._found[partition]

    def refresh(self, since_s: float | None = None) -> None:  # noqa: ARG002 - it costs nothing
        """See Exclusions."""
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            number, _, value = line.partition(" ")
            stage, exclusion = decode_exclusion(bytes.fromhex(value))
            found = self._found[PartitionId(stage, int(number))]
            found[exclusion.offset] = counting(found.get(exclusion.offset), exclusion)

    def append(self, partition: PartitionId, exclusion: Exclusion) -> Exclusion:
        """See Exclusions."""
        with self._path.open("a") as file:
            file.write(f"{partition.partition} {encode_exclusion(partition.stage, exclusion).hex()}\n")
        self.refresh()
        return self._found[partition][exclusion.offset]


@dataclass
class ListedFaults:
    """`FaultReports` as lines."""

    reported: list[str]
    left_out: list[str]
    held: dict[PartitionId, str] = field(default_factory=dict)

    def report_fault(self, partition: PartitionId, text: str) -> None:
        """See FaultReports."""
        self.reported.append(f"{partition}: {text}")

    def hold_fault(self, partition: PartitionId, text: str) -> None:
        """See FaultReports."""
        if text:
            self.held[partition] = text
        elif self.held.pop(partition, None) is None:
            return
        self.report_fault(partition, text)

    def report_left_out(self, partition: PartitionId, text: str) -> None:
        """See FaultReports."""
        self.left_out.append(f"{partition}: {text}")


def guard(
    folder: Path,
    *,
    partitions: int = 16,
    limit_ms: int = 0,
    reported: list[str] | None = None,
    left_out: list[str] | None = None,
) -> Guard:
    """Of a process whose machine shares memory in `folder`. `reported` takes what holds partitions up."""
    folder.mkdir(parents=True, exist_ok=True)

    return Guard(
        Marks(folder, partitions),
        FileExclusions(folder / "exclusions"),
        ListedFaults(reported if reported is not None else [], left_out if left_out is not None else []),
        structlog.get_logger(),
        limit_ms=limit_ms,
    )
