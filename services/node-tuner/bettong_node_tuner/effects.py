"""Performs decisions. The journal is always ahead of the machine: an intent is on disk before its write."""

import errno
from dataclasses import replace

from bettong_node_tuner.decisions import Action, Decision, Refusal, State, decide
from bettong_node_tuner.formats import canonical
from bettong_node_tuner.journal import Journal
from bettong_node_tuner.keeping import Keeping
from bettong_node_tuner.machine import Machine
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import Key, is_swap
from bettong_node_tuner.targets import Setting

# The file or device does not exist, or does not support this for anybody.
_NEVER = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP, errno.ENOSYS})
# Errors of interrupts that the kernel manages, and of real-time groups (CONFIG_RT_GROUP_SCHED) without a budget.
_REFUSE = frozenset({errno.EIO, errno.EPERM})
_REFUSING = frozenset({Setting.IRQ, Setting.FIFO})


class Effects:
    """One machine and its journal. `journal` is the one on disk."""

    def __init__(self, machine: Machine, keeping: Keeping) -> None:
        self._machine = machine
        self._keeping = keeping
        self._refusals: dict[Key, Refusal] = {}
        self.journal = keeping.load(machine.boot())
        self._earlier = self.journal  # the journal before the intents of the current pass

    def inspect(self, wanted: TunerSettings) -> list[Decision]:
        """Decides on the current values; changes nothing."""
        snapshot = self._machine.snapshot(wanted, self.journal.entries)
        return decide(wanted, snapshot, self.journal, self._refusals)

    def perform(self, wanted: TunerSettings) -> list[Decision]:
        """Reads and acts, unless the mode only reads; returns the state of each key afterwards.

        Raises JournalError, before the first write or after the last one, never in between.
        """
        decisions = self.inspect(wanted)
        if wanted.mode not in {Mode.APPLY, Mode.REVERT}:
            return decisions
        journal = self._earlier = self.journal
        for each in decisions:
            if each.action is Action.WRITE and each.now is not None:
                journal = journal.intending(each.key, each.setting, each.form, each.now, each.value)
        self._save(journal)
        done = []
        for each in decisions:
            result, journal = self._do(each, journal)
            done.append(result)
        self._save(journal)
        return done

    def end(self) -> None:
        """Releases the latency bound."""
        self._machine.hold(None)

    def _save(self, journal: Journal) -> None:
        if journal != self.journal:
            self._keeping.save(journal)
            self.journal = journal

    def _do(self, each: Decision, journal: Journal) -> tuple[Decision, Journal]:
        if each.action is Action.FORGET:
            return each, journal.without([each.key])
        if each.action is Action.HOLD:
            return self._hold(each), journal
        if each.action is Action.NONE:
            known = each.state is State.TUNED and each.key in journal.entries and each.now is not None
            return each, journal.observed(each.key, each.now or "") if known else journal
        return self._write(each, journal)

    def _hold(self, each: Decision) -> Decision:
        try:
            self._machine.hold(int(each.value) if each.value else None)
        except OSError as error:
            return replace(each, state=State.FAILED, why=_words(error))
        return replace(each, state=State.TUNED if each.value else State.REVERTED)

    def _write(self, each: Decision, journal: Journal) -> tuple[Decision, Journal]:
        before = self._now(each)
        if before != each.now:
            why = f"it has just changed to {before}; left for the next pass"
            return replace(each, why=why), journal.as_in(self._earlier, each.key)
        why, state = "", State.FAILED
        try:
            self._machine.write(each.key, each.value)
        except OSError as error:
            why, state = _words(error), _state_of(error, each.setting)
            if state is State.UNSUPPORTED:
                self._refusals[each.key] = Refusal(each.value, why)
        after = self._now(each)
        if after is None:
            return replace(each, state=State.REVERTED, why="it no longer exists"), journal.without([each.key])
        if is_swap(each.key) and each.action is Action.RESTORE and not why:
            # The kernel assigns priorities below 0 again.
            after = each.value
        if why:
            return replace(each, now=after, state=state, why=why), journal.observed(each.key, after)
        state, why = _outcome(each, after)
        return replace(each, now=after, state=state, why=why), journal.completed(each.key, after)

    def _now(self, each: Decision) -> str | None:
        text = self._machine.read(each.key)
        return None if text is None else canonical(each.form, text)


def _outcome(each: Decision, after: str) -> tuple[State, str]:
    """State and reason after a write that the kernel accepted."""
    state = State.REVERTED if each.action is Action.RESTORE else State.TUNED
    if after == each.value:
        return state, ""
    if after == each.now:
        return State.FAILED, f"the kernel accepted {each.value} but kept {after}"
    return state, f"the kernel changed {each.value} to {after}"


def _state_of(error: OSError, setting: Setting) -> State:
    refuses = setting in _REFUSING and error.errno in _REFUSE
    return State.UNSUPPORTED if refuses or error.errno in _NEVER else State.FAILED


def _words(error: OSError) -> str:
    return error.strerror or str(error)
