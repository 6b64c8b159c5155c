"""Who is compared: each peer's processes, what it was configured to guarantee, and where its packages are.

A peer is a folder here with a program a workload, and unless it runs in the tree's own environment with
`requirements.in` and `requirements.lock`.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.footprint import bytes_below
from benchmarks.peers.race import RaceError, Running, Trial
from benchmarks.peers.workloads import MARKET_SPREAD, NEXMARK, WORD_COUNT, WORKLOADS, PeerWorkload
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command, Process

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-peers"
_PREPARE_S_MAX = 60.0
_ERROR_CHARACTERS_MAX = 300
_LINES = 20
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

Arguments = tuple[str, ...]
# The calls of a trial, for a module of a peer's folder.
Calls = Callable[[Trial, str], list[Arguments]]


def _alike(trial: Trial, module: str) -> list[Arguments]:
    """The same call for each process: they share the work through Kafka's consumer group."""
    return [("-m", module)] * trial.processes


def _numbered(trial: Trial, module: str) -> list[Arguments]:
    """A call for each process, with its number: they share the work by it."""
    return [("-m", module, str(number)) for number in range(trial.processes)]


def _once(trial: Trial, module: str) -> list[Arguments]:  # noqa: ARG001 - see Calls
    """One call: the peer starts its own processes."""
    return [("-m", module)]


def _flink(trial: Trial, module: str) -> list[Arguments]:  # noqa: ARG001 - see Calls
    """One call that imports the module: its Python processes then find what is in there by name, without pickles."""
    return [("-c", f"import {module} as program; program.main()")]


def _faust(trial: Trial, module: str) -> list[Arguments]:
    """As many workers as there may be processes."""
    return [("-m", "faust", "-A", module, "worker", "-l", "warn", "--without-web")] * trial.processes


def _bytewax(trial: Trial, module: str) -> list[Arguments]:
    """A flow, with a snapshot each second."""
    ports = free_ports(trial.processes)
    addresses = ";".join(f"{LOOPBACK}:{port}" for port in ports)
    run = ("-m", "bytewax.run", module, "-r", str(trial.stored), "-s", "1", "-b", "0")
    if trial.processes == 1:
        return [run]
    return [(*run, "-i", str(number), "-a", addresses) for number in range(trial.processes)]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another stream processor. `programs`: the module of its folder, by workload; `lacks`: why it has none.

    `prepare` is run to its end before each run. `jar`: a Maven coordinate that it needs too, whose digest is in its
    folder's jars.sha256. `frames`: it takes the records of Bettong's log, thousands of messages each, instead of one
    record a message. `merges`: workloads of which it puts out the newest result of several records of a key.
    """

    name: str
    folder: str
    guarantee: str
    calls: Calls
    programs: Mapping[str, str]
    lacks: Mapping[str, str] = field(default_factory=dict)
    package: str = "pyspark"
    own_environment: bool = True
    prepare: Callable[[Trial], Arguments] | None = None
    jar: str = ""
    frames: bool = False
    merges: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """Its packages, pinned."""
        return HERE / self.folder / "requirements.lock"

    @property
    def environment(self) -> Path:
        """Its virtual environment."""
        return ENVIRONMENTS / self.folder if self.own_environment else Path(sys.prefix)

    @property
    def version(self) -> str:
        """The version of its package that is run."""
        return pinned(self.package, self.lock.read_text()) if self.own_environment else version(self.package)

    @contextmanager
    def start(self, workload: PeerWorkload, trial: Trial) -> Iterator[Running]:
        """Runs the processes of a workload's program until left; see `race.Start`."""
        module = f"{__package__}.{self.folder}.{self.programs[workload.name]}"
        if self.prepare is not None:
            preparing = Process(self._command(trial, self.prepare(trial), "prepare", workload.query))
            try:
                if (ending := preparing.wait(_PREPARE_S_MAX)) is None or ending.status:
                    raise RaceError(_last_words(preparing))
            finally:
                preparing.kill()
        processes: list[Process] = []
        try:
            for number, arguments in enumerate(self.calls(trial, module)):
                processes.append(Process(self._command(trial, arguments, str(number), workload.query)))
            yield _Processes(processes, trial.stored)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.stop()

    def _command(self, trial: Trial, arguments: Arguments, number: str, query: str) -> Command:
        state, scratch = trial.stored / number, trial.folder / f"scratch-{number}"
        state.mkdir()
        scratch.mkdir()
        environment = {
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            "PEER_KAFKA": trial.bootstrap,
            "PEER_STATE": str(state),
            "PEER_PARTITIONS": str(trial.partitions),
            "PEER_PROCESSES": str(trial.processes),
            "PEER_QUERY": query,
            "TMPDIR": str(scratch),
        }
        call = (str(self.environment / "bin" / "python"), *arguments)
        return Command(f"{self.name} {number}", call, trial.folder / f"{number}.log", environment, scratch)


class _Processes:
    """See `race.Running`."""

    def __init__(self, processes: list[Process], stored: Path) -> None:
        self._processes, self._stored = processes, stored

    def pids(self) -> list[int]:
        """Of all that are alive."""
        return [each.pid for each in self._processes if each.ending is None]

    def check(self) -> None:
        """Raises RaceError with the last line of the one that has ended."""
        for each in self._processes:
            if each.ending is not None:
                raise RaceError(_last_words(each))

    def stored_bytes(self) -> int:
        """See `race.Running`."""
        return bytes_below(self._stored)


def _last_words(process: Process) -> str:
    return f"{process.ending or 'hangs'}, its last line: {last_line(process.tail(_LINES))}"


def last_line(lines: Sequence[str]) -> str:
    """The last of a log's lines that says something, without a terminal's colours and cursors."""
    plain = [_TERMINAL.sub("", line).strip() for line in lines]
    said = [line for line in plain if any(map(str.isalpha, line))]
    return said[-1][:_ERROR_CHARACTERS_MAX] if said else "nothing"


def pinned(package: str, lock: str) -> str:
    """The version of a package in a lock. Raises LookupError."""
    found = re.search(rf"^{re.escape(package)}==([^ \\]+)", lock, re.MULTILINE)
    if found is None:
        raise LookupError(f"{package} is not in the lock: run `make lock`")
    return found.group(1)


_SPARK = "state exactly once, output at least once; a checkpoint each micro-batch"
_MARKET, _WORDS = MARKET_SPREAD.name, WORD_COUNT.name
# What Spark 4.2.0 says to `groupBy("key").count()`, in its words.
_NO_REAL_TIME = (
    "[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] Streaming real-time mode has the following "
    "limitation: The operator(s): org.apache.spark.sql.execution.aggregate.HashAggregateExec, "
    "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec, "
    "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreRestoreExec, "
    "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec "
    "are not in the operator allowlist for Real-Time Mode."
)


def _modules(*workloads: str) -> dict[str, str]:
    """The modules of those that have their own names."""
    return {name: WORKLOADS[name].module for name in workloads}


_NEXMARK = [name for name, workload in WORKLOADS.items() if workload.module == NEXMARK]
# Of windows over all keys.
_NEXMARK_OF_ALL = tuple(f"{NEXMARK}-{query}" for query in ("q5", "q7", "q15"))
# Averages of a category, and of a seller's auctions in the order of time.
_AVERAGES, _SELLERS = f"{NEXMARK}-q4", f"{NEXMARK}-q6"
_NEXMARK_BY_KEY = [name for name in _NEXMARK if name not in (*_NEXMARK_OF_ALL, _SELLERS)]


def _lacks_all_keys(clock: str) -> dict[str, str]:
    """Why windows over all keys are left out."""
    why = f"{clock}, and no watermark for all partitions: one that is read ahead would end a window over all keys"
    order = f"{clock}, and no watermark for all partitions, by which auctions would be put in the order of their ends"
    return {**dict.fromkeys(_NEXMARK_OF_ALL, why), _SELLERS: order}


_BYTEWAX = Peer(
    "bytewax",
    "bytewax",
    "state exactly once, output at least once; a snapshot each second",
    _bytewax,
    _modules(_MARKET, _WORDS, "tumbling", "sliding", "timers", *_NEXMARK_BY_KEY),
    {
        **_lacks_all_keys("bytewax has a clock a key"),
        "interval-join": "bytewax joins newest values, or those of one window; it has no join within bounds",
    },
    package="bytewax",
    prepare=lambda trial: ("-m", "bytewax.recovery", str(trial.stored), str(trial.processes)),
)

_QUIX = Peer(
    "Quix Streams",
    "quix",
    "exactly once (transactions); a commit each second",
    _alike,
    _modules(_MARKET, "tumbling", "sliding", "interval-join", *_NEXMARK_BY_KEY),
    {
        **_lacks_all_keys("Quix Streams has a clock a partition"),
        "timers": "Quix Streams has no timers",
    },
    package="quixstreams",
)

_FLINK = Peer(
    "PyFlink",
    "flink",
    "exactly once (transactions); a checkpoint each second",
    _flink,
    {**_modules(*(name for name in WORKLOADS if name != _WORDS)), _SELLERS: "nexmark_sellers"},
    package="apache-flink",
    jar="org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",
)

PEERS = [
    _BYTEWAX,
    replace(
        _BYTEWAX,
        name="bytewax, Bettong's frames",
        programs={_MARKET: "frames"},
        lacks={},
        frames=True,
    ),
    _QUIX,
    replace(
        _QUIX,
        name="Quix Streams, a commit each 100 ms",
        guarantee="exactly once (transactions)",
        programs=_modules(_WORDS),
        lacks={},
    ),
    Peer(
        "Faust",
        "faust",
        "at least once; offsets committed each second",
        _faust,
        _modules(_MARKET),
        package="faust-streaming",
    ),
    Peer(
        "Spark, applyInPandasWithState",
        "spark",
        _SPARK,
        _once,
        {_MARKET: "apply_with_state", _WORDS: "word_count_apply_with_state"},
        own_environment=False,
    ),
    Peer(
        "Spark, transformWithStateInPandas",
        "spark",
        _SPARK,
        _once,
        {_MARKET: "transform_with_state"},
        own_environment=False,
    ),
    Peer(
        "Spark Structured Streaming",
        "spark",
        _SPARK,
        _once,
        _modules(_WORDS, *(name for name in _NEXMARK if name not in (_AVERAGES, _SELLERS))),
        {
            _AVERAGES: "Spark refuses an aggregation behind another one of updates, and in append mode it has no end",
            _SELLERS: "Spark's aggregations keep no order; transformWithStateInPandas could, and has no program here",
        },
        own_environment=False,
        merges=(_WORDS,),
    ),
    Peer("Spark, real-time mode", "spark", _SPARK, _once, {}, {_WORDS: _NO_REAL_TIME}, own_environment=False),
    _FLINK,
    replace(
        _FLINK,
        name="PyFlink, a checkpoint each 100 ms",
        guarantee="exactly once (transactions)",
        programs=_modules(_WORDS),
    ),
    replace(
        _FLINK,
        name="PyFlink, at least once",
        guarantee="at least once; a checkpoint each second",
        programs={_WORDS: "word_count_at_least_once"},
    ),
    Peer(
        "no engine, Kafka's client copies",
        "no_engine",
        "nothing: it keeps neither state nor position",
        _numbered,
        {f"{NEXMARK}-q0": "copying"},
        package="confluent-kafka",
        own_environment=False,
    ),
]
