"""All that numbers, carries, repeats, loses and takes frames, as one simulation that a seed decides.

    clients --sessions of two senders--> log --runs of workers--> log of results --receivers--> files
              leases: one session a stream

Sessions, numbering, workers, tables and progress are the product's own; what is simulated is who crashes, what is lost,
repeated or late, and time. `World(seed).run(steps)` raises AssertionError when a file does not end up with each message
once, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bettong.edges.redis_store import Claim, Granted, Held
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ledger import Ledger
from bettong_sender.ownership import check_claim, is_exact
from bettong_sender.refusal import Refusal
from bettong_sender.session import Session
from tests.delivery_clocks import PODS, Clocks, short_memory
from tests.delivery_consumers import Consumers
from tests.delivery_parts import FRAMES, PARTITIONS, ROUTE, STREAMS, check_results, frame_of
from tests.delivery_sessions import Client, Place, Running
from tests.lease_model import MemoryLeases

WINDOW = 3
LEASE_MS = 10_000
_ATTEMPTS_MAX = 20
_MS = 1_000_000


class World(Consumers):
    """One interleaving."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.clocks = Clocks(self.chance, self.log)
        self.leases = MemoryLeases(lease_ms=LEASE_MS, clock_ms=lambda: self.clocks.ms)
        self.leases.grow_old()
        self.names = 0
        self.clients = [Client(stream, self.name()) for stream in range(len(STREAMS))]
        self.sessions: list[Running] = []
        self.cut_off = [False] * PODS
        self.days_passed = False

    def run(self, steps: int) -> None:
        """So many accidents and proper steps; then everything heals, and the files must be right."""
        with short_memory():
            for _ in range(steps):
                (act,) = self.chance.choices(_ACTS, _WEIGHTS)
                act(self)
            self.heal()
        check_results([receiver.file for receiver in self.receivers], self.log)

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    # Clients and senders

    def connect(self) -> None:
        self._connect(self.chance.choice(self.clients), self.chance.randrange(PODS))

    def _connect(self, client: Client, pod: int) -> bool:
        """A new session; the one before, if any, lives on in its sender, which does not know yet."""
        if self.cut_off[pod]:
            return False
        origin = STREAMS[client.stream]
        claim = Claim(
            stream=origin, token=self.name(), client=client.identity, instance=str(pod), peer="", log="log"
        )
        answer = self.leases.acquire(claim)
        if not isinstance(answer, Granted):
            self.tell("refused" if isinstance(answer, Held) else "settling", origin)
            return False
        self._nobody_else(origin, client.identity)
        hello = Hello(
            source="in",
            stream=origin.partition("/")[2],
            acknowledged=client.acknowledged,
            client=client.identity,
        )
        try:
            check_claim(answer, origin, client.acknowledged)
        except Refusal as refusal:
            raise AssertionError(f"who tells the truth is refused: {refusal}") from None
        running = self._open(pod, client.stream, hello, claim, answer)
        for older in self.sessions:
            if older is not running and older.pod == pod and older.stream == client.stream and older.live:
                self._end(older, "taken over")
        # Every other client goes on behind what it is told, the others resend from their last receipt.
        if self.chance.random() < 0.5:
            client.acknowledged = max(client.acknowledged, answer.acknowledged)
        client.session, client.credits = running, running.ledger.grant(full=False)
        client.next = sum(frame.sequence <= client.acknowledged for frame in FRAMES[client.stream])
        self.tell("connected", f"{origin} at {pod}, durable {answer.acknowledged}, from {client.next}")
        return True

    def _open(self, pod: int, stream: int, hello: Hello, claim: Claim, granted: Granted) -> Running:
        session = Session(ROUTE, hello, self.clocks.ends[pod])
        ledger = Ledger(claim.stream, window=WINDOW)
        running = Running(pod, stream, session, ledger, claim, granted, self.clocks.ms + LEASE_MS)
        opening = session.open(self.clocks.steady_s, self.clocks.of_pod(pod), granted.acknowledged)
        running.hand_over(opening.appends, ledger.opening(granted.acknowledged))
        self.sessions.append(running)
        return running

    def _nobody_else(self, origin: str, identity: str) -> None:
        """No other client feeds the stream any more."""
        for client in self.clients:
            running = client.session
            if running is not None and running.claim.stream == origin and client.identity != identity:
                assert self.clocks.ms >= running.certain_until_ms, f"two clients feed {origin}"

    def send(self) -> None:
        client = self.chance.choice(self.clients)
        for _ in range(self.chance.randint(1, 3)):
            self._send(client)

    def _send(self, client: Client) -> None:
        running = client.session
        if running is None or not client.credits or client.next == len(FRAMES[client.stream]):
            return
        if self.clocks.ms >= running.certain_until_ms:
            self.tell("waits", STREAMS[client.stream])
            return
        frame = frame_of(client.stream, client.next)
        client.next, client.credits = client.next + 1, client.credits - 1
        client.reached = max(client.reached, client.next)
        entry = running.ledger.spend(frame.sequence, 1)
        taken = running.session.take(frame, self.clocks.steady_s, self.clocks.of_pod(running.pod))
        running.hand_over(taken.appends, entry)
        self.tell(
            "sent" if taken.appends else "known to be durable", f"{running.session.origin} {frame.sequence}"
        )

    def land(self) -> None:
        """Records of a session reach their partitions; some come twice."""
        self._land(lost=0.0)

    def lose(self) -> None:
        """Some are lost on the way."""
        self._land(lost=0.5)

    def _land(self, *, lost: float) -> None:
        waiting = [each for each in self.sessions[-4:] if any(each.under_way.values())]
        if waiting:
            running = self.chance.choice(waiting)
            for place, queue in running.under_way.items():
                for _ in range(min(len(queue), self.chance.randint(0, 4))):
                    self._arrive(running, place, lost=self.chance.random() < lost)

    def _arrive(self, running: Running, place: Place, *, lost: bool = False, again: bool = True) -> None:
        append, entry = running.under_way[place].popleft()
        entry.answered += 1
        if lost:
            entry.failed = True
            running.session.lost(append.place)
            self.tell("lost", place)
            return
        offset = self.log.append(*place, append.value)
        try:
            running.session.answered(append.place, offset, opens=append.opens)
        except Refusal:
            entry.failed = True
            self._end(running, "left behind")
        if again and self.chance.random() < 0.05:
            self.log.append(*place, append.value)
            self.tell("appended twice", place)

    def receipt(self) -> None:
        for client in self.clients:
            if client.session is not None:
                self._receipt(client, client.session)

    def _receipt(self, client: Client, running: Running) -> None:
        receipt = running.ledger.receipt(full=False)
        if receipt is not None:
            client.acknowledged = max(client.acknowledged, receipt.acknowledged)
            client.credits += receipt.credits

    def cut(self) -> None:
        """A client loses its connection; its sender notices, or not yet."""
        client = self.chance.choice(self.clients)
        self._disconnect(client, noticed=self.chance.random() < 0.5)

    def crash_client(self) -> None:
        """A client is killed and comes back with nothing but the name of its stream.

        Not after days in which nobody but itself knew of its last receipts.
        """
        client = self.chance.choice(self.clients)
        if self.days_passed and client.acknowledged > self.leases.known(STREAMS[client.stream]):
            return
        self._disconnect(client, noticed=self.chance.random() < 0.7)
        client.identity, client.acknowledged = self.name(), 0
        self.tell("client crashed", STREAMS[client.stream])

    def _disconnect(self, client: Client, *, noticed: bool) -> None:
        if client.session is not None and noticed:
            self._end(client.session, "closed")
        client.session = None

    def _end(self, running: Running, why: str) -> None:
        """The sender ends a session, and gives its stream back."""
        if not running.live:
            return
        running.live = False
        for client in self.clients:
            if client.session is running:
                client.session = None
        if not self.cut_off[running.pod]:
            self._release(running)
        self.tell(f"session {why}", running.session.origin)

    def _release(self, running: Running) -> None:
        told = running.ledger.acknowledged
        exact = is_exact(running.granted, claimed=running.session.claimed, told=told)
        self.leases.release(running.claim, told, exact=exact)

    def crash_pod(self) -> None:
        """A sender is killed: nothing is given back, and some of what is under way never arrives."""
        pod = self.chance.randrange(PODS)
        for running in self.sessions:
            if running.pod == pod and running.live:
                running.live = False
                for place, queue in running.under_way.items():
                    for _ in range(len(queue) if self.chance.random() < 0.5 else 0):
                        self._arrive(running, place, lost=True)
        for client in self.clients:
            if client.session is not None and client.session.pod == pod:
                client.session = None
        self.cut_off[pod] = False
        self.clocks.ends[pod] = [-1] * PARTITIONS
        self.tell("sender crashed", pod)

    def renew(self) -> None:
        for pod in range(PODS):
            if not self.cut_off[pod]:
                self._renew(pod)

    def _renew(self, pod: int) -> None:
        live = [each for each in self.sessions if each.pod == pod and each.live]
        answers = self.leases.renew([(each.claim, each.ledger.acknowledged) for each in live])
        for running, ours in zip(live, answers, strict=True):
            if ours:
                running.certain_until_ms = self.clocks.ms + LEASE_MS
            else:
                self._end(running, "aborted")

    def cut_pod_off(self) -> None:
        """A sender that does not reach Redis, perhaps for longer than its leases; or does again."""
        pod = self.chance.randrange(PODS)
        self.cut_off[pod] = not self.cut_off[pod]
        if self.cut_off[pod] and self.chance.random() < 0.5:
            for _ in range(4):
                self.clocks.now_ns += LEASE_MS // 3 * _MS
                self.renew()

    def lose_redis(self) -> None:
        """Redis forgets everything. Not after days: then it is what keeps the place of a client that was forgotten."""
        if not self.days_passed:
            self.leases.forget()
            self.tell("Redis lost its data")

    def save_redis(self) -> None:
        """What Redis knows comes to its disk, or to its replica."""
        self.leases.write_down()

    def age_redis(self) -> None:
        """Redis comes back, with what it knew some time ago."""
        if not self.days_passed:
            self.leases.come_back_older()
            self.tell("Redis came back older")

    def stranger(self) -> None:
        """Another program under the name of a stream: given it or not, it never shares it, and does not spoil it."""
        stream, pod = self.chance.randrange(len(STREAMS)), self.chance.randrange(PODS)
        claimed = self.chance.choice((0, 2**63))
        origin, name = STREAMS[stream], self.name()
        claim = Claim(stream=origin, token=name, client=name, instance="x", peer="", log="log")
        granted = self.leases.acquire(claim)
        if not isinstance(granted, Granted):
            # It waits for a lease time: then only who is alive has the stream still.
            self.clocks.now_ns += LEASE_MS * _MS
            self.renew()
            granted = self.leases.acquire(claim)
        if not isinstance(granted, Granted):
            return
        self._nobody_else(origin, claim.client)
        hello = Hello(source="in", stream=origin.partition("/")[2], acknowledged=claimed, client=name)
        try:
            check_claim(granted, origin, hello.acknowledged)
        except Refusal:
            self.leases.release(claim, 0, exact=True)
            self.tell("stranger found out", origin)
            return
        running = self._open(pod, stream, hello, claim, granted)
        running.live = False
        self._release(running)
        self.tell("stranger came and went", origin)

    # Time

    def wait(self) -> None:
        """A while, in which leases may run out; senders that reach Redis renew in time, as a rule."""
        for _ in range(self.chance.randint(1, 5)):
            self.clocks.now_ns += self.chance.randint(1, LEASE_MS // 3) * _MS
            if self.chance.random() < 0.8:
                self.renew()

    def jump_clock(self) -> None:
        """The clock of a sender is set, perhaps by days."""
        pod = self.chance.randrange(PODS)
        self.tell("clock jumped", f"of {pod} to {self.clocks.jump(pod):.1f} h")

    def days(self) -> None:
        """A quiet time, after which silent clients are forgotten or opened again."""
        self.settle()
        self.days_passed = True
        self.clocks.days()
        self.renew()
        self.tell("days passed")

    def run_away(self) -> None:
        """Everybody is forgotten in a moment, because a clock runs."""
        self.settle()
        self.days_passed = True
        self.clocks.run_away()
        self.tell("clock ran away")

    # The end

    def settle(self, *, all_frames: bool = False) -> None:
        """Every frame sent so far, or every one there is, lies in the log, and its client holds the receipt."""
        self.cut_off = [False] * PODS
        for running in self.sessions:
            self._arrive_all(running)
        for client in self.clients:
            last = len(FRAMES[client.stream]) if all_frames else client.reached
            for attempt in range(_ATTEMPTS_MAX):
                if last == 0 or client.acknowledged >= FRAMES[client.stream][last - 1].sequence:
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
                raise AssertionError(f"{STREAMS[client.stream]} gets no receipts")
        self.renew()

    def _reconnect(self, client: Client) -> None:
        for _ in range(_ATTEMPTS_MAX):
            if self._connect(client, self.chance.randrange(PODS)):
                return
            for running in self.sessions:
                if running.stream == client.stream and running.claim.client != client.identity:
                    self._end(running, "noticed to be dead")
            self.clocks.now_ns += LEASE_MS // 2 * _MS
            self.renew()
        raise AssertionError(f"{STREAMS[client.stream]} is let in by nobody")

    def _arrive_all(self, running: Running) -> None:
        for place, queue in running.under_way.items():
            while queue:
                self._arrive(running, place, again=False)

    def heal(self) -> None:
        """No more accidents: everybody finishes."""
        self.settle(all_frames=True)
        for worker in self.workers:
            worker.finish()
        for receiver in self.receivers:
            receiver.finish()


_SHARES: dict[Callable[[World], Any], float] = {
    World.connect: 6, World.send: 14, World.land: 16, World.lose: 3, World.receipt: 10, World.cut: 3,
    World.crash_client: 2, World.crash_pod: 1.5, World.renew: 4, World.cut_pod_off: 2, World.lose_redis: 0.7,
    World.save_redis: 2, World.age_redis: 0.7,
    World.stranger: 2, World.wait: 4, World.jump_clock: 1, World.days: 0.5, World.run_away: 0.5,
    World.fold: 9, World.land_results: 9, World.snapshot: 4, World.crash_worker: 3,
    World.receive: 5, World.save_receiver: 3, World.crash_receiver: 2,
}  # fmt: skip
_ACTS, _WEIGHTS = list(_SHARES), list(_SHARES.values())
