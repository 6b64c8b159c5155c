"""A tuner outside the node's namespaces: it sees other sysctls of net, and other threads would get its calls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bettong_node_tuner.decisions import Decision, State, is_done
from bettong_node_tuner.effects import Effects
from bettong_node_tuner.keeping import NAME, Keeping
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import Namespace
from tests.simulation.fake_node import SOMAXCONN, SWAPPINESS, THREAD, FakeNode

SYSCTLS = {"vm.swappiness": "1", "net.core.somaxconn": "8192"}
FIFO: dict[str, Any] = {"fifo_priority": 5, "fifo_threads": ["bettong*"]}
Run = Callable[..., dict[str, Decision]]


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path / "root")


@pytest.fixture
def run(node: FakeNode, tmp_path: Path) -> Run:
    """One pass of a tuner that ends after it, without restoring anything."""

    def once(mode: Mode, **wanted: Any) -> dict[str, Decision]:
        with Keeping(tmp_path / "journal") as keeping:
            found = Effects(node, keeping).perform(TunerSettings(mode=mode, **wanted))
        return {each.key: each for each in found}

    return once


def journalled(tmp_path: Path) -> set[str]:
    return set(json.loads((tmp_path / "journal" / NAME).read_text())["entries"])


def move(node: FakeNode, **links: str) -> None:
    """Gives the node's first process these namespaces."""
    folder = node.folder / "proc/1/ns"
    folder.mkdir(parents=True, exist_ok=True)
    for name, link in links.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(link)


def own(name: str) -> str:
    return str(Path(f"/proc/self/ns/{name}").readlink())


@pytest.mark.parametrize("there", ["4096", "8192", "128", None])
def test_a_revert_in_another_network_keeps_the_journal(
    node: FakeNode, run: Run, tmp_path: Path, there: str | None
) -> None:
    run(Mode.APPLY, sysctls=SYSCTLS)
    move(node, net="net:[1]", pid=own("pid"))
    if there is None:
        (node.folder / SOMAXCONN).unlink()
    else:
        node.put(SOMAXCONN, there)
    found = run(Mode.REVERT)
    assert found[SWAPPINESS].state is State.REVERTED
    assert (found[SOMAXCONN].state, found[SOMAXCONN].now) == (State.REFUSED, None)
    assert "give its pod hostNetwork" in found[SOMAXCONN].why
    assert not is_done(list(found.values()), Mode.REVERT)
    assert journalled(tmp_path) == {SOMAXCONN}
    assert node.read(SOMAXCONN) == (None if there is None else f"{there}\n")

    move(node, net=own("net"))
    node.put(SOMAXCONN, "8192")
    assert run(Mode.REVERT)[SOMAXCONN].state is State.REVERTED
    assert node.text(SOMAXCONN) == "4096"
    assert journalled(tmp_path) == set()


@pytest.mark.parametrize("mode", [Mode.APPLY, Mode.DRY_RUN])
@pytest.mark.parametrize("there", ["4096", "8192", None])
def test_no_sysctl_of_another_network_is_set_or_taken_for_set(
    node: FakeNode, run: Run, mode: Mode, there: str | None
) -> None:
    move(node, net="net:[1]", pid=own("pid"))
    if there is None:
        (node.folder / SOMAXCONN).unlink()
    else:
        node.put(SOMAXCONN, there)
    found = run(mode, sysctls=SYSCTLS)
    assert found[SOMAXCONN].state is State.REFUSED
    assert found[SWAPPINESS].state is (State.TUNED if mode is Mode.APPLY else State.PENDING)
    assert SOMAXCONN not in node.written


def test_no_thread_is_scheduled_from_among_other_processes(node: FakeNode, run: Run, tmp_path: Path) -> None:
    move(node, net=own("net"), pid="pid:[1]")
    refused = run(Mode.APPLY, **FIFO)[THREAD]
    assert (refused.state, refused.now) == (State.REFUSED, "0/0")
    assert "give its pod hostPID" in refused.why
    assert node.written == []

    move(node, pid=own("pid"))
    assert run(Mode.APPLY, **FIFO)[THREAD].state is State.TUNED
    move(node, pid="pid:[1]")
    assert run(Mode.REVERT)[THREAD].state is State.REFUSED
    assert node.read(THREAD) == "1/5"
    assert journalled(tmp_path) == {THREAD}


def test_a_thread_that_is_gone_from_the_nodes_proc_is_forgotten_from_anywhere(
    node: FakeNode, run: Run, tmp_path: Path
) -> None:
    run(Mode.APPLY, **FIFO)
    move(node, pid="pid:[1]")
    (node.folder / "proc/70/task/71/stat").unlink()
    assert run(Mode.REVERT)[THREAD].state is State.REVERTED
    assert journalled(tmp_path) == set()


def test_namespaces_are_compared_with_those_of_the_nodes_first_process(node: FakeNode) -> None:
    nothing = TunerSettings()
    assert node.snapshot(nothing).outside == frozenset()  # not known
    move(node, net=own("net"), pid=own("pid"))
    assert node.snapshot(nothing).outside == frozenset()
    move(node, net="net:[1]")
    assert node.snapshot(nothing).outside == {Namespace.NET}
    move(node, pid="pid:[1]")
    assert node.snapshot(nothing).outside == {Namespace.NET, Namespace.PID}
