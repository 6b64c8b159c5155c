"""Which session feeds a stream: the leases of this sender's sessions, renewed until the sessions end.

    acquired   before a session opens; refused with ALREADY_EXISTS while another client holds the stream, and with
               INVALID_ARGUMENT if the client claims receipts beyond what was ever acknowledged
    confirmed  before the first sessions of a sender are welcomed (see `Ownership.confirm`)
    renewed    three times per lease time, all together
    in doubt   when it may have expired because Redis did not answer for so long: the session takes no frames until
               the lease is renewed
    lost       another session has the stream: ABORTED

Used on the event loop; calls to Redis block threads of their own. Knows nothing of gRPC.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar

from structlog.stdlib import BoundLogger

from bettong.edges.redis_store import Answer, Claim, Granted, Held, Settling
from bettong.errors import LogError, StoreError
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import Code, Refusal, aborted, invalid, unavailable

# The trailing metadata of ALREADY_EXISTS, see the proto.
LEASE_METADATA = "bettong-lease-ms"

_RENEWALS_PER_LEASE = 3

# Concurrent calls to Redis; one takes a fraction of a millisecond, or 15 s when Redis does not answer.
_CALLS_MAX = 8
# The end of a session waits at most this long for the release of its lease.
_RELEASE_WAIT_S = 1.0
# Between two renewals while Redis is away.
_RETRY_S = 0.2

_Result = TypeVar("_Result")


class Leases(Protocol):
    """The part of `RedisLeases` that `Ownership` uses; each call may block for seconds and raises StoreError."""

    def notice_restart(self) -> None:
        """See RedisLeases."""

    def acquire(self, claim: Claim) -> Answer:
        """See RedisLeases."""

    def skip_settling(self, epoch: str) -> None:
        """See RedisLeases."""

    def renew(self, claims: Sequence[tuple[Claim, SequenceNumber]]) -> list[bool]:
        """See RedisLeases."""

    def release(
        self, claim: Claim, acknowledged: SequenceNumber, *, exact: bool = False, ended: bool = False
    ) -> None:
        """See RedisLeases."""


class Holder(Protocol):
    """The session that holds a lease; see `Feed`. `claimed`: its client claims receipts up to here."""

    origin: Origin
    claimed: SequenceNumber

    @property
    def acknowledged(self) -> SequenceNumber:
        """Up to here the session's frames are durable."""

    @property
    def log(self) -> str:
        """The identity of its log: see `Intake.log_of`."""

    def fail(self, refusal: Refusal) -> None:
        """Ends the session."""


class Lease:
    """One session's lease of its stream. It lasts `length_s` from each acquisition or renewal.

    `durable`: up to here the stream was known to be durable when it was acquired. `early`: no session of this sender
    was confirmed before. `ended`: the stream has ended in the log. Times are those of `clock_s` when the command was
    sent to Redis.
    """

    def __init__(
        self,
        claim: Claim,
        holder: Holder,
        durable: SequenceNumber,
        *,
        early: bool,
        sent_s: float,
        length_s: float,
        clock_s: Callable[[], float],
    ) -> None:
        self.claim = claim
        self.holder = holder
        self.durable = durable
        self.early = early
        self.ended = False
        self._clock_s = clock_s
        self._length_s = length_s
        self._until_s = sent_s + length_s
        self._renewed = asyncio.Event()

    @property
    def in_doubt(self) -> bool:
        """Whether it may have expired, so that another session may have the stream."""
        return self._clock_s() >= self._until_s

    async def await_renewed(self) -> None:
        """Returns when it is not in doubt. Raises Refusal (UNAVAILABLE) after one lease time in doubt."""
        while self.in_doubt:
            self._renewed.clear()
            try:
                await asyncio.wait_for(self._renewed.wait(), self._length_s)
            except TimeoutError:
                raise unavailable(
                    f"stream {self.claim.stream!r}: this sender does not reach Redis, so it does not know whether"
                    " the stream is still this session's; connect again, or to another sender, and resend what"
                    " has no receipt"
                ) from None

    def renew(self, sent_s: float) -> None:
        """Extends it, by a renewal that was sent at `sent_s`."""
        self._until_s = sent_s + self._length_s
        self._renewed.set()

    def lose(self, why: str) -> Refusal:
        """Ends the session, as another one has the stream; returns the refusal that the holder gets."""
        refusal = aborted(
            f"stream {self.claim.stream!r} {why}; a stream is for one client at a time: give each a name of its own"
        )
        self.holder.fail(refusal)
        return refusal


def check_claim(granted: Granted, stream: str, claimed: SequenceNumber) -> None:
    """Raises Refusal (INVALID_ARGUMENT) for a client that claims receipts that no sender sent."""
    if granted.exact and claimed > granted.acknowledged:
        raise invalid(
            f"stream {stream!r}: Hello.acknowledged is {claimed}, more than was ever acknowledged,"
            f" {granted.acknowledged}; send 0 and continue after Welcome.acknowledged"
        )


def is_exact(granted: Granted, *, claimed: SequenceNumber, acknowledged: SequenceNumber) -> bool:
    """Whether a session's client holds no receipt above what is stored at its end; it got them up to `acknowledged`.

    False where an earlier session, known only by the client's claim, may have sent more. This says nothing about
    receipts that other clients hold; `Leases` judges those.
    """
    return granted.exact or claimed <= max(granted.acknowledged, acknowledged)


class Ownership:
    """The leases of one sender. `instance`: its name. `new_token` returns a text that no other session has.

    `log_is_new` returns whether nothing was ever appended to the application's topics; it may block for seconds, and
    raises LogError. Each session appends OPEN records there: if the log is new, no session was ever opened, and a Redis
    that has just started cannot have forgotten one.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        instance: str,
        lease_s: float,
        new_token: Callable[[], str],
        log_is_new: Callable[[], bool],
        logger: BoundLogger,
    ) -> None:
        self._leases = leases
        self._instance = instance
        self._lease_s = lease_s
        self._new_token = new_token
        self._log_is_new = log_is_new
        self._checked_epoch = ""
        self._checking = asyncio.Lock()
        self._skips_settling = False
        self._has_confirmed = False
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, Lease] = {}
        self._redis_fault: str | None = None
        self._calls = asyncio.Semaphore(_CALLS_MAX)
        self._releases: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def hold(self, holder: Holder, *, client: str, peer: str) -> AsyncIterator[Lease]:
        """Holds the lease of the holder's stream, from entering to leaving. Raises Refusal if it is not granted.

        Blocks at most a lease time when Redis has restarted and the log is not new, else as long as Redis and Kafka
        take to answer.
        """
        claim = Claim(
            stream=holder.origin,
            token=self._new_token(),
            client=client,
            instance=self._instance,
            peer=peer,
            log=holder.log,
        )
        exact = ended = False
        try:
            granted, lease = await self._acquire(claim, holder)
            exact = granted.exact
            check_claim(granted, claim.stream, holder.claimed)
            try:
                yield lease
            finally:
                exact = is_exact(granted, claimed=holder.claimed, acknowledged=holder.acknowledged)
                ended = lease.ended
        finally:
            if (held := self._held.get(claim.stream)) is not None and held.claim is claim:
                del self._held[claim.stream]
            # Even if it was not granted: the answer may have been lost. Redis knows which session has the stream.
            release = self._loop.create_task(
                self._release(claim, holder.acknowledged, exact=exact, ended=ended)
            )
            self._releases.add(release)
            release.add_done_callback(self._releases.discard)
            # A client that is told of the session's end can then acquire the stream at once.
            await asyncio.wait((release,), timeout=_RELEASE_WAIT_S)

    async def confirm(self, lease: Lease, opened: Callable[[], Awaitable[None]]) -> None:
        """Returns when no sender can grant the stream to another client because this session's OPEN was not in the log.

        `opened` returns when the OPEN records are durable. From then on no sender finds a new log; one that found it
        new before has granted the stream by now, or will find this lease. Only leases acquired before any session of
        this sender was confirmed need this. Raises Refusal.
        """
        if not lease.early:
            return
        await opened()
        renewed = [(lease.claim, lease.holder.acknowledged)]
        sent_s, (ours,) = await self._ask(lease.claim, partial(self._leases.renew, renewed))
        if not ours:
            raise lease.lose("is another session's, at this sender or another")
        lease.renew(sent_s)
        self._has_confirmed = True

    async def run(self) -> None:
        """Renews the leases until it is cancelled."""
        warned = False
        while True:
            await self._renew()
            waiting = sum(lease.in_doubt for lease in self._held.values())
            if waiting and not warned:
                self._logger.warning("sessions wait: their leases may have expired", sessions=waiting)
            warned = waiting > 0
            await asyncio.sleep(_RETRY_S if self._redis_fault else self._lease_s / _RENEWALS_PER_LEASE)

    async def await_released(self, timeout_s: float) -> None:
        """Returns when all leases are released, or after `timeout_s`: the others expire by themselves."""
        if self._releases:
            await asyncio.wait(self._releases, timeout=timeout_s)

    async def _acquire(self, claim: Claim, holder: Holder) -> tuple[Granted, Lease]:
        while True:
            early = not self._has_confirmed
            sent_s, answer = await self._ask(claim, partial(self._leases.acquire, claim))
            if isinstance(answer, Held):
                raise _held_by_another(claim, answer)
            if not isinstance(answer, Settling):
                break
            if not await self._may_skip_settling(answer.epoch):
                await asyncio.sleep(min(answer.left_s, self._lease_s))
        durable = answer.acknowledged
        if (older := self._held.get(claim.stream)) is not None:
            if older.claim.log == claim.log:
                durable = max(durable, older.holder.acknowledged)  # newer than the last renewal
            older.lose(f"is fed from {claim.peer} now")
        lease = Lease(
            claim,
            holder,
            durable,
            early=early,
            sent_s=sent_s,
            length_s=self._lease_s,
            clock_s=self._loop.time,
        )
        self._held[claim.stream] = lease
        return answer, lease

    async def _ask(self, claim: Claim, call: Callable[[], _Result]) -> tuple[float, _Result]:
        """Makes a call for a claim, when fewer than `_CALLS_MAX` run; its start and its answer. Raises Refusal."""
        async with self._calls:
            if self._redis_fault is not None:
                raise _owner_unknown(claim, self._redis_fault)
            sent_s = self._loop.time()
            try:
                return sent_s, await self._in_thread(call)
            except StoreError as error:
                raise _owner_unknown(claim, str(error)) from None

    async def _may_skip_settling(self, epoch: str) -> bool:
        """Whether the settling time was ended: no session was opened before Redis started. Checked once an epoch."""
        async with self._checking:
            if epoch != self._checked_epoch:
                self._skips_settling = False
                with contextlib.suppress(LogError, StoreError):  # then it settles
                    if await self._in_thread(self._log_is_new):
                        await self._in_thread(partial(self._leases.skip_settling, epoch))
                        self._skips_settling = True
                self._checked_epoch = epoch
            return self._skips_settling

    async def _renew(self) -> None:
        held = list(self._held.values())
        claims = [(lease.claim, lease.holder.acknowledged) for lease in held]
        sent_s = self._loop.time()
        try:
            answers = await self._in_thread(partial(self._renew_in_redis, claims))
        except StoreError as error:
            if self._redis_fault is None:
                self._logger.warning(
                    "leases cannot be renewed: sessions go on until their leases expire, no new ones are opened",
                    lease_s=self._lease_s,
                    reason=str(error),
                )
            self._redis_fault = str(error)
            return
        if self._redis_fault is not None:
            self._logger.info("leases are renewed again")
            self._redis_fault = None
        for lease, ours in zip(held, answers, strict=True):
            if ours:
                lease.renew(sent_s)
            elif self._held.get(lease.claim.stream) is lease:
                lease.lose("is another session's now, at this sender or another")

    def _renew_in_redis(self, claims: Sequence[tuple[Claim, SequenceNumber]]) -> list[bool]:
        """In a thread."""
        self._leases.notice_restart()
        return self._leases.renew(claims)

    async def _release(self, claim: Claim, acknowledged: SequenceNumber, *, exact: bool, ended: bool) -> None:
        async with self._calls:
            if self._redis_fault is None:
                release = partial(self._leases.release, claim, acknowledged, exact=exact, ended=ended)
                with contextlib.suppress(StoreError):  # it expires by itself
                    await self._in_thread(release)

    async def _in_thread(self, call: Callable[[], _Result]) -> _Result:
        """The result of a call that may block, made in a daemon thread: the end of the process does not wait for it."""
        done: asyncio.Future[_Result] = self._loop.create_future()
        threading.Thread(target=self._run_call, args=(call, done), name="lease", daemon=True).start()
        try:
            return await asyncio.shield(done)
        finally:
            # A cancelled caller waits for the call, too, so that the calls of one session keep their order.
            if not done.done():
                await asyncio.wait((done,))

    def _run_call(self, call: Callable[[], _Result], done: "asyncio.Future[_Result]") -> None:
        """In a thread."""
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - whatever it raises is raised where it is awaited
            resolve = partial(_set_exception, done, error)
        else:
            resolve = partial(_set_result, done, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and its tasks with it
            self._loop.call_soon_threadsafe(resolve)


def _set_result(done: "asyncio.Future[_Result]", result: _Result) -> None:
    if not done.cancelled():
        done.set_result(result)


def _set_exception(done: "asyncio.Future[_Result]", error: Exception) -> None:
    if not done.cancelled():
        done.set_exception(error)


def _owner_unknown(claim: Claim, reason: str) -> Refusal:
    return unavailable(
        f"stream {claim.stream!r}: it is unknown now whether another client feeds it: {reason}; connect"
        " again in a while"
    )


def _held_by_another(claim: Claim, held: Held) -> Refusal:
    since = datetime.fromtimestamp(held.since_s, UTC).isoformat(timespec="seconds")
    return Refusal(
        Code.ALREADY_EXISTS,
        f"stream {claim.stream!r} is fed by another client, {held.peer} at sender {held.instance!r} since {since};"
        f" end that client, or choose another name. If it is dead, its lease runs out in {held.left_s:.1f} s",
        {LEASE_METADATA: str(round(held.left_s * 1000))},
    )
