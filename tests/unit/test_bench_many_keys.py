"""The benchmark of ten million keys checks what it measures: here with some thousands, whose states end likewise."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import many_keys
from bettong.frames.columns import Array


def test_the_run_of_many_keys_ends_with_the_right_counts_and_sees_wrong_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many_keys, "KEYS_LIVE", 11 * 500)
    monkeypatch.setattr(many_keys, "MEASURED_MINUTES", 3)
    assert (many_keys.ttl_memory().cpu_s_per_million or 0) > 0

    def once(minute: int, per_minute: int) -> list[Array]:
        return [np.arange(minute * per_minute, (minute + 1) * per_minute)]

    monkeypatch.setattr(many_keys, "_visited", once)
    with pytest.raises(AssertionError, match=r"keys live|the counts are wrong"):
        many_keys.ttl_memory()
