"""Serves a service's live metrics to Prometheus, under the names in `bettong.metrics`. Counts nothing itself.

Plain HTTP, read only. Texts (errors, reasons for waiting) are not exported; labels are names of the application:
sources, sinks, stages, partitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bettong import metric_series
from bettong.config.setting_faults import listening_fault
from bettong.edges.account_differences import AccountWatch, Partitions
from bettong.edges.redis_store import LiveMetrics
from bettong.edges.redis_store.live import MetricValues
from bettong.errors import SettingsError, StoreError
from bettong.latency import LatencyCounts
from bettong.logs import Logger
from bettong.metric_series import BESIDE, Scope, Series
from bettong.metrics import HISTOGRAMS, SERIES, SERVICE, STANDBY, STATE, STATES, TIMES
from bettong.services import SERVICES
from bettong.worker.balance import AccountKind, PartitionAccounts
from bettong.worker.stopwatch import times_of

# A scrape waits for one attempt to reach Redis; Prometheus gives up after 10 s by default.
_ATTEMPTS_S = 0.5


@dataclass(frozen=True, slots=True)
class Identity:
    """The service whose metrics an endpoint serves."""

    service: str
    application: str
    instance: str


class MetricsEndpoint:
    """Serves the series of one service inside its `with` block, on its own threads; does nothing without `listen`.

    Raises SettingsError on entering when it cannot listen.
    """

    def __init__(
        self,
        listen: str | None,
        identity: Identity,
        live: LiveMetrics,
        log: Logger,
    ) -> None:
        """`listen`: host:port."""
        self._listen = listen
        self._log = log
        self._metrics = _MetricsCollector(identity, live)
        self._stop = _stop_nothing

    def __enter__(self) -> Self:
        if self._listen is None:
            return self
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._metrics)
        host, _, port = self._listen.rpartition(":")
        try:
            server, thread = start_http_server(int(port), host.strip("[]"), registry)
        except OSError as error:
            raise SettingsError(listening_fault("BETTONG_METRICS_LISTEN", self._listen, error)) from None

        self._log.info("metrics for Prometheus", address=f"{host}:{server.server_port}")

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._stop = stop
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()


def families(record: MetricValues, partitions: Partitions) -> list[Metric]:
    """The series of a service's record and of its partitions' records, in the order of `metrics.SERIES`. Pure."""
    found: dict[str, Metric] = {}
    service = str(record.get(SERVICE.name, ""))
    scopes = _scopes(service)
    for series in SERIES:
        family = _family(series.name, f"{series.meaning} [{series.scope}]", series.metric)
        if series.scope is Scope.PARTITION:
            for (stage, partition), values in partitions.items():
                own = {"stage": stage, "partition": str(partition)}
                _add(family, series, own, values.get(series.metric.name))
        elif series.scope is Scope.COMPUTATION:
            for (stage, partition), values in partitions.items():
                own = {"stage": stage, "partition": str(partition)}
                for computation, number in _of_computations(series, str(values.get(series.metric.name, ""))):
                    _add(family, series, own | {"computation": computation}, number)
        elif series.scope is Scope.SERVICE:
            _add(family, series, {"service": service}, record.get(series.metric.name))
        elif series.scope in scopes:
            for labels, value in _labelled(series, record):
                _add(family, series, labels, value)
        if family.samples:
            found[series.name] = family
    return list(found.values())


def _of_computations(series: Series, text: str) -> list[tuple[str, float]]:
    """Values by computation or output, parsed from a partition's metric; empty if another version wrote it."""
    try:
        if series.metric is TIMES:
            times = times_of(text or "{}")
            return [(name, getattr(each, series.part)) for name, each in times.items()]
        rows = PartitionAccounts.of_text(text).rows
    except ValueError:
        return []
    return [(row.name, getattr(row.counts, series.part)) for row in rows if row.kind is not AccountKind.INPUT]


def _labelled(series: Series, record: MetricValues) -> Iterator[tuple[dict[str, str], object]]:
    """The values of a series in a record, with labels from the suffixes of the metric's name."""
    if not series.labels:
        yield {}, record.get(series.metric.name)
        return
    for name, value in record.items():
        metric, _, suffix = name.partition("/")
        if metric == series.metric.name and suffix:
            yield dict(zip(series.labels, suffix.rsplit("/", len(series.labels) - 1), strict=True)), value


def _family(name: str, meaning: str, metric: metric_series.Metric | None = None) -> Metric:
    kind = "histogram" if metric in HISTOGRAMS else "counter" if name.endswith("_total") else "gauge"
    return Metric(name.removesuffix("_total"), meaning, kind)


def _add(family: Metric, series: Series, labels: dict[str, str], value: object) -> None:
    if value is None or value == "":
        return
    if series.metric not in HISTOGRAMS:
        family.add_sample(series.name, labels, float(str(value)) / series.per)
        return
    latencies = LatencyCounts.parse(str(value))
    for bound, count in latencies.cumulative():
        family.add_sample(f"{series.name}_bucket", {**labels, "le": bound}, count)
    family.add_sample(f"{series.name}_sum", labels, latencies.sum_s)
    family.add_sample(f"{series.name}_count", labels, sum(latencies.counts))


class _MetricsCollector(Collector):
    def __init__(self, identity: Identity, live: LiveMetrics) -> None:
        self._identity = identity
        self._live = live
        self._accounts = AccountWatch()
        self._has_partitions = Scope.PARTITION in _scopes(identity.service)

    def collect(self) -> Iterator[Metric]:
        """See Collector. Called for each scrape, on a separate thread."""
        record, service = self._live.latest, self._identity.service
        yield self._gauge(
            "bettong_service_info", {**self._identity_labels(), "version": version("bettong")}, 1
        )
        age_s = self._live.age_s()
        if age_s is not None:
            yield self._gauge("bettong_heartbeat_age_seconds", {"service": service}, age_s)
        states = _family("bettong_state", BESIDE["bettong_state"][1])
        for state in STATES:
            held = float(record.get(STATE.name) == state)
            states.add_sample("bettong_state", {"service": service, "state": state}, held)
        yield states
        partitions: Partitions = {}
        if self._has_partitions and record.get(STATE.name) != STANDBY:  # the leader reports them
            try:
                partitions = self._live.partitions(attempts_s=_ATTEMPTS_S)
                readable = 1
            except StoreError:
                readable = 0
            yield self._gauge("bettong_partition_metrics_readable", {}, readable)
            if readable:
                yield self._account_differences(record, partitions)
        yield from families(record, partitions)

    def _account_differences(self, record: MetricValues, partitions: Partitions) -> Metric:
        family = _family("bettong_account_differences", BESIDE["bettong_account_differences"][1])
        for stage, count in self._accounts.differences(record, partitions).items():
            family.add_sample("bettong_account_differences", {"stage": stage}, count)
        return family

    def _identity_labels(self) -> dict[str, str]:
        return {
            "application": self._identity.application,
            "instance": self._identity.instance,
            "service": self._identity.service,
        }

    @staticmethod
    def _gauge(name: str, labels: dict[str, str], value: float) -> Metric:
        family = _family(name, BESIDE[name][1])
        family.add_sample(name, labels, value)
        return family


def _scopes(service: str) -> tuple[Scope, ...]:
    return SERVICES[service].scopes if service in SERVICES else ()


def _stop_nothing() -> None:
    """Stops an endpoint that never listened."""
