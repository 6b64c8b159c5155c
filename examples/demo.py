"""The demo: Market Spread end to end on this machine, checked against a plain loop.

    make demo                                    compiled, then plain Python: 1 M messages each
    make demo ARGS="--messages 200000 --only python"

Starts a real Kafka broker, a real Redis, and sender, processor (Spark) and receiver as processes; feeds them through
gRPC; compares every rejected order with the oracle's; stops everything and leaves nothing behind.
"""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bettong import metrics
from bettong.cli.exit_codes import INTERRUPTED, TERMINATED
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import BettongError
from bettong.local.interrupts import Terminated, terminable
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, Round, rounds
from examples.market_spread_oracle import Results, by_symbol, rejected

APPLICATION = Path(__file__).with_name("market_spread.py")
_RESULTS_S_MAX = 300.0
_POLL_S = 0.25


class Execution(StrEnum):
    """How the user's functions run."""

    COMPILED = "compiled"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the demo measured."""

    execution: Execution
    start_s: float
    messages: int
    seconds: float
    rejected: int
    right: bool
    dead_letters: int
    latency_ms: tuple[str, str, str]


def main(
    messages: Annotated[int, typer.Option(help="Generated orders and quotes.", min=1000)] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Of the generated load; the same seed gives the same load.")] = 1,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 16,
    only: Annotated[Execution | None, typer.Option(help="Run one way instead of both.")] = None,
) -> None:
    """Market Spread from gRPC through Kafka and Spark to files, checked. Exits 1 when a result is wrong."""
    console = Console()
    load = list(rounds(messages, seed=seed))
    executions = [only] if only else list(Execution)
    with terminable(), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rejected, load)
        try:
            outcomes = [
                run(execution, load, answer, partitions=partitions, console=console)
                for execution in executions
            ]
        except BettongError as error:
            console.print(f"[red]bettong: error:[/red] {error}", highlight=False)
            raise typer.Exit(error.exit_code) from None
        except (KeyboardInterrupt, Terminated) as end:
            console.print("stopped")
            raise typer.Exit(TERMINATED if isinstance(end, Terminated) else INTERRUPTED) from None
    console.print(table(outcomes, sum(map(len, answer.result().values()))))
    raise typer.Exit(0 if all(outcome.right for outcome in outcomes) else 1)


def run(
    execution: Execution,
    load: list[Round],
    answer: Future[Results],
    *,
    partitions: int,
    console: Console,
) -> Outcome:
    """Starts the suite, feeds it, waits for all results, compares them, and stops it."""
    messages = sum(each.messages for each in load)
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
            Suite(options, say=console.print) as suite,
            RedisStore(suite.record.redis_connection, suite.record.name) as store,
        ):
            ready_s = time.monotonic() - started
            console.print(f"{execution}: {_up(suite.record, ready_s)}")
            watch = Watch(LiveMetrics(store))
            with progress(console) as bars, MarketSpreadClient(suite.record.sender) as client:
                sending = bars.add_task("sent", total=messages, detail="")
                folding = bars.add_task("processed", total=messages, detail="")
                initial = client.initial_quotes(INITIAL_QUOTES)
                _await_initial(watch, initial, suite)
                begun = time.monotonic()
                for each in load:
                    client.rounds([each])
                    bars.update(sending, advance=each.messages)
                    bars.update(folding, completed=watch.folded() - initial, detail=watch.line())
                while not watch.complete(messages + initial):
                    watch.check_due(time.monotonic() - begun)
                    suite.wait(_POLL_S)
                    bars.update(folding, completed=watch.folded() - initial, detail=watch.line())
                seconds = time.monotonic() - begun
            latency_ms = watch.latency_ms()
            dead_letters = watch.dead_letters()
        found = by_symbol(
            b"".join(path.read_bytes() for path in sorted((results / "rejected").glob("*.bin")))
        )
    expected = answer.result()
    return Outcome(
        execution,
        ready_s,
        messages,
        seconds,
        sum(map(len, found.values())),
        found == expected,
        dead_letters,
        latency_ms,
    )


def _up(record: SuiteRecord, ready_s: float) -> str:
    """That it is up, and where it can be seen."""
    seen = f"; see it run at {record.console}" if record.console is not None else ""
    return f"Kafka, Redis, sender, processor and receiver are up after {ready_s:.1f} s{seen}"


def _await_initial(watch: "Watch", initial: int, suite: Suite) -> None:
    """Waits until the initial quotes are folded."""
    deadline = time.monotonic() + _RESULTS_S_MAX
    while watch.folded() < initial:
        if time.monotonic() > deadline:
            raise BettongError(
                f"{watch.folded():,} of {initial:,} initial quotes are folded after {_RESULTS_S_MAX:.0f} s:"
                f" see {suite.record.directory / 'logs'}"
            )
        suite.wait(_POLL_S)


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

    def check_due(self, waited_s: float) -> None:
        """Raises BettongError when that is too long to wait for results."""
        if waited_s > _RESULTS_S_MAX:
            raise BettongError(f"not all results came within {_RESULTS_S_MAX:.0f} s: {self.line()}")

    def dead_letters(self) -> int:
        """Messages that could not be processed."""
        return self._sum(metrics.DEAD_LETTERS)

    def latency_ms(self) -> tuple[str, str, str]:
        """Client to receiver: p50, p99, slowest."""
        receiver = self._metrics.live().get("receiver", {})
        return (
            receiver.get(metrics.LATENCY_P50.name, "-"),
            receiver.get(metrics.LATENCY_P99.name, "-"),
            receiver.get(metrics.LATENCY_MAX.name, "-"),
        )

    def line(self) -> str:
        """The counts in words."""
        return f"{self._sum(metrics.RESULTS):,} rejected, {self._delivered():,} delivered"

    def _delivered(self) -> int:
        return int(self._metrics.live().get("receiver", {}).get(metrics.MESSAGES.name, 0))

    def _sum(self, metric: metrics.Metric) -> int:
        return sum(int(record.get(metric.name, 0)) for record in self._metrics.partitions().values())


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """Two bars with counts beside them."""
    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=console) as bars:
        yield bars


def table(outcomes: list[Outcome], expected: int) -> Table:
    """What was measured."""
    shown = Table(title="Market Spread, end to end")
    for heading in ("", *(outcome.execution.value for outcome in outcomes)):
        shown.add_column(heading, justify="right" if heading else "left")
    rows = {
        "messages": [f"{outcome.messages:,}" for outcome in outcomes],
        "seconds": [f"{outcome.seconds:.1f}" for outcome in outcomes],
        "messages/s": [f"{outcome.messages / outcome.seconds:,.0f}" for outcome in outcomes],
        "rejected orders": [f"{outcome.rejected:,} (oracle {expected:,})" for outcome in outcomes],
        "equal to the oracle": ["yes" if outcome.right else "NO" for outcome in outcomes],
        "dead letters": [f"{outcome.dead_letters:,}" for outcome in outcomes],
        "latency p50 / p99 / max, ms": [" / ".join(outcome.latency_ms) for outcome in outcomes],
        "start-up, s": [f"{outcome.start_s:.1f}" for outcome in outcomes],
    }
    for name, values in rows.items():
        shown.add_row(name, *values)
    return shown


if __name__ == "__main__":
    typer.run(main)
