"""Decides what to do with each key, and why: keep, write, restore, or leave alone. Pure.

A value that is neither the old one nor ours was set by somebody else since: it is reported, and never overwritten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bettong_node_tuner.formats import Form, canonical
from bettong_node_tuner.journal import Entry, Journal
from bettong_node_tuner.processors import targets
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import (
    LATENCY,
    OFF,
    Key,
    Namespace,
    Snapshot,
    is_network,
    is_swap,
    is_thread,
)
from bettong_node_tuner.targets import Obstacle, Setting, Target


class Action(StrEnum):
    """What to do with a key."""

    NONE = "none"
    WRITE = "write"
    RESTORE = "restore"
    HOLD = "hold"  # the latency bound, which lasts as long as we hold it
    FORGET = "forget"  # it has its old value, or no longer exists


class State(StrEnum):
    """The state of a key, as it is reported."""

    TUNED = "tuned"  # as wanted, or as close as the kernel allows
    PENDING = "pending"  # to be written or restored; a dry run ends here
    REVERTED = "reverted"  # back to its old value
    UNSUPPORTED = "unsupported"  # this machine has no such setting, or does not let it be set
    EXTERNAL = "external"  # set by somebody else since we did
    REFUSED = "refused"  # would do harm, or another tuner runs: somebody has to act
    FAILED = "failed"  # the machine refused unexpectedly


# A node with only these states is tuned as far as possible: its startup taint may be removed.
DONE = frozenset({State.TUNED, State.REVERTED, State.UNSUPPORTED, State.EXTERNAL})


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one key. `now` and `value` are canonical; `value` is the one that it should hold."""

    setting: Setting
    key: Key
    form: Form
    now: str | None
    value: str
    action: Action
    state: State
    why: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The machine does not accept a value; trying again would not help."""

    value: str
    why: str


def decide(
    wanted: TunerSettings, snapshot: Snapshot, journal: Journal, refusals: Mapping[Key, Refusal]
) -> list[Decision]:
    """All decisions, restoring ones first. They depend on `mode`; a dry run decides as apply does."""
    if wanted.mode is Mode.OFF:
        return []
    aims = {} if wanted.mode is Mode.REVERT else _aims(wanted, snapshot, journal)
    left = [key for key in journal.entries if key not in aims]
    found = [_back(key, journal.entries[key], snapshot) for key in reversed(left)]
    if snapshot.held_us is not None and LATENCY not in aims:
        held = str(snapshot.held_us)
        found.append(Decision(Setting.LATENCY, LATENCY, Form.WORDS, held, "", Action.HOLD, State.PENDING))
    found += [_forth(each, journal.entries.get(key), refusals.get(key)) for key, each in aims.items()]
    return [_within_reach(each, snapshot.outside) for each in found]


def is_done(decisions: list[Decision], mode: Mode) -> bool:
    """Whether nothing is left to do, so that the node may take pods."""
    return mode is Mode.DRY_RUN or all(each.state in DONE for each in decisions)


def _aims(wanted: TunerSettings, snapshot: Snapshot, journal: Journal) -> dict[Key, Target]:
    """All targets, including swap areas that we have switched off: the kernel no longer lists them."""
    found = {each.key: each for each in targets(wanted, snapshot)}
    for key in journal.entries if wanted.swap_off else ():
        if is_swap(key):
            off = Target(Setting.SWAP, key, Form.WORDS, OFF, snapshot.value(key))
            found.setdefault(key, off)
    return found


def _forth(target: Target, entry: Entry | None, refusal: Refusal | None) -> Decision:
    """The decision for a wanted target."""
    now, wanted = target.now, target.wanted

    def of(action: Action, state: State, why: str = "") -> Decision:
        return Decision(target.setting, target.key, target.form, now, wanted, action, state, why)

    if target.obstacle is not None or now is None:
        blocked = State(target.obstacle or Obstacle.UNSUPPORTED)
        return of(Action.NONE, blocked, target.why)
    if now == wanted:
        return of(Action.NONE, State.TUNED)
    if target.key == LATENCY:
        return of(Action.HOLD, State.PENDING)
    if refusal is not None and refusal.value == wanted:
        return of(Action.NONE, State.UNSUPPORTED, refusal.why)
    if entry is None:
        return of(Action.WRITE, State.PENDING)
    if entry.ours[-1] == wanted and entry.got is not None and entry.holds(now):
        return of(Action.NONE, State.TUNED, f"as close to {wanted} as the kernel allows")
    if now == entry.old:
        return of(Action.WRITE, State.PENDING, "it has its old value again")
    if entry.is_ours(now):
        return of(Action.WRITE, State.PENDING)
    return of(Action.NONE, State.EXTERNAL, _external(entry))


def _back(key: Key, entry: Entry, snapshot: Snapshot) -> Decision:
    """The decision to restore the old value of a key."""
    text = snapshot.value(key)
    now = None if text is None else canonical(entry.form, text)

    def of(action: Action, state: State, why: str = "") -> Decision:
        return Decision(entry.setting, key, entry.form, now, entry.old, action, state, why)

    if now is None:
        return of(Action.FORGET, State.REVERTED, "it no longer exists")
    if now == entry.old:
        return of(Action.FORGET, State.REVERTED)
    if entry.is_ours(now):
        return of(Action.RESTORE, State.PENDING)
    return of(Action.NONE, State.EXTERNAL, _external(entry))


def _within_reach(each: Decision, outside: frozenset[Namespace]) -> Decision:
    """The decision, refused where the tuner is outside of the node's namespace that the key belongs to.

    What it sees of a sysctl of net is then another one's value, on which nothing can be decided. Threads it sees as
    they are, for /proc is the node's; but the id by which it would schedule one is another thread's, or nobody's.
    """
    if is_network(each.key) and Namespace.NET in outside:
        why = "the tuner is not in the node's network, which has this: give its pod hostNetwork (mode revert has it)"
        return replace(each, now=None, action=Action.NONE, state=State.REFUSED, why=why)
    if is_thread(each.key) and Namespace.PID in outside and each.action in {Action.WRITE, Action.RESTORE}:
        why = "the tuner is not among the node's processes: give its pod hostPID (mode revert has it)"
        return replace(each, action=Action.NONE, state=State.REFUSED, why=why)
    return each


def _external(entry: Entry) -> str:
    return f"changed by another process: the old value was {entry.old}, the tuner wrote {entry.ours[-1]}"
