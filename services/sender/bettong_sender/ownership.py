"""Which session feeds a stream: the leases that this sender holds, renewed while their sessions last.

    acquired   before a session opens; another client's stream is refused with ALREADY_EXISTS, and a client that says it
               holds receipts for more than was ever acknowledged with INVALID_ARGUMENT
    confirmed  before the first sessions of a sender are welcomed (see `Ownership.confirm`)
    renewed    three times a lease, all together
    in doubt   when it could have run out, because Redis did not answer for so long: the session takes no frames,
               and goes on as soon as the lease is renewed
    lost       another session has the stream: ABORTED

Used on the event loop; whatever waits for Redis does so in threads of its own. Knows nothing of gRPC.
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

# Calls to Redis at a time; one takes a fraction of a millisecond, or 15 s when nobody answers.
_CALLS_MAX = 8
# A session's end waits this long for its stream to be given back.
_RELEASE_WAIT_S = 1.0
# While Redis is away, between two calls that fail at once.
_RETRY_S = 0.2

_Result = TypeVar("_Result")


class Leases(Protocol):
    """What is needed of `RedisLeases`; each call may block for seconds and raises StoreError."""

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
    """The session that a lease is for; see `Feed`. `claimed`: up to where its client says that it holds receipts."""

    origin: Origin
    claimed: SequenceNumber

    @property
    def acknowledged(self) -> SequenceNumber:
        """Up to here its frames are durable."""

    @property
    def log(self) -> str:
        """Which log that is."""

    def fail(self, refusal: Refusal) -> None:
        """Ends it."""


class Lease:
    """One session's hold on its stream, of `length_s` each time that it is acquired or renewed.

    `durable`: what was known of the stream when it was acquired. `early`: the log may have been empty then. `ended`:
    the stream has ended in the log. Times are those of `clock_s`, when the command for Redis was sent.
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
        """Whether it could have run out, so that another session could have the stream."""
        return self._clock_s() >= self._until_s

    async def certain(self) -> None:
        """Returns when it is not in doubt. Raises Refusal (UNAVAILABLE) when it is for one lease time."""
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
        """It lasts longer."""
        self._until_s = sent_s + self._length_s
        self._renewed.set()

    def lose(self, why: str) -> Refusal:
        """The stream is another session's. The refusal that the holder gets."""
        refusal = aborted(
            f"stream {self.claim.stream!r} {why}; a stream is for one client at a time: give each a name of its own"
        )
        self.holder.fail(refusal)
        return refusal


def check_claim(granted: Granted, stream: str, claimed: SequenceNumber) -> None:
    """Raises Refusal (INVALID_ARGUMENT) for a client that claims receipts which nobody gave."""
    if granted.exact and claimed > granted.acknowledged:
        raise invalid(
            f"stream {stream!r}: Hello.acknowledged is {claimed}, more than was ever acknowledged,"
            f" {granted.acknowledged}; say 0 and go on behind Welcome.acknowledged"
        )


def is_exact(granted: Granted, *, claimed: SequenceNumber, acknowledged: SequenceNumber) -> bool:
    """Whether a session's client has no receipt above what is stored at its end; it gave them up to `acknowledged`.

    Else a session of which only the client's claim is known, `claimed`, may have given more. This says nothing about
    receipts that other clients hold; `Leases` judges those.
    """
    return granted.exact or claimed <= max(granted.acknowledged, acknowledged)


class Ownership:
    """The leases of one sender. `instance` is its name, `new_token` draws a random text that nobody else has.

    `log_is_new` says whether nothing was ever appended to the topics of the application; it may block for seconds, and
    raises LogError. Every session leaves its opening there, so in a new log none was opened, and a Redis that has just
    started can have forgotten none.
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
        self._asked = ""
        self._asking = asyncio.Lock()
        self._skips_settling = False
        self._in_use = False
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, Lease] = {}
        self._absence: str | None = None
        self._calls = asyncio.Semaphore(_CALLS_MAX)
        self._releases: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def hold(self, holder: Holder, *, client: str, peer: str) -> AsyncIterator[Lease]:
        """The lease of the holder's stream, from entering to leaving. Raises Refusal when there is none to be had.

        Blocks for a lease time at most when Redis has started anew and the log is not new, else as long as Redis and
        Kafka take to answer.
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
            # Also when it was not granted: perhaps its answer was lost. Redis knows whose the stream is.
            release = self._loop.create_task(
                self._release(claim, holder.acknowledged, exact=exact, ended=ended)
            )
            self._releases.add(release)
            release.add_done_callback(self._releases.discard)
            # So that who learns that the session has ended can have the stream.
            await asyncio.wait((release,), timeout=_RELEASE_WAIT_S)

    async def confirm(self, lease: Lease, opened: Callable[[], Awaitable[None]]) -> None:
        """Returns when nobody else can have been given the stream because its opening was not in the log yet.

        `opened` returns when that is durable. From then on no sender finds a new log, and who found one before has
        given the stream to another by now, or will find this lease. Nothing is asked once a session of this sender has
        gone through it. Raises Refusal.
        """
        if not lease.early:
            return
        await opened()
        sent_s = self._loop.time()
        try:
            (ours,) = await self._ask(partial(self._leases.renew, [(lease.claim, lease.holder.acknowledged)]))
        except StoreError as error:
            raise _unknown(lease.claim, str(error)) from None
        if not ours:
            raise lease.lose("is another session's, at this sender or another")
        lease.renew(sent_s)
        self._in_use = True

    async def run(self) -> None:
        """Renews until it is cancelled."""
        warned = False
        while True:
            await self._renew()
            waiting = sum(lease.in_doubt for lease in self._held.values())
            if waiting and not warned:
                self._logger.warning("sessions wait: their leases may have expired", sessions=waiting)
            warned = waiting > 0
            await asyncio.sleep(_RETRY_S if self._absence else self._lease_s / _RENEWALS_PER_LEASE)

    async def await_released(self, timeout_s: float) -> None:
        """Returns when everything is released, or after `timeout_s`: then the leases run out by themselves."""
        if self._releases:
            await asyncio.wait(self._releases, timeout=timeout_s)

    async def _acquire(self, claim: Claim, holder: Holder) -> tuple[Granted, Lease]:
        while True:
            early = not self._in_use
            async with self._calls:
                if self._absence is not None:
                    raise _unknown(claim, self._absence)
                sent_s = self._loop.time()
                try:
                    answer = await self._ask(partial(self._leases.acquire, claim))
                except StoreError as error:
                    raise _unknown(claim, str(error)) from None
            if isinstance(answer, Held):
                raise _held(claim, answer)
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

    async def _may_skip_settling(self, epoch: str) -> bool:
        """Whether Redis has recorded that no session can have opened before it started; asked once an epoch."""
        async with self._asking:
            if epoch != self._asked:
                self._skips_settling = False
                with contextlib.suppress(LogError, StoreError):  # then it settles
                    if await self._ask(self._log_is_new):
                        await self._ask(partial(self._leases.skip_settling, epoch))
                        self._skips_settling = True
                self._asked = epoch
            return self._skips_settling

    async def _renew(self) -> None:
        held = list(self._held.values())
        claims = [(lease.claim, lease.holder.acknowledged) for lease in held]
        sent_s = self._loop.time()
        try:
            answers = await self._ask(partial(self._renewed, claims))
        except StoreError as error:
            if self._absence is None:
                self._logger.warning(
                    "leases cannot be renewed: sessions go on until their leases expire, no new ones are opened",
                    lease_s=self._lease_s,
                    reason=str(error),
                )
            self._absence = str(error)
            return
        if self._absence is not None:
            self._logger.info("leases are renewed again")
            self._absence = None
        for lease, ours in zip(held, answers, strict=True):
            if ours:
                lease.renew(sent_s)
            elif self._held.get(lease.claim.stream) is lease:
                lease.lose("is another session's now, at this sender or another")

    def _renewed(self, claims: Sequence[tuple[Claim, SequenceNumber]]) -> list[bool]:
        """In a thread."""
        self._leases.notice_restart()
        return self._leases.renew(claims)

    async def _release(self, claim: Claim, acknowledged: SequenceNumber, *, exact: bool, ended: bool) -> None:
        async with self._calls:
            if self._absence is None:
                release = partial(self._leases.release, claim, acknowledged, exact=exact, ended=ended)
                with contextlib.suppress(StoreError):  # it runs out by itself
                    await self._ask(release)

    async def _ask(self, call: Callable[[], _Result]) -> _Result:
        """The result of a call that may block, from a thread that nobody waits for at the end of the process."""
        done: asyncio.Future[_Result] = self._loop.create_future()
        threading.Thread(target=self._call, args=(call, done), name="lease", daemon=True).start()
        try:
            return await asyncio.shield(done)
        finally:
            # A caller that is cancelled sees the call through, so that the calls of one session keep their order.
            if not done.done():
                await asyncio.wait((done,))

    def _call(self, call: Callable[[], _Result], done: "asyncio.Future[_Result]") -> None:
        """In a thread."""
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - whatever it raises is raised where it is awaited
            settle = partial(_set_exception, done, error)
        else:
            settle = partial(_set_result, done, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it who waited
            self._loop.call_soon_threadsafe(settle)


def _set_result(done: "asyncio.Future[_Result]", result: _Result) -> None:
    if not done.cancelled():
        done.set_result(result)


def _set_exception(done: "asyncio.Future[_Result]", error: Exception) -> None:
    if not done.cancelled():
        done.set_exception(error)


def _unknown(claim: Claim, reason: str) -> Refusal:
    return unavailable(
        f"stream {claim.stream!r}: it is unknown now whether another client feeds it: {reason}; connect"
        " again in a while"
    )


def _held(claim: Claim, held: Held) -> Refusal:
    since = datetime.fromtimestamp(held.since_s, UTC).isoformat(timespec="seconds")
    return Refusal(
        Code.ALREADY_EXISTS,
        f"stream {claim.stream!r} is fed by another client, {held.peer} at sender {held.instance!r} since {since};"
        f" end that client, or choose another name. If it is dead, its lease runs out in {held.left_s:.1f} s",
        {LEASE_METADATA: str(round(held.left_s * 1000))},
    )
