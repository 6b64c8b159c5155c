"""The demo: Market Spread end to end on this machine, checked against a plain loop.

    make demo                                    compiled, then plain Python
    make demo ARGS="--only python --rate 10000"
    make demo ARGS="--stay"                      goes on until Ctrl-C, for a look at the console

Starts a real Kafka broker, a real Redis, and sender, processor (Spark) and receiver as processes; feeds them through
gRPC at a rate that they hold, then as fast as it goes, then at that rate while a worker is killed; compares every
rejected order with the oracle's; stops everything and leaves nothing behind. One order is broken: a dead letter.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bettong import metrics
from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.cli.exit_codes import INTERRUPTED, TERMINATED
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import BettongError
from bettong.local.interrupts import Terminated, terminable
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.metric_series import Metric
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, Round, rounds
from examples.market_spread_oracle import Results, by_symbol, rejected

APPLICATION = Path(__file__).with_name("market_spread") / "risk_check.py"
STEADY_S, KILL_S = 5, 4
_KILL_AT = 0.25  # of the last phase
_ROUNDS_PER_S = 20  # of a steady rate: each has a frame of quotes and one of orders
_BROKEN_ORDERS = 1
_RESULTS_S_MAX = 300.0
_POLL_S = 0.25
_CAPTION = (
    "At the steady rate: from the client's clock to the delivered result. A burst is over within seconds, of which"
    " the functions take little: that compiled ones are up to four times as fast shows in docs/performance.md."
)


class Execution(StrEnum):
    """How the user's functions run."""

    COMPILED = "compiled"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Load:
    """What is fed, phase by phase. `rate`: messages a second, in the first and the last one."""

    steady: list[Round]
    burst: list[Round]
    kill: list[Round]
    rate: int

    @property
    def rounds(self) -> list[Round]:
        """All of it."""
        return [*self.steady, *self.burst, *self.kill]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the demo measured."""

    execution: Execution
    start_s: float
    messages: int
    steady_rate: float
    latency_ms: tuple[str, str]
    burst_rate: float
    recovery_s: float
    rejected: int
    right: bool
    dead_letters: int


def main(
    messages: Annotated[
        int, typer.Option(help="Orders and quotes as fast as it goes.", min=1000)
    ] = 1_000_000,
    rate: Annotated[int, typer.Option(help="Messages a second at the steady rate.", min=100)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the generated load; the same seed gives the same load.")] = 1,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 16,
    only: Annotated[Execution | None, typer.Option(help="Run one way instead of both.")] = None,
    *,
    stay: Annotated[
        bool, typer.Option("--stay", help="Run one way (compiled unless --only), then go on until Ctrl-C.")
    ] = False,
) -> None:
    """Market Spread from gRPC through Kafka and Spark to files, checked. Exits 1 when a result is wrong."""
    console = Console(highlight=False)
    load = loads(messages, rate=rate, seed=seed)
    executions = [only] if only else list(Execution)[: 1 if stay else None]
    outcomes: list[Outcome] = []
    with terminable(), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rejected, load.rounds)

        def report(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(executions):
                console.print(table(outcomes, sum(map(len, answer.result().values()))))

        try:
            for execution in executions:
                run(execution, load, answer, partitions, console, report=report, stay=stay)
        except BettongError as error:
            console.print(f"[red]bettong: error:[/red] {error}")
            raise typer.Exit(error.exit_code) from None
        except (KeyboardInterrupt, Terminated) as end:
            console.print("stopped")
            raise typer.Exit(TERMINATED if isinstance(end, Terminated) else INTERRUPTED) from None
    raise typer.Exit(0 if all(outcome.right for outcome in outcomes) else 1)


def loads(messages: int, *, rate: int, seed: int) -> Load:
    """The phases, of seeds of their own."""
    size = rate // _ROUNDS_PER_S
    return Load(
        list(rounds(rate * STEADY_S, seed=seed, round_messages=size)),
        list(rounds(messages, seed=seed + 1)),
        list(rounds(rate * KILL_S, seed=seed + 2, round_messages=size)),
        rate,
    )


def run(
    execution: Execution,
    load: Load,
    answer: Future[Results],
    partitions: int,
    console: Console,
    *,
    report: Callable[[Outcome], None],
    stay: bool,
) -> None:
    """Starts the suite, feeds it, waits for all results, compares and reports them, and stops it."""
    with tempfile.TemporaryDirectory(prefix="bettong-demo-") as folder:
        results = Path(folder) / "results"
        options = SuiteOptions(
            application=str(APPLICATION),
            partitions=partitions,
            compiled=execution is Execution.COMPILED,
            results=results,
            console=True,
        )
        started = time.monotonic()
        with (
            Suite(options, say=lambda line: console.print(f"  {line}")) as suite,
            RedisStore(suite.record.redis_connection, suite.record.name) as store,
        ):
            start_s = time.monotonic() - started
            console.print(f"[bold]{execution}[/bold]: {_up(suite.record, start_s)}")
            with MarketSpreadClient(suite.record.sender) as client:
                feed = Feed(suite, client, Watch(LiveMetrics(store)), console)
                measured = feed.phases(load)
                found = by_symbol(
                    b"".join(path.read_bytes() for path in sorted((results / "rejected").glob("*.bin")))
                )
                expected = answer.result()
                count_found, dead_letters = sum(map(len, found.values())), feed.watch.dead_letters()
                report(
                    Outcome(
                        execution,
                        start_s,
                        sum(each.messages for each in load.rounds),
                        *measured,
                        rejected=count_found,
                        right=found == expected and dead_letters == _BROKEN_ORDERS,
                        dead_letters=dead_letters,
                    )
                )
                if stay:
                    feed.stay(load.rate)


class Feed:
    """Feeds a suite phase by phase, and shows how it goes."""

    def __init__(self, suite: Suite, client: MarketSpreadClient, watch: "Watch", console: Console) -> None:
        self.watch = watch
        self._suite, self._client, self._console = suite, client, console
        self._sent = 0

    def phases(self, load: Load) -> tuple[float, tuple[str, str], float, float]:
        """All of the load, until every result is delivered.

        The steady rate and its latency, the rate of the burst, and what the killed worker's messages waited, s.
        """
        self._sent = self._client.initial_quotes(INITIAL_QUOTES)
        for _ in range(_BROKEN_ORDERS):
            self._client.broken_order()
        with progress(self._console) as bars:
            self._settle("initial quotes", bars)
            steady = f"{load.rate:,}/s for {STEADY_S} s"
            steady_rate = self._paced(load.steady, load.rate, steady, bars)
            self._settle(steady, bars)
            latency_ms = self.watch.latency_ms()
            begun = time.monotonic()
            burst = "as fast as it goes"
            self._paced(load.burst, None, burst, bars)
            self._settle(burst, bars)
            burst_rate = sum(each.messages for each in load.burst) / (time.monotonic() - begun)
            recovery_s = self._killing(load, bars)
        return steady_rate, latency_ms, burst_rate, recovery_s

    def stay(self, rate: int) -> None:
        """Feeds at that rate until somebody ends it."""
        seen = self._suite.record.console
        self._console.print(f"going on at {rate:,} messages/s until Ctrl-C; see it run at {seen}")
        with progress(self._console) as bars:
            for seed in count(100):
                again = list(rounds(rate * 60, seed=seed, round_messages=rate // _ROUNDS_PER_S))
                self._paced(again, rate, f"minute {seed - 99}", bars)

    def _killing(self, load: Load, bars: Progress) -> float:
        border = int(len(load.kill) * _KILL_AT)
        name = f"{load.rate:,}/s, a worker dies"
        task = bars.add_task(name, total=sum(each.messages for each in load.kill), detail="")
        killed = recovered = due = 0.0
        for number, sent in enumerate(self._sending(load.kill, load.rate)):
            if number == border:
                victim = processes(OtherProcess.WORKER.value, self._suite.record.services)[0]
                victim.kill()
                killed, due = time.monotonic(), self._sent
                self._console.print(f"  killed process {victim.pid}, one of the workers that hold the states")
            elif killed and not recovered and self.watch.folded() >= due:
                recovered = time.monotonic()
            bars.update(task, advance=sent, detail=self.watch.line())
        self._settle(name, bars)
        return (recovered or time.monotonic()) - killed

    def _paced(self, load: Sequence[Round], rate: int | None, name: str, bars: Progress) -> float:
        """Sends, at that rate or as fast as it goes; returns the rate that it had."""
        total, begun = sum(each.messages for each in load), time.monotonic()
        task = bars.add_task(name, total=total, detail="")
        for sent in self._sending(load, rate):
            bars.update(task, advance=sent, detail=self.watch.line())
        return total / max(time.monotonic() - begun, 1e-9)

    def _sending(self, load: Sequence[Round], rate: int | None) -> Iterator[int]:
        """Sends round by round; how many messages each has, when it is durable."""
        begun, sent = time.monotonic(), 0
        for each in load:
            if rate is not None:
                self._suite.wait(max(0.0, begun + sent / rate - time.monotonic()))
            self._client.rounds([each])
            sent += each.messages
            self._sent += each.messages
            yield each.messages

    def _settle(self, name: str, bars: Progress) -> None:
        """Waits until all that was sent is folded, and every result delivered."""
        deadline = time.monotonic() + _RESULTS_S_MAX
        task = bars.add_task(f"{name}: results", total=None, detail="")
        while not self.watch.complete(self._sent):
            if time.monotonic() > deadline:
                raise BettongError(
                    f"{self.watch.folded():,} of {self._sent:,} messages are folded, {self.watch.line()} after"
                    f" {_RESULTS_S_MAX:.0f} s: see {self._suite.record.directory / 'logs'}"
                )
            self._suite.wait(_POLL_S)
            bars.update(task, detail=self.watch.line())
        bars.remove_task(task)


def _up(record: SuiteRecord, start_s: float) -> str:
    """That it is up, and where it can be seen."""
    seen = f"; see it run at {record.console}" if record.console is not None else ""
    return f"everything is up after {start_s:.1f} s{seen}"


class Watch:
    """Reads the live metrics that `bettong status` shows."""

    def __init__(self, metric_values: LiveMetrics) -> None:
        self._metrics = metric_values

    def folded(self) -> int:
        """Messages that the processor has folded."""
        return self._sum(metrics.MESSAGES)

    def complete(self, messages: int) -> bool:
        """Whether everything is folded and every result delivered."""
        return self.folded() >= messages and self._delivered() >= self._sum(metrics.RESULTS)

    def dead_letters(self) -> int:
        """Messages that could not be processed."""
        return self._sum(metrics.DEAD_LETTERS)

    def latency_ms(self) -> tuple[str, str]:
        """Client to receiver, of late: p50, p99."""
        receiver = self._metrics.live().get("receiver", {})
        found = (receiver.get(metric.name) for metric in (metrics.LATENCY_P50, metrics.LATENCY_P99))
        p50, p99 = ("-" if value is None else f"{float(value):.1f}" for value in found)
        return p50, p99

    def line(self) -> str:
        """How it goes, in words."""
        p50, p99 = self.latency_ms()
        return f"{self._delivered():,} rejected, p50 {p50}, p99 {p99} ms"

    def _delivered(self) -> int:
        return int(self._metrics.live().get("receiver", {}).get(metrics.MESSAGES.name, 0))

    def _sum(self, metric: Metric) -> int:
        return sum(int(record.get(metric.name, 0)) for record in self._metrics.partitions().values())


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """A bar a phase, with counts and latency beside it, 80 columns wide."""
    columns = (
        TextColumn("{task.description:<22.22}"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=console) as bars:
        yield bars


def table(outcomes: list[Outcome], expected: int) -> Table:
    """What was measured."""
    shown = Table(title="Market Spread, end to end", caption=_CAPTION, caption_justify="left", width=78)
    for heading in ("", *(outcome.execution.value for outcome in outcomes)):
        shown.add_column(heading, justify="right" if heading else "left")
    rows = {
        "messages": [f"{outcome.messages:,}" for outcome in outcomes],
        "steady rate, messages/s": [f"{outcome.steady_rate:,.0f}" for outcome in outcomes],
        "  latency p50 / p99, ms": [" / ".join(outcome.latency_ms) for outcome in outcomes],
        "burst, messages/s": [f"{outcome.burst_rate:,.0f}" for outcome in outcomes],
        "a worker killed: went on after, s": [f"{outcome.recovery_s:.1f}" for outcome in outcomes],
        "rejected orders": [f"{outcome.rejected:,} (oracle {expected:,})" for outcome in outcomes],
        "equal to the oracle": ["yes" if outcome.right else "NO" for outcome in outcomes],
        f"dead letters ({_BROKEN_ORDERS} order is broken)": [
            f"{outcome.dead_letters:,}" for outcome in outcomes
        ],
        "start-up, s": [f"{outcome.start_s:.1f}" for outcome in outcomes],
    }
    for name, values in rows.items():
        shown.add_row(name, *values)
    return shown


if __name__ == "__main__":
    typer.run(main)
