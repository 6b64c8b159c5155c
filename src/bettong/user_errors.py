"""What functions of users raise: in words, and where in their code.

A dead letter is a result like others, so what it says of a place must be the same wherever, and however often, the log
is folded: no path of a machine, no depth of Bettong's own calls, nothing of what was raised for other messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from sysconfig import get_path
from types import FrameType, TracebackType
from typing import Any, Self

# What a user's function may raise, and is then its message's failure: everything, KeyboardInterrupt and
# asyncio.CancelledError too. Where such functions are called no interrupt of Python's own arrives: services handle or
# ignore SIGINT, and nothing is awaited in there.
ANY_ERROR: tuple[type[BaseException], ...] = (BaseException,)

# Lines of a traceback, and bytes of a file's name and of a function's in one: a traceback stands in each dead letter,
# and with more than a kilobyte of it small messages would become a hundred times their size.
TRACEBACK_LINES_MAX = 8
TRACEBACK_LINE_BYTES_MAX = 120
_FILE_BYTES_MAX = 60
_FUNCTION_BYTES_MAX = 40
# Errors that led to one another by `raise ... from`: a chain may be as long as a program likes, or a ring.
_CAUSES_MAX = 3

_OWN = ("bettong", "bettong_sender", "bettong_processor", "bettong_receiver", "bettong_console")
# What calls functions of users for Bettong, and what they call: how they look inside helps nobody.
_ENGINES = ("numba", "llvmlite", "numpy", "pyarrow", "pyspark", "py4j")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PYTHON = tuple({PurePath(get_path(name)).parts for name in ("stdlib", "platstdlib")})


class _Whose(Enum):
    """Whose code a file holds. NOBODY: Python's own, or none that could be read."""

    USER = 1
    INSTALLED = 2
    NOBODY = 3


class Reason(str):
    """Why a message cannot be processed, where a user's function raised: text as any other, and the function's lines.

    `traceback`: `file:line in function`, the innermost last; the user's own code alone, none where it is not known.
    """

    __slots__ = ("traceback",)
    traceback: tuple[str, ...]

    def __new__(cls, text: str, traceback: tuple[str, ...] = ()) -> Self:
        """The same text, with a place."""
        made = super().__new__(cls, text)
        made.traceback = traceback
        return made


def reason_of(error: BaseException, before: str = "") -> Reason:
    """What a user's function raised, as a dead letter says it. The class alone where to make its text raises, too.

    `before`: what the text begins with.
    """
    try:
        text = str(error)
    except ANY_ERROR:
        text = "(to make its text raises, too)"
    return Reason(f"{before}{type(error).__name__}: {text}", user_lines(error))


def traceback_of(reason: str) -> tuple[str, ...]:
    """Where in the user's code, if that is known of a reason."""
    return reason.traceback if isinstance(reason, Reason) else ()


def cause_in_a_line(error: BaseException) -> str:
    """What it raised, in one line: Spark's texts hold Java's stack, and name the cause at its end."""
    try:
        java: Any = getattr(error, "java_exception", None)
        while java is not None and (cause := java.getCause()) is not None:
            java = cause
        if java is not None:
            return str(java.toString()).partition("\n")[0]
    except ANY_ERROR:  # Java may have gone
        return type(error).__name__
    return reason_of(error).strip().partition("\n")[0]


def user_lines(error: BaseException) -> tuple[str, ...]:
    """The lines of the user's code that an error came through: `file:line in function`, the innermost last.

    Before them those of what it was raised from, and a line that names that error. An error that was only at work
    meanwhile (`__context__`) is left out: it may be another message's. Files are named from the folder of their
    package on, or alone.
    """
    lines = _lines_of(error)
    cause = error.__cause__
    for _ in range(_CAUSES_MAX - 1):
        if cause is None or cause is error or not (before := _lines_of(cause)):
            break
        led = f"raised {_shortened(type(cause).__name__, _FUNCTION_BYTES_MAX)}, and from that:"
        lines = [*before, led, *lines] if lines else before
        cause = cause.__cause__
    return tuple(lines[-TRACEBACK_LINES_MAX:])


def _lines_of(error: BaseException) -> list[str]:
    """Of one error. Lines of a recursion that repeat each other are one."""
    lines = _own_lines(error.__traceback__)
    if isinstance(error, RecursionError):
        return list(_until_repeated(lines))
    found: deque[str] = deque(maxlen=TRACEBACK_LINES_MAX)
    for line in lines:
        if not found or found[-1] != line:
            found.append(line)
    return list(found)


def _until_repeated(lines: Iterator[str]) -> Iterator[str]:
    """The outermost ones: how deep Python could go, and so where it gave up, is a matter of what was called before."""
    seen: set[str] = set()
    for line in lines:
        if line in seen or len(seen) == TRACEBACK_LINES_MAX:
            return
        seen.add(line)
        yield line


def _own_lines(trace: TracebackType | None) -> Iterator[str]:
    """The lines of the user's code in a traceback.

    It ends where the user's code ends and Bettong's begins again: behind that lie the lines of before, where a
    function raises the same object again. Of installed packages only the one that the function is of is the user's.
    """
    package: str | None = None
    while trace is not None:
        code, module = trace.tb_frame.f_code, _module_of(trace.tb_frame)
        top = module.partition(".")[0]
        if top in _OWN:
            if package is not None:
                return
        elif top not in _ENGINES:
            whose = _origin_of(code.co_filename)
            if whose is _Whose.USER or (whose is _Whose.INSTALLED and package in (None, top)):
                package = top if package is None else package
                yield _line(code.co_filename, module, trace.tb_lineno, code.co_qualname)
        trace = trace.tb_next


def _module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


@lru_cache(maxsize=1024)
def _origin_of(file: str) -> _Whose:
    if file.startswith("<"):  # made at run time
        return _Whose.NOBODY
    parts = PurePath(file).parts
    if not _INSTALLED.isdisjoint(parts):
        return _Whose.INSTALLED
    is_python = any(parts[: len(of_python)] == of_python for of_python in _PYTHON)
    return _Whose.NOBODY if is_python else _Whose.USER


@lru_cache(maxsize=1024)
def _line(file: str, module: str, line: int, function: str) -> str:
    """The file is named from the folder of its outermost package on: what lies above is a machine's own."""
    parts = PurePath(file).parts
    folders = module.count(".") + (parts[-1:] == ("__init__.py",))
    name = "/".join(parts[-1 - folders :])
    return f"{_shortened(name, _FILE_BYTES_MAX)}:{line} in {_shortened(function, _FUNCTION_BYTES_MAX)}"


def _shortened(text: str, bytes_max: int) -> str:
    """One line that is Unicode text; of a long one the end, which says most."""
    shown = "".join(each if each.isprintable() else "?" for each in text)
    data = shown.encode(errors="replace")
    return shown if len(data) <= bytes_max else "..." + data[3 - bytes_max :].decode(errors="ignore")
