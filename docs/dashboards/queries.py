"""PromQL that several panels ask. `${release}` and `${stages}` are put in by `docs.dashboards.grafana`."""

DELIVERED = "bettong_receiver_latency_seconds_bucket{${release}}"
FOLDED = "bettong_partition_latency_seconds_bucket"


def slope(series: str, *by: str) -> str:
    """What comes a second, of a counter of partitions or of the receiver.

    These are part of the fold and may be a little lower after a crash. `rate` would take that for a new beginning, and
    count all of it once more.
    """
    total = f"sum by ({', '.join(by)}) " if by else "sum"
    return f"{total}(clamp_min(deriv({series}[$__rate_interval]), 0))"


def quantile(part: float, series: str, *by: str) -> str:
    """Of a histogram, whose buckets are `series`, added up over all other labels."""
    return f"histogram_quantile({part}, sum by ({', '.join(('le', *by))}) (rate({series}[$__rate_interval])))"


def lag_seconds(selected: str, *by: str) -> str:
    """How long what waits takes, as fast as records are folded now."""
    labels = ", ".join(by)
    waits = f"sum by ({labels}) (bettong_partition_lag_records{{{selected}}})"
    return f"{waits} / {slope(f'bettong_partition_offset{{{selected}}}', *by)}"
