"""What computations of random graphs are given beside their functions."""

from __future__ import annotations

from random import Random
from typing import Any, get_args

from bettong.application.execution_mode import ExecutionMode
from bettong.application.joins.kinds import AsOf, How, InWindow, JoinKind, Latest, Within, in_window
from bettong.application.lifetime import Lifetime
from bettong.application.timers import Clock
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions
from bettong.application.windows.windowing import Late
from tests.simulation.function_table import Function
from tests.simulation.join_functions import IS_GONE
from tests.simulation.open_windows import WindowOptions

# A key's only window has fired, and no other is open.
_NO_OLDEST = ("oldest", Ephemeral)


def lifetime(random: Random) -> Lifetime | None:
    """How long a state lives, if not for ever."""
    if random.random() < 0.6:
        return None
    return Lifetime(random.choice([1, 10, 60]), random.choice(list(Clock)))


def window_options(random: Random, function: Function, mode: ExecutionMode) -> WindowOptions:
    """Windows that a function can read: some are for what comes in one order alone, or have a compiled form."""
    tumbling, sliding, sessions = ranges_and_sessions(random)
    counts = Counts(random.randrange(1, 5), random.choice([None, 1, 40]))
    ephemeral = Ephemeral(random.randrange(1, 20), random.choice([0, 4, 30]))
    kinds: list[Ranges | Sessions | Counts | Ephemeral] = [tumbling, counts, ephemeral, ephemeral]
    if mode is ExecutionMode.COMPILED:
        kinds = [tumbling, sliding, sessions, counts, ephemeral]
    elif function.name != "sequences":
        kinds += [sliding, sessions]
    kind = random.choice(kinds)
    if isinstance(kind, Counts):
        return WindowOptions(kind)
    late = random.choice([each for each in get_args(Late) if (each, type(kind)) != _NO_OLDEST])
    fills_empty = not function.needs_messages and isinstance(kind, Ranges)
    emit_empty = fills_empty and random.random() < 0.3
    early_ns = random.choice([1, 10, 40, 100]) if random.random() < 0.4 else None
    return WindowOptions(kind, late, emit_empty, early_ns)


def ranges_and_sessions(random: Random) -> tuple[Ranges, Ranges, Sessions]:
    """One that is tumbling, one that is sliding, and sessions."""
    slide_ns = random.randrange(1, 20)
    delay_ns = random.choice([0, 0, 4, 30])
    tumbling = Ranges(slide_ns, slide_ns, random.randrange(slide_ns), delay_ns)
    sliding = Ranges(slide_ns * random.randrange(2, 9) // 2, slide_ns, random.randrange(slide_ns), delay_ns)
    return tumbling, sliding, Sessions(random.randrange(1, 20), delay_ns)


def join_kind(random: Random, right: type[Any]) -> tuple[JoinKind, How]:
    """Who meets whom, and who comes alone. `right`: what the messages of the right side are."""
    lower_ns = random.randrange(-30, 30)
    within = Within(lower_ns, lower_ns + random.randrange(40))
    latest = Latest(random.choice([None, IS_GONE[right]]))
    kinds: list[JoinKind] = [within, within, AsOf(random.choice([None, 0, 5, 30])), latest]
    kinds.append(in_window("join", random.choice(ranges_and_sessions(random))))
    kind = random.choice(kinds)
    hows = get_args(How)
    return kind, random.choice(hows if isinstance(kind, Within | InWindow) else hows[:2])
