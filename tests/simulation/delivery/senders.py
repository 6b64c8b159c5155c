"""The senders of a simulated world, the sessions of its clients in them, and the leases of streams."""

from __future__ import annotations

from bettong.edges.redis_store import Claim, Granted, Held
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.ingest.refusal import Refusal
from bettong.ingest.session import Session
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ledger import Entry, Ledger
from bettong_sender.ownership import check_claim, is_exact
from tests.simulation.delivery.clocks import PODS, Clocks
from tests.simulation.delivery.consumers import Consumers
from tests.simulation.delivery.parts import PARTITIONS, ROUTE, STREAMS
from tests.simulation.delivery.sessions import Client, Running
from tests.simulation.lease_model import MemoryLeases

WINDOW = 3
LEASE_MS = 10_000
MS = 1_000_000
# Records of so many sessions, the newest ones, come to the log; those of older ones are late.
_LANDING = 5


class Senders(Consumers):
    """`clients`: those that live. `gone`: those that nobody will ever be again."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.clocks = Clocks(self.chance, self.log)
        self.leases = MemoryLeases(lease_ms=LEASE_MS, clock_ms=lambda: self.clocks.ms)
        self.leases.grow_old()
        self.names = 0
        self.clients = [Client(number, stream, self.name()) for number, stream in enumerate(STREAMS)]
        self.gone: list[Client] = []
        self.sessions: list[Running] = []
        self.cut_off = [False] * PODS
        self.days_passed = False

    def name(self) -> str:
        """One that nobody else has."""
        self.names += 1
        return f"n{self.names}"

    def connect(self) -> None:
        self._connect(self.chance.choice(self.clients), self.chance.randrange(PODS))

    def _connect(self, client: Client, pod: int) -> bool:
        """A new session; the one before, if any, lives on in its sender, which does not know yet."""
        if self.cut_off[pod]:
            return False
        origin = client.origin
        claim = Claim(
            stream=origin, token=self.name(), client=client.identity, instance=str(pod), peer="", log="log"
        )
        answer = self.leases.acquire(claim)
        if not isinstance(answer, Granted):
            self.record("refused" if isinstance(answer, Held) else "settling", origin)
            return False
        self._nobody_else(origin, client.identity)
        hello = Hello(
            source="in",
            stream=origin.partition("/")[2],
            acknowledged=client.acknowledged,
            client=client.identity,
            ephemeral=client.ephemeral,
        )
        try:
            check_claim(answer, origin, SequenceNumber(client.acknowledged))
        except Refusal as refusal:
            raise AssertionError(f"who tells the truth is refused: {refusal}") from None
        running = self._open(pod, hello, claim, answer)
        for older in self.sessions:
            if older is not running and older.pod == pod and older.claim.stream == origin and older.live:
                self._end(older, "taken over")
        # Every other client goes on behind what it is told, the others resend from their last receipt.
        if self.chance.random() < 0.5:
            client.acknowledged = max(client.acknowledged, answer.acknowledged)
        client.session, client.credits = running, running.ledger.grant(full=False)
        client.next = sum(frame.sequence <= client.acknowledged for frame in client.frames)
        self.record("connected", f"{origin} at {pod}, durable {answer.acknowledged}, from {client.next}")
        return True

    def _open(self, pod: int, hello: Hello, claim: Claim, granted: Granted) -> Running:
        session = Session(ROUTE, hello, self.clocks.ends[pod])
        ledger = Ledger(Origin(claim.stream), window=WINDOW)
        running = Running(pod, session, ledger, claim, granted, self.clocks.ms + LEASE_MS)
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
        if running is None or not client.credits or client.next == len(client.frames):
            return
        if self.clocks.ms >= running.certain_until_ms:
            self.record("waits", client.origin)
            return
        frame = client.frames[client.next]
        client.next, client.credits = client.next + 1, client.credits - 1
        client.reached = max(client.reached, client.next)
        entry = running.ledger.spend(SequenceNumber(frame.sequence), 1)
        taken = running.session.take(frame, self.clocks.steady_s, self.clocks.of_pod(running.pod))
        running.hand_over(taken.appends, entry)
        self.record(
            "sent" if taken.appends else "known to be durable", f"{running.session.origin} {frame.sequence}"
        )

    def land(self) -> None:
        """Records of a session reach their partitions; some come twice."""
        self._land(lost=0.0)

    def lose(self) -> None:
        """Some are lost on the way."""
        self._land(lost=0.5)

    def _land(self, *, lost: float) -> None:
        waiting = [each for each in self.sessions[-_LANDING:] if any(each.in_flight.values())]
        if waiting:
            running = self.chance.choice(waiting)
            for partition, queue in running.in_flight.items():
                for _ in range(min(len(queue), self.chance.randint(0, 4))):
                    self._arrive(running, partition, lost=self.chance.random() < lost)

    def _arrive(
        self, running: Running, partition: TopicPartition, *, lost: bool = False, again: bool = True
    ) -> None:
        append, entry = running.in_flight[partition].popleft()
        entry.answered += 1
        if lost:
            entry.failed = True
            running.session.lost(append.numbered_in)
            self.record("lost", partition)
            return
        offset = self.log.append(*partition, append.value)
        try:
            running.session.answered(append.numbered_in, offset, opens=append.opens)
        except Refusal:
            entry.failed = True
            self._end(running, "left behind")
        if again and self.chance.random() < 0.05:
            self.log.append(*partition, append.value)
            self.record("appended twice", partition)

    def _arrive_all(self, running: Running) -> None:
        for partition, queue in running.in_flight.items():
            while queue:
                self._arrive(running, partition, again=False)

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

    def complete(self, client: Client) -> Running | None:
        """The client's session when all that it has sent is durable, and the client knows; None when it is not."""
        running = client.session
        if running is None:
            return None
        self._arrive_all(running)
        if not running.live:
            return None
        self._receipt(client, running)
        return running if running.ledger.is_complete else None

    def finish(self, running: Running, *, kept: bool = False) -> None:
        """The sender ends the stream of a session in the log, and the session. `kept`: its frames may come again."""
        ended = running.session.end(self.clocks.steady_s, self.clocks.of_pod(running.pod), kept=kept)
        running.hand_over(ended.appends, Entry(running.ledger.acknowledged, credits=0))
        self._end(running, "finished", ended=not kept)

    def _disconnect(self, client: Client, *, noticed: bool) -> None:
        if client.session is not None and noticed:
            self._end(client.session, "closed")
        client.session = None

    def _end(self, running: Running, why: str, *, ended: bool = False) -> None:
        """The sender ends a session, and gives its stream back."""
        if not running.live:
            return
        running.live = False
        for client in self.clients:
            if client.session is running:
                client.session = None
        if not self.cut_off[running.pod]:
            self._release(running, ended=ended)
        self.record(f"session {why}", running.session.origin)

    def _release(self, running: Running, *, ended: bool = False) -> None:
        acknowledged = running.ledger.acknowledged
        exact = is_exact(running.granted, claimed=running.session.claimed, acknowledged=acknowledged)
        self.leases.release(running.claim, acknowledged, exact=exact, ended=ended)

    def crash_pod(self) -> None:
        """A sender is killed: nothing is given back, and some of what is under way never arrives."""
        pod = self.chance.randrange(PODS)
        for running in self.sessions:
            if running.pod == pod and running.live:
                running.live = False
                for partition, queue in running.in_flight.items():
                    for _ in range(len(queue) if self.chance.random() < 0.5 else 0):
                        self._arrive(running, partition, lost=True)
        for client in self.clients:
            if client.session is not None and client.session.pod == pod:
                client.session = None
        self.cut_off[pod] = False
        self.clocks.ends[pod] = [-1] * PARTITIONS
        self.record("sender crashed", pod)

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
                self.clocks.now_ns += LEASE_MS // 3 * MS
                self.renew()

    def lose_redis(self) -> None:
        """Redis forgets everything. Not after days: then it is what keeps the place of a client that was forgotten."""
        if not self.days_passed:
            self.leases.forget()
            self.record("Redis lost its data")

    def save_redis(self) -> None:
        """What Redis knows comes to its disk, or to its replica."""
        self.leases.write_down()

    def age_redis(self) -> None:
        """Redis comes back, with what it knew some time ago."""
        if not self.days_passed:
            self.leases.come_back_older()
            self.record("Redis came back older")
