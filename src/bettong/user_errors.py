"""Describes errors of users' functions: a reason as text, and the lines of the user's code.

A dead letter is a result like others, so these must be the same on every machine and in every replay: no absolute
paths, no lines of Bettong's own calls, nothing about errors of other messages.
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

# What a user's function may raise as a failure of its message: everything, KeyboardInterrupt and asyncio.CancelledError
# too. Where such functions are called Python itself raises no interrupt: services handle or ignore SIGINT, and nothing
# is awaited.
ANY_ERROR: tuple[type[BaseException], ...] = (BaseException,)

# Lines of a traceback, and bytes of the names of a file and a function in one: each dead letter has a traceback, and
# with more than a kilobyte of it small messages would grow a hundredfold.
TRACEBACK_LINES_MAX = 8
TRACEBACK_LINE_BYTES_MAX = 120
_FILE_BYTES_MAX = 60
_FUNCTION_BYTES_MAX = 40
# Errors that led to one another by `raise ... from`: a chain may be as long as a program likes, or a ring.
_CAUSES_MAX = 3

_OWN = ("bettong", "bettong_sender", "bettong_processor", "bettong_receiver", "bettong_console")
# Libraries that call users' functions for Bettong, or that they call: lines within them help nobody.
_ENGINES = ("numba", "llvmlite", "numpy", "pyarrow", "pyspark", "py4j")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PYTHON = tuple({PurePath(get_path(name)).parts for name in ("stdlib", "platstdlib")})


class _Whose(Enum):
    """Whose code a file holds. NOBODY: Python's own, or none that could be read."""

    USER = 1
    INSTALLED = 2
    NOBODY = 3


class Reason(str):
    """Why a message cannot be processed: a text, and the lines of the user's function that raised.

    `traceback`: `file:line in function`, innermost last; only the user's own code, empty if not known.
    """

    __slots__ = ("traceback",)
    traceback: tuple[str, ...]

    def __new__(cls, text: str, traceback: tuple[str, ...] = ()) -> Self:
        """A text with a traceback."""
        made = super().__new__(cls, text)
        made.traceback = traceback
        return made


def reason_of(error: BaseException, before: str = "") -> Reason:
    """The reason in a dead letter for an error of a user's function; the error's text is replaced if `str` raises.

    `before`: a prefix of the text.
    """
    try:
        text = str(error)
    except ANY_ERROR:
        text = "(to make its text raises, too)"
    return Reason(f"{before}{type(error).__name__}: {text}", user_lines(error))


def traceback_of(reason: str) -> tuple[str, ...]:
    """The lines of the user's code of a reason; empty if not known."""
    return reason.traceback if isinstance(reason, Reason) else ()


def cause_in_a_line(error: BaseException) -> str:
    """An error in one line. Spark's texts contain Java's stack trace, and name the cause at its end."""
    try:
        java: Any = getattr(error, "java_exception", None)
        while java is not None and (cause := java.getCause()) is not None:
            java = cause
        if java is not None:
            return str(java.toString()).partition("\n")[0]
    except ANY_ERROR:  # Java may have ended
        return type(error).__name__
    return reason_of(error).strip().partition("\n")[0]


def user_lines(error: BaseException) -> tuple[str, ...]:
    """The lines of the user's code in an error's traceback: `file:line in function`, innermost last.

    They are preceded by those of its cause (`raise ... from`), and a line that names that cause. `__context__`, an
    error that was being handled, is left out, as it may be another message's. File paths begin with the folder of the
    outermost package; without a package they are names only.
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
    """The lines of one error. Repeated lines of a recursion are one."""
    lines = _own_lines(error.__traceback__)
    if isinstance(error, RecursionError):
        return list(_until_repeated(lines))
    found: deque[str] = deque(maxlen=TRACEBACK_LINES_MAX)
    for line in lines:
        if not found or found[-1] != line:
            found.append(line)
    return list(found)


def _until_repeated(lines: Iterator[str]) -> Iterator[str]:
    """The outermost lines: the depth at which Python raises RecursionError depends on the calls around the function."""
    seen: set[str] = set()
    for line in lines:
        if line in seen or len(seen) == TRACEBACK_LINES_MAX:
            return
        seen.add(line)
        yield line


def _own_lines(trace: TracebackType | None) -> Iterator[str]:
    """The lines of the user's code in a traceback.

    It ends where Bettong's code follows the user's: if a function raises the same object again, older lines follow
    there. Of installed packages, only the function's own counts as the user's.
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
    """The file's path begins with the folder of its outermost package: parents differ between machines."""
    parts = PurePath(file).parts
    folders = module.count(".") + (parts[-1:] == ("__init__.py",))
    name = "/".join(parts[-1 - folders :])
    return f"{_shortened(name, _FILE_BYTES_MAX)}:{line} in {_shortened(function, _FUNCTION_BYTES_MAX)}"


def _shortened(text: str, bytes_max: int) -> str:
    """Valid Unicode text in one line; of a long text the end, which says most."""
    shown = "".join(each if each.isprintable() else "?" for each in text)
    data = shown.encode(errors="replace")
    return shown if len(data) <= bytes_max else "..." + data[3 - bytes_max :].decode(errors="ignore")
