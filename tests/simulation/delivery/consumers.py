"""What happens behind the log of a simulated world: to its workers and receivers."""

from __future__ import annotations

import random
from collections import Counter

from tests.simulation.delivery.parts import PARTITIONS, Log, Receiver, Worker


class Consumers:
    """`trace` tells what happened, `seen` counts the kinds of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.trace: list[str] = []
        self.seen: Counter[str] = Counter()
        self.log = Log()
        self.workers = [Worker(partition, self.log) for partition in range(PARTITIONS)]
        self.receivers = [Receiver(partition, self.log) for partition in range(PARTITIONS)]

    def record(self, what: str, detail: object = "") -> None:
        self.seen[what] += 1
        self.trace.append(f"{what} {detail}")

    def fold(self) -> None:
        for worker in self.workers:
            worker.fold(self.chance, self.chance.randint(0, 8))

    def land_results(self) -> None:
        for worker in self.workers:
            if lost := worker.land(self.chance, self.chance.randint(0, 8)):
                self.record("results lost", lost)

    def snapshot(self) -> None:
        for worker in self.workers:
            if worker.save():
                self.record("snapshot")

    def crash_worker(self) -> None:
        self.chance.choice(self.workers).crash()
        self.record("worker crashed")

    def receive(self) -> None:
        for receiver in self.receivers:
            receiver.read(self.chance.randint(0, 8))

    def save_receiver(self) -> None:
        self.chance.choice(self.receivers).save()

    def crash_receiver(self) -> None:
        self.chance.choice(self.receivers).crash()
        self.record("receiver crashed")
