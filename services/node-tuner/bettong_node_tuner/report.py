"""Decisions as a table for people, and as the annotation of a node. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from bettong_node_tuner.decisions import Action, Decision, State, is_done
from bettong_node_tuner.settings import Mode
from bettong_node_tuner.snapshot import is_file
from bettong_node_tuner.targets import Setting

ANNOTATION = "bettong/node-tuning"
# An annotation is an overview; `bettong-node-tuner plan` has all lines.
_REASONS_MAX = 3
_HEADS = ("SETTING", "FILE", "NOW", "WANTED", "STATE", "WHAT AND WHY")
_DOES = {
    Action.NONE: "",
    Action.WRITE: "would write",
    Action.RESTORE: "would restore",
    Action.HOLD: "would hold",
    Action.FORGET: "would forget",
}


def annotation(decisions: Sequence[Decision], mode: Mode) -> str:
    """Mode, whether all is done, and each setting's number of files by state, with a few reasons; one line of JSON."""
    settings: dict[str, dict[str, object]] = {}
    for setting in Setting:
        own = [each for each in decisions if each.setting is setting]
        if own:
            counts = Counter(each.state.value for each in own)
            settings[setting.value] = {state: counts[state] for state in sorted(counts)}
            if why := _reasons(own):
                settings[setting.value]["why"] = why
    content = {"mode": mode.value, "done": is_done(list(decisions), mode), "settings": settings}
    return json.dumps(content, separators=(",", ":"))


def _reasons(decisions: Iterable[Decision]) -> list[str]:
    found = [
        f"{location(each)}: {each.why}" for each in decisions if each.why and each.state is not State.TUNED
    ]
    return found[:_REASONS_MAX]


def location(decision: Decision) -> str:
    """A file's path, or the key of a swap area or a thread."""
    return f"/{decision.key}" if is_file(decision.key) else decision.key


def table(decisions: Sequence[Decision], *, planned: bool) -> str:
    """A line for each key, in columns; `planned`: shows what would be done, else what was done."""
    rows = [_HEADS, *(_row(each, planned=planned) for each in decisions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _row(each: Decision, *, planned: bool) -> tuple[str, ...]:
    does = _DOES[each.action] if planned else ""
    what = ": ".join(filter(None, (does, each.why)))
    return each.setting.value, location(each), _shown(each.now), _shown(each.value), each.state.value, what


def _shown(value: str | None) -> str:
    return "-" if value is None or not value else value
