"""What is to be done with each key, and why: keep, write, restore, or leave alone. Pure.

A value that is neither the old one nor ours was set by somebody else since: it is reported, and never written over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bettong_node_tuner.formats import Form, canonical
from bettong_node_tuner.journal import Entry, Journal
from bettong_node_tuner.processors import targets
from bettong_node_tuner.settings import Mode, TunerSettings
from bettong_node_tuner.snapshot import LATENCY, OFF, Key, Snapshot, is_swap
from bettong_node_tuner.targets import Obstacle, Setting, Target


class Action(StrEnum):
    """What is done to a key."""

    NONE = "none"
    WRITE = "write"
    RESTORE = "restore"
    HOLD = "hold"  # the latency bound, which lives as long as we hold it
    FORGET = "forget"  # it holds its old value, or is gone


class State(StrEnum):
    """How a key stands, as it is reported."""

    TUNED = "tuned"  # as wanted, or as near as the kernel goes
    PENDING = "pending"  # to be written or set back; a dry run ends here
    REVERTED = "reverted"  # back to its old value
    UNSUPPORTED = "unsupported"  # this machine has no such thing, or does not let it be set
    EXTERNAL = "external"  # set by another since we did
    REFUSED = "refused"  # would do harm, or another tuner runs: somebody has to act
    FAILED = "failed"  # the machine said no where it should not


# A node in these states only has all that it can have: its startup taint may go.
DONE = frozenset({State.TUNED, State.REVERTED, State.UNSUPPORTED, State.EXTERNAL})


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one key. `now` and `value` are canonical; `value` is what it is to hold."""

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
    """The machine would not take a value, and will not by being asked again."""

    value: str
    why: str


def decide(
    wanted: TunerSettings, snapshot: Snapshot, journal: Journal, refusals: Mapping[Key, Refusal]
) -> list[Decision]:
    """All decisions, those that restore first. `mode` says which: a dry run decides as an application does."""
    if wanted.mode is Mode.OFF:
        return []
    aims = {} if wanted.mode is Mode.REVERT else _aims(wanted, snapshot, journal)
    left = [key for key in journal.entries if key not in aims]
    found = [_back(key, journal.entries[key], snapshot) for key in reversed(left)]
    if snapshot.held_us is not None and LATENCY not in aims:
        held = str(snapshot.held_us)
        found.append(Decision(Setting.LATENCY, LATENCY, Form.WORDS, held, "", Action.HOLD, State.PENDING))
    return found + [_forth(each, journal.entries.get(key), refusals.get(key)) for key, each in aims.items()]


def is_done(decisions: list[Decision], mode: Mode) -> bool:
    """Whether nothing more is to come, so that the node may take pods."""
    return mode is Mode.DRY_RUN or all(each.state in DONE for each in decisions)


def _aims(wanted: TunerSettings, snapshot: Snapshot, journal: Journal) -> dict[Key, Target]:
    """All targets. Swap areas that we have switched off are no longer listed by the kernel, and still to be off."""
    found = {each.key: each for each in targets(wanted, snapshot)}
    for key in journal.entries if wanted.swap_off else ():
        if is_swap(key):
            off = Target(Setting.SWAP, key, Form.WORDS, OFF, snapshot.value(key))
            found.setdefault(key, off)
    return found


def _forth(target: Target, entry: Entry | None, refusal: Refusal | None) -> Decision:
    """Towards what is wanted."""
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
        return of(Action.NONE, State.TUNED, f"as near to {wanted} as the kernel goes")
    if now == entry.old:
        return of(Action.WRITE, State.PENDING, "it has its old value again")
    if entry.is_ours(now):
        return of(Action.WRITE, State.PENDING)
    return of(Action.NONE, State.EXTERNAL, _external(entry))


def _back(key: Key, entry: Entry, snapshot: Snapshot) -> Decision:
    """Towards what was there before us."""
    text = snapshot.value(key)
    now = None if text is None else canonical(entry.form, text)

    def of(action: Action, state: State, why: str = "") -> Decision:
        return Decision(entry.setting, key, entry.form, now, entry.old, action, state, why)

    if now is None:
        return of(Action.FORGET, State.REVERTED, "it is gone")
    if now == entry.old:
        return of(Action.FORGET, State.REVERTED)
    if entry.is_ours(now):
        return of(Action.RESTORE, State.PENDING)
    return of(Action.NONE, State.EXTERNAL, _external(entry))


def _external(entry: Entry) -> str:
    return f"set by another since: it was {entry.old} before us, {entry.ours[-1]} by us"
