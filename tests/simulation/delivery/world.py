"""All that numbers, carries, repeats, loses and takes frames, as one simulation that a seed decides.

    clients --sessions of two senders--> log --runs of workers--> log of results --receivers--> files
              leases: one session a stream

Sessions, numbering, workers, tables and progress are the product's own; what is simulated is who crashes, what is lost,
repeated or late, and time. Two clients come back by the names of their streams; others have none, and end or die.
`World(seed).run(steps)` raises AssertionError when a file does not end up with each message once, in order, or when a
table remembers who has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bettong.edges.redis_store import Claim, Granted
from bettong.frames.frame import FrameKind
from bettong.identifiers import SequenceNumber
from bettong.ingest.refusal import Refusal
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ownership import check_claim
from tests.simulation.delivery.clocks import DAY_RECORDS, ENDED_RECORDS, OTHER, PODS, later, short_memory
from tests.simulation.delivery.parts import STREAMS, check_results
from tests.simulation.delivery.senders import LEASE_MS, MS, Senders
from tests.simulation.delivery.sessions import Client

_ATTEMPTS_MAX = 20
# At a time: those with a name of their own and two others.
_CLIENTS_MAX = len(STREAMS) + 2


class World(Senders):
    """One interleaving."""

    def run(self, steps: int) -> None:
        """So many accidents and proper steps; then everything heals, and files and tables must be right."""
        with short_memory():
            for _ in range(steps):
                (act,) = self.chance.choices(_ACTS, _WEIGHTS)
                act(self)
            self.heal()
            check_results([receiver.file for receiver in self.receivers], self.log, self._due())
            self.forget()

    def _due(self) -> dict[int, tuple[int, int]]:
        """How many frames of each client count at least, and at most: of one that was killed, those with a receipt."""
        return {each.number: each.due for each in (*self.clients, *self.gone)}

    # Clients without a name of their own

    def come(self) -> None:
        """A client comes, and draws a name for its stream at random."""
        if len(self.clients) < _CLIENTS_MAX:
            number, name = len(self.clients) + len(self.gone), f"{self.chance.getrandbits(32):08x}"
            client = Client(number, f"in/{name}", self.name(), ephemeral=True)
            self.clients.append(client)
            self.record("came", name)
            self._connect(client, self.chance.randrange(PODS))

    def end(self) -> None:
        """One that holds receipts for all that it sent has finished. Some send nothing at all."""
        for client in [each for each in self.clients if each.ephemeral]:
            running = self.complete(client)
            if running is not None and client.is_through:
                self.finish(running)
                self._leave(client)
                self.record("ended", client.origin)

    def _kill(self, client: Client) -> None:
        """Nobody comes back in its place. Some just close their side of the call: their sender thinks they finished."""
        running = self.complete(client) if self.chance.random() < 0.4 else None
        if running is not None:
            self.finish(running)
            self.record("killed while it ended", client.origin)
        else:
            self._disconnect(client, noticed=self.chance.random() < 0.5)
            self.record("killed", client.origin)
        self._leave(client)

    def _leave(self, client: Client) -> None:
        self.clients.remove(client)
        self.gone.append(client)

    def crash_client(self) -> None:
        """A client is killed. One with a stream name of its own comes back with nothing but that name.

        Not after days in which nobody but itself knew of its last receipts.
        """
        client = self.chance.choice(self.clients)
        if client.ephemeral:
            self._kill(client)
            return
        if self.days_passed and client.acknowledged > self.leases.known(client.origin):
            return
        self._disconnect(client, noticed=self.chance.random() < 0.7)
        client.identity, client.acknowledged = self.name(), 0
        self.record("client crashed", client.origin)

    def send_again(self) -> None:
        """One with a name has sent all that it has, and ends its stream; it comes again with nothing but that name."""
        for client in [each for each in self.clients if not each.ephemeral]:
            running = self.complete(client)
            if running is not None and client.is_through:
                self.finish(running, kept=True)
                client.identity, client.acknowledged = self.name(), 0
                self.record("sends again", client.origin)

    def stranger(self) -> None:
        """Another program under the name of a stream: given it or not, it never shares it, and does not spoil it."""
        origin, pod = self.chance.choice(STREAMS), self.chance.randrange(PODS)
        claimed = self.chance.choice((0, 2**63))
        name = self.name()
        claim = Claim(stream=origin, token=name, client=name, instance="x", peer="", log="log")
        granted = self.leases.acquire(claim)
        if not isinstance(granted, Granted):
            # It waits for a lease time: then only who is alive has the stream still.
            self.clocks.now_ns += LEASE_MS * MS
            self.renew()
            granted = self.leases.acquire(claim)
        if not isinstance(granted, Granted):
            return
        self._nobody_else(origin, claim.client)
        hello = Hello(source="in", stream=origin.partition("/")[2], acknowledged=claimed, client=name)
        try:
            check_claim(granted, origin, SequenceNumber(hello.acknowledged))
        except Refusal:
            self.leases.release(claim, 0, exact=True)
            self.record("stranger found out", origin)
            return
        running = self._open(pod, hello, claim, granted)
        running.live = False
        self._release(running)
        self.record("stranger came and went", origin)

    # Time

    def wait(self) -> None:
        """A while, in which leases may run out; senders that reach Redis renew in time, as a rule."""
        for _ in range(self.chance.randint(1, 5)):
            self.clocks.now_ns += self.chance.randint(1, LEASE_MS // 3) * MS
            if self.chance.random() < 0.8:
                self.renew()

    def jump_clock(self) -> None:
        """The clock of a sender is set, perhaps by days."""
        pod = self.chance.randrange(PODS)
        self.record("clock jumped", f"of {pod} to {self.clocks.jump(pod):.1f} h")

    def days(self) -> None:
        """A quiet time, after which silent clients are forgotten or opened again."""
        self.settle()
        self.days_passed = True
        self.clocks.days()
        self.renew()
        self.record("days passed")

    def run_away(self) -> None:
        """Everybody is forgotten in a moment, because a clock runs."""
        self.settle()
        self.days_passed = True
        self.clocks.run_away()
        self.record("clock ran away")

    # The end

    def settle(self, *, all_frames: bool = False) -> None:
        """Every frame sent so far, or every one there is, lies in the log, and its client holds the receipt."""
        self.cut_off = [False] * PODS
        # What is on its way since older sessions may come even after all have finished.
        for running in [] if all_frames and self.chance.random() < 0.5 else self.sessions:
            self._arrive_all(running)
        for client in self.clients:
            last = len(client.frames) if all_frames else client.reached
            for attempt in range(_ATTEMPTS_MAX):
                if last == 0 or client.acknowledged >= client.frames[last - 1].sequence:
                    break
                self.renew()
                if client.session is None or attempt > 0:
                    self._reconnect(client)
                assert client.session is not None
                self._receipt(client, client.session)
                for _ in range(min(client.credits, last - client.next)):
                    self._send(client)
                self._arrive_all(client.session)
                self.receipt()
            else:
                raise AssertionError(f"{client.origin} gets no receipts")
        self.renew()

    def _reconnect(self, client: Client) -> None:
        for _ in range(_ATTEMPTS_MAX):
            if self._connect(client, self.chance.randrange(PODS)):
                return
            for running in self.sessions:
                if running.claim.stream == client.origin and running.claim.client != client.identity:
                    self._end(running, "noticed to be dead")
            self.clocks.now_ns += LEASE_MS // 2 * MS
            self.renew()
        raise AssertionError(f"{client.origin} is let in by nobody")

    def heal(self) -> None:
        """No more accidents: everybody finishes."""
        self.settle(all_frames=True)
        for client in [each for each in self.clients if each.ephemeral]:
            self._reconnect(client)
            running = self.complete(client)
            assert running is not None, f"{client.origin} cannot end"
            self.finish(running)
            self._arrive_all(running)
            for partition in running.in_flight:
                assert FrameKind.END in self.log.kinds(partition, client.origin), (
                    f"{client.origin} goes on in {partition}"
                )
        for running in self.sessions:
            self._arrive_all(running)
        for worker in self.workers:
            worker.finish()
        for receiver in self.receivers:
            receiver.finish()

    def forget(self) -> None:
        """Others go on: tables forget who has ended, and a day later everybody else who was silent."""
        for worker in self.workers:
            ended = worker.ended() - set(STREAMS)  # whose frames may come again
            for value in later(worker.newest_ns(), ENDED_RECORDS):
                worker.hear(value)
            assert not ended & worker.origins, f"not forgotten: {ended & worker.origins}"
            self.seen["forgotten"] += len(ended)
            for value in later(worker.newest_ns(), DAY_RECORDS):
                worker.hear(value)
            assert worker.origins <= {OTHER}, f"not forgotten in a day: {worker.origins}"


_SHARES: dict[Callable[[World], Any], float] = {
    World.connect: 8, World.send: 18, World.land: 17, World.lose: 3, World.receipt: 10, World.cut: 4,
    World.come: 6, World.end: 7, World.send_again: 2, World.crash_client: 4, World.crash_pod: 1.5,
    World.renew: 4, World.cut_pod_off: 2, World.lose_redis: 0.7, World.save_redis: 2, World.age_redis: 0.7,
    World.stranger: 2, World.wait: 4, World.jump_clock: 1, World.days: 0.5, World.run_away: 0.5,
    World.fold: 9, World.land_results: 9, World.snapshot: 4, World.crash_worker: 3,
    World.receive: 5, World.save_receiver: 3, World.crash_receiver: 2,
}  # fmt: skip
_ACTS, _WEIGHTS = list(_SHARES), list(_SHARES.values())
