"""How many CPUs this process may use."""

import os

import pytest

from bettong.local.usable_cpus import usable_cpus


def test_those_that_the_kernel_lets_it_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 4, 5}, raising=False)
    assert usable_cpus() == 3


def test_all_of_the_machine_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cpus() == 8
