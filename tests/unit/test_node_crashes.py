"""A model: tuners that are killed at any write, others that set values, reboots, changed wanted settings.

Whatever happens, in whatever order: a value that another has set is never written over, and once everything is
reverted each value that nobody else has set is what it was before the tuner.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bettong_node_tuner.effects import Effects
from bettong_node_tuner.formats import Form, canonical
from bettong_node_tuner.journal import Journal
from bettong_node_tuner.keeping import NAME, Keeping
from bettong_node_tuner.machine import BOOT
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import Key
from tests.simulation.fake_node import HUGEPAGES, SOMAXCONN, SWAPPINESS, THP_ENABLED, FakeNode

FORMS = {SWAPPINESS: Form.WORDS, SOMAXCONN: Form.WORDS, THP_ENABLED: Form.CHOICE, HUGEPAGES: Form.COUNT}
# What others set is never what the tuner sets: such a value could not be told from its own.
OTHERS = {
    SWAPPINESS: ["71", "72"],
    SOMAXCONN: ["71", "72"],
    THP_ENABLED: ["[always] madvise never"],
    HUGEPAGES: ["900"],
}
WANTED: list[dict[str, Any]] = [
    {},
    {"sysctls": {"vm.swappiness": "1"}, "hugepages_2m": 64},
    {"sysctls": {"vm.swappiness": "2", "net.core.somaxconn": "9"}, "thp": "never"},
    {"sysctls": {"net.core.somaxconn": "9"}, "hugepages_2m": 32},
]
STEPS = st.integers(0, 12)


class Killed(Exception):
    """The process is gone at this point."""


class Fuse:
    """Counts the steps of a process down, and ends it at none; None is for ever."""

    def __init__(self) -> None:
        self.left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed


class MortalNode(FakeNode):
    """Dies before or after any write; sees that nothing of another's is written over."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse
        self.external: set[Key] = set()

    def write(self, key: Key, value: str) -> None:
        self._fuse.step()
        assert key not in self.external, f"{key}: another's {self.read(key)} is written over by {value}"
        super().write(key, value)
        self._fuse.step()


class MortalKeeping(Keeping):
    """Dies before the journal is written, half-way, or after."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._path = folder
        self._fuse = fuse

    def save(self, journal: Journal) -> None:
        self._fuse.step()
        (self._path / f"{NAME}.new").write_text('{"half')
        self._fuse.step()
        super().save(journal)
        self._fuse.step()


class Tuners(RuleBasedStateMachine):
    """One node, and the tuners that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="bettong-node-"))
        self.fuse = Fuse()
        self.node = MortalNode(self.folder / "root", self.fuse)
        self.before = {key: self.now(key) for key in FORMS}
        self.tuned: set[Key] = set()
        self.boots = 1
        self.keeping: Keeping | None = None
        self.effects: Effects | None = None
        self.wanted = WANTED[0]

    def now(self, key: Key) -> str:
        return canonical(FORMS[key], self.node.text(key))

    @initialize(wanted=st.sampled_from(WANTED[1:]), grants=st.booleans())
    def begin(self, wanted: dict[str, Any], grants: bool) -> None:  # noqa: FBT001 - hypothesis names it
        self.wanted = wanted
        if not grants:
            self.node.makes[HUGEPAGES] = "20"

    @rule()
    def tune(self) -> None:
        self.act(Mode.APPLY, None)

    @rule()
    def revert(self) -> None:
        self.act(Mode.REVERT, None)

    @rule(mode=st.sampled_from([Mode.APPLY, Mode.REVERT]), steps=STEPS)
    def die_at_a_step(self, mode: Mode, steps: int) -> None:
        self.act(mode, steps)

    @rule(wanted=st.sampled_from(WANTED))
    def want(self, wanted: dict[str, Any]) -> None:
        self.wanted = wanted

    @rule(data=st.data(), number=st.integers(0, 1))
    def set_by_another(self, data: st.DataObject, number: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.tuned or FORMS)))
        self.node.put(key, OTHERS[key][number % len(OTHERS[key])])
        if key not in self.tuned:
            self.before[key] = self.now(key)
        elif self.now(key) == self.before[key]:
            self.node.external.discard(key)
        else:
            self.node.external.add(key)

    @precondition(lambda self: self.tuned)
    @rule(data=st.data())
    def set_back_by_another(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.tuned)))
        old = self.before[key]
        self.node.put(key, " ".join(f"[{w}]" if w == old else w for w in ("always", "madvise", "never")))
        if key != THP_ENABLED:
            self.node.put(key, old)
        self.node.external.discard(key)

    @rule()
    def kill(self) -> None:
        if self.keeping is not None:
            self.keeping.close()
        self.keeping = self.effects = None

    @rule()
    def reboot(self) -> None:
        self.kill()
        self.boots += 1
        self.node.put(BOOT, f"boot {self.boots}")
        fresh = FakeNode(self.folder / "fresh")
        for key in FORMS:
            self.node.put(key, fresh.text(key))
            self.before[key] = self.now(key)
        self.node.external.clear()
        self.tuned.clear()

    def act(self, mode: Mode, steps: int | None) -> None:
        if mode is Mode.REVERT:
            self.node.makes.pop(HUGEPAGES, None)  # pages that were free before are given back in full
        self.fuse.left = steps
        try:
            if self.effects is None:
                self.keeping = MortalKeeping(self.folder / "journal", self.fuse)
                self.keeping.__enter__()
                self.effects = Effects(self.node, self.keeping)
            self.effects.perform(TunerSettings(mode=mode, **self.wanted))
        except Killed:
            self.kill()
        finally:
            self.fuse.left = None
        self.know()

    def know(self) -> None:
        """Which keys the journal on the disk holds: the ones that a tuner has begun to tune."""
        found = Keeping(self.folder / "journal").read(self.node.boot())
        self.tuned = set(found.entries) if found is not None else set()

    def teardown(self) -> None:
        self.kill()
        self.node.makes.clear()
        self.act(Mode.REVERT, None)
        for key, form in FORMS.items():
            if key in self.node.external:
                assert self.now(key) in [canonical(form, each) for each in OTHERS[key]]
            else:
                assert self.now(key) == self.before[key], key
        self.kill()
        shutil.rmtree(self.folder)


Tuners.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
test_values_of_others_stay_and_old_ones_come_back = Tuners.TestCase
