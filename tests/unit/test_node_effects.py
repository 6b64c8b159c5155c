"""What a tuner does to a fake tree: journal first, drift, external values, refusals, and everything back at the end."""

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bettong_node_tuner.decisions import Decision, State
from bettong_node_tuner.effects import Effects
from bettong_node_tuner.errors import JournalError
from bettong_node_tuner.keeping import EARLIER, NAME, Keeping
from bettong_node_tuner.machine import BOOT
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import Key
from tests.simulation.fake_node import (
    CPU,
    HUGEPAGES,
    SOMAXCONN,
    SWAP,
    SWAPPINESS,
    THP_ENABLED,
    THREAD,
    FakeNode,
)

EVERYTHING: dict[str, Any] = {
    "sysctls": {"vm.swappiness": "1", "net.core.somaxconn": "8192", "net.ipv4.tcp_rmem": "1 2 3"},
    "cpu_governor": "performance",
    "cpu_latency_us": 7,
    "turbo": False,
    "thp": "never",
    "thp_defrag": "never",
    "swap_off": True,
    "hugepages_2m": 64,
    "irq_affinity": True,
    "rps": True,
    "workqueues": True,
    "housekeeping_cpus": "0-1",
    "fifo_priority": 5,
    "fifo_threads": ["bettong*"],
}
LITTLE: dict[str, Any] = {"sysctls": {"vm.swappiness": "1"}}


class Bench:
    """A fake node, and tuners that come and go on it."""

    def __init__(self, folder: Path) -> None:
        self.node = FakeNode(folder / "root")
        self.journal = folder / "journal"
        self._stack = ExitStack()
        self._effects: Effects | None = None

    def run(self, mode: Mode = Mode.APPLY, **wanted: Any) -> dict[str, Decision]:
        """One pass of the tuner that lives; by key, how each stands."""
        if self._effects is None:
            self._effects = Effects(self.node, self._stack.enter_context(Keeping(self.journal)))
        found = self._effects.perform(TunerSettings(mode=mode, **wanted))
        return {each.key: each for each in found}

    def die(self) -> None:
        """SIGKILL: nothing is restored; the kernel releases the lock and the latency bound."""
        self._stack.close()
        self.node.hold(None)
        self._effects = None

    def values(self) -> dict[str, str]:
        """All files of the tree."""
        paths = (path for path in self.node.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.node.folder)): path.read_text().split("\n")[0] for path in paths}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.die()


def test_everything_is_set_and_set_back(bench: Bench) -> None:
    before = bench.values()
    done = bench.run(**EVERYTHING)
    assert {each.state for each in done.values()} == {State.TUNED}
    assert bench.node.text(THP_ENABLED) == "always madvise [never]"
    assert bench.node.text(SWAPPINESS) == "1"
    assert bench.node.text("proc/irq/24/smp_affinity_list") == "0-1"
    assert bench.node.text("sys/class/net/eth0/queues/rx-0/rps_cpus") == "3"
    assert bench.node.text(f"{CPU}/intel_pstate/no_turbo") == "1"
    assert bench.node.read(SWAP) == "off"
    assert bench.node.read(THREAD) == "1/5"
    assert bench.node.latency_bytes == (7).to_bytes(4, "little")
    assert bench.run(**EVERYTHING).keys() == done.keys()
    back = bench.run(Mode.REVERT, **EVERYTHING)
    assert {each.state for each in back.values()} == {State.REVERTED}
    after = bench.values()
    changed = {path for path in before if before[path] != after[path]}
    # The mask's text without its zeros, tabs as blanks, and the latency bound, which is held by its descriptor alone.
    assert changed == {
        "sys/class/net/eth0/queues/rx-0/rps_cpus",
        "proc/sys/net/ipv4/tcp_rmem",
        "dev/cpu_dma_latency",
    }
    assert bench.node.text("sys/class/net/eth0/queues/rx-0/rps_cpus") == "0"
    assert bench.node.read(SWAP) == "-3"
    assert json.loads((bench.journal / NAME).read_text())["entries"] == {}


def test_a_second_look_writes_nothing(bench: Bench) -> None:
    bench.run(**EVERYTHING)
    stamp = (bench.journal / NAME).stat().st_mtime_ns
    bench.node.written.clear()
    bench.run(**EVERYTHING)
    assert bench.node.written == []
    assert (bench.journal / NAME).stat().st_mtime_ns == stamp


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.DRY_RUN])
def test_who_is_only_to_look_writes_nothing(bench: Bench, mode: Mode) -> None:
    before = bench.values()
    found = bench.run(mode, **EVERYTHING)
    assert bench.values() == before
    assert not (bench.journal / NAME).exists()
    states = {each.state for each in found.values()}
    assert states == (set() if mode is Mode.OFF else {State.PENDING, State.TUNED})


def test_old_values_are_in_the_journal_before_the_first_write(bench: Bench) -> None:
    seen: list[Any] = []
    write = bench.node.write

    def looking(key: Key, value: str) -> None:
        seen.append(json.loads((bench.journal / NAME).read_text())["entries"][key]["old"])
        write(key, value)

    bench.node.write = looking  # type: ignore[method-assign]
    bench.run(sysctls={"vm.swappiness": "1", "net.core.somaxconn": "9"})
    assert seen == ["4096", "60"]


def test_a_journal_that_cannot_be_written_stops_before_the_first_write(bench: Bench) -> None:
    bench.run(Mode.DRY_RUN)
    (bench.journal / f"{NAME}.new").mkdir()
    with pytest.raises(JournalError, match=r"journal\.json: cannot be written"):
        bench.run(**EVERYTHING)
    assert bench.node.written == []


def test_what_drifts_back_is_set_again(bench: Bench) -> None:
    bench.run(**LITTLE)
    bench.node.put(SWAPPINESS, "60")
    assert bench.run(**LITTLE)[SWAPPINESS].state is State.TUNED
    assert bench.node.text(SWAPPINESS) == "1"


def test_what_another_has_set_stays(bench: Bench) -> None:
    bench.run(**LITTLE)
    bench.node.put(SWAPPINESS, "30")
    reported = bench.run(**LITTLE)[SWAPPINESS]
    assert (reported.state, reported.why) == (
        State.EXTERNAL,
        "changed by another process: the old value was 60, the tuner wrote 1",
    )
    assert bench.run(Mode.REVERT)[SWAPPINESS].state is State.EXTERNAL
    bench.die()
    assert bench.run(**LITTLE)[SWAPPINESS].state is State.EXTERNAL  # through a roll of the pod too
    assert bench.node.text(SWAPPINESS) == "30"
    bench.node.put(SWAPPINESS, "60")  # how the operator gives it back
    assert bench.run(**LITTLE)[SWAPPINESS].state is State.TUNED


def test_after_a_kill_the_next_tuner_knows_the_old_values(bench: Bench) -> None:
    bench.run(**LITTLE)
    bench.die()
    assert bench.run(sysctls={"vm.swappiness": "2"})[SWAPPINESS].state is State.TUNED
    bench.die()
    assert bench.run(Mode.REVERT)[SWAPPINESS].state is State.REVERTED
    assert bench.node.text(SWAPPINESS) == "60"


def test_a_toggle_that_is_no_longer_given_is_set_back(bench: Bench) -> None:
    bench.run(**LITTLE, thp="never", cpu_latency_us=5)
    bench.run(**LITTLE)
    assert bench.node.text(THP_ENABLED) == "always [madvise] never"
    assert bench.node.snapshot(TunerSettings()).held_us is None
    assert bench.node.text(SWAPPINESS) == "1"


def test_after_a_reboot_the_journal_is_put_aside(bench: Bench) -> None:
    bench.run(**LITTLE)
    bench.die()
    bench.node.put(BOOT, "another")
    bench.node.put(SWAPPINESS, "70")  # what this boot began with
    bench.run(**LITTLE)
    bench.run(Mode.REVERT)
    assert bench.node.text(SWAPPINESS) == "70"
    assert '"60"' in (bench.journal / EARLIER).read_text()


@pytest.mark.parametrize(
    "text", ["", "{}", '{"version": 2}', "[]", '{"version": 1, "boot": "x", "entries": 3}']
)
def test_a_damaged_journal_stops_everything(bench: Bench, text: str) -> None:
    bench.journal.mkdir()
    (bench.journal / NAME).write_text(text)
    with pytest.raises(JournalError, match=r"journal\.json: the journal is"):
        bench.run(**LITTLE)
    assert bench.node.written == []


def test_two_tuners_do_not_share_a_journal(bench: Bench) -> None:
    bench.run(**LITTLE)
    with pytest.raises(JournalError, match="another tuner holds the journal"), Keeping(bench.journal):
        pass


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_interrupts_that_refuse_are_unsupported(bench: Bench, number: int) -> None:
    wanted: dict[str, Any] = {"irq_affinity": True, "housekeeping_cpus": "0"}
    bench.node.refuse("proc/irq/0/smp_affinity_list", number)
    for _ in range(2):
        done = bench.run(**wanted)
        assert done["proc/irq/0/smp_affinity_list"].state is State.UNSUPPORTED
        assert done["proc/irq/24/smp_affinity_list"].state is State.TUNED
    assert "irq/0/" not in (bench.journal / NAME).read_text()


def test_a_sysctl_that_refuses_has_failed_and_is_tried_again(bench: Bench) -> None:
    bench.node.refuse(SWAPPINESS, errno.EINVAL)
    reported = bench.run(**LITTLE)[SWAPPINESS]
    assert (reported.state, reported.why) == (State.FAILED, "Invalid argument")
    bench.node.refuses.clear()
    assert bench.run(**LITTLE)[SWAPPINESS].state is State.TUNED
    bench.run(Mode.REVERT)
    assert bench.node.text(SWAPPINESS) == "60"


def test_fewer_huge_pages_than_wanted_are_ours_all_the_same(bench: Bench) -> None:
    bench.node.makes[HUGEPAGES] = "40"
    reported = bench.run(hugepages_2m=64)[HUGEPAGES]
    assert (reported.state, reported.why) == (State.TUNED, "the kernel changed 64 to 40")
    bench.node.written.clear()
    assert bench.run(hugepages_2m=64)[HUGEPAGES].why == "as close to 64 as the kernel allows"
    assert bench.node.written == []
    bench.node.makes.clear()
    bench.run(Mode.REVERT)
    assert bench.node.text(HUGEPAGES) == "0"


def test_a_count_that_another_sets_is_not_taken_for_one_that_was_granted_in_part(bench: Bench) -> None:
    bench.run(hugepages_2m=64)
    bench.node.put(HUGEPAGES, "32")
    assert bench.run(hugepages_2m=64)[HUGEPAGES].state is State.EXTERNAL


def test_a_value_that_the_kernel_takes_and_drops_has_failed(bench: Bench) -> None:
    bench.node.makes[SOMAXCONN] = "4096"
    reported = bench.run(sysctls={"net.core.somaxconn": "9"})[SOMAXCONN]
    assert (reported.state, reported.why) == (State.FAILED, "the kernel accepted 9 but kept 4096")


def test_a_thread_that_is_gone_is_forgotten(bench: Bench) -> None:
    bench.run(fifo_priority=5, fifo_threads=["bettong*"])
    stat = bench.node.text("proc/70/task/71/stat")
    bench.node.put("proc/70/task/71/stat", stat.replace(" 9000 ", " 9999 "))  # its number, given again
    reported = bench.run(Mode.REVERT)[THREAD]
    assert (reported.state, reported.why) == (State.REVERTED, "it no longer exists")
    assert bench.node.text("proc/70/task/71/stat").split()[-3:-1] == ["5", "1"]


@pytest.mark.parametrize("then", ["70", "60"])
def test_a_value_that_changes_between_look_and_write_waits(bench: Bench, then: str) -> None:
    read: Callable[[Key], str | None] = bench.node.read
    once = iter([then])

    def racing(key: Key) -> str | None:
        bench.node.put(SWAPPINESS, next(once, bench.node.text(SWAPPINESS)))
        return read(key)

    bench.node.read = racing  # type: ignore[method-assign]
    reported = bench.run(**LITTLE)[SWAPPINESS]
    assert reported.state is (State.TUNED if then == "60" else State.PENDING)
    assert bench.run(**LITTLE)[SWAPPINESS].state is State.TUNED
    bench.run(Mode.REVERT)
    assert bench.node.text(SWAPPINESS) == then
