"""The history as JSON: each series of a span is written once per inspection, however many pages draw it. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from bettong_console.history import History, Span


@dataclass(slots=True)
class _Written:
    """Series of a span by name, as of a version, from this first value on."""

    version: int
    first_s: int
    texts: dict[str, str] = field(default_factory=dict)


class HistoryTexts:
    """The texts of one history. Bounded by its series."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._written: dict[str, _Written] = {}

    def text(self, span: Span, names: Collection[str] | None, *, version: int, now_s: float) -> str:
        """The existing series of these names, all for None. `version`: changes with each inspection."""
        first_s = self._history.first_s(span, now_s)
        written = self._written.get(span.name)
        if written is None or (written.version, written.first_s) != (version, first_s):
            written = self._written[span.name] = _Written(version, first_s)
        known = self._history.names(span)
        wanted = [name for name in known if names is None or name in names]
        missing = [name for name in wanted if name not in written.texts]
        for name, values in self._history.stretch(span, now_s, missing).values.items():
            written.texts[name] = _text(values)
        series = ",".join(f"{json.dumps(name)}:{written.texts[name]}" for name in wanted)
        return (
            f'{{"span":"{span.name}","step_s":{span.step_s},"first_s":{first_s},'
            f'"dropped":{self._history.dropped},"series":{{{series}}}}}'
        )


def _text(values: Sequence[float | None]) -> str:
    """A series, with five digits: more than a chart shows."""
    return f"[{','.join('null' if value is None else f'{value:.5g}' for value in values)}]"
