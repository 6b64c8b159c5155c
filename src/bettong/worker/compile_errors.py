"""Turns Numba's error for a function that it cannot compile into one line: where, and why.

Numba's text fills a page; the first line that is not about its own passes is the reason. The location may be a line of
the user's file, a line of the loop around the function (then a result does not fit), or missing (then the function is
searched for the unknown name that the reason quotes).
"""

import dis
import inspect
import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from bettong.application.execution_mode import ExecutionMode, refusal
from bettong.errors import ApplicationError
from bettong.worker.code_facts import codes

REMEDY = "Remove @bettong.compiled, or set BETTONG_COMPILED=off, to run it as plain Python"
_REASON_CHARACTERS_MAX = 300
_PASSES = re.compile(r"(Failed in |During: |File |- |Overload |Operator |With argument|raised from)")
_LOCATION = re.compile(r'(?:File "([^"]+)", line (\d+)|\b(?:at|from) (\S[^"\n]*) \((\d+)\))')
# Files that are not the user's: the loop around the function, generated or cached, and our extensions of Numba.
_LOOP = re.compile(r"^<string>$|kernel_[0-9a-f]+\.py$|\bnumba_types/\w+\.py$")
# An error of one of our extensions of Numba, raised while Numba looked for an overload that fits.
_REFUSED = re.compile(r"NumbaTypeError: (.+)\n\s*raised from \S*\bnumba_types/")
_RESULT = re.compile(r"(?:result|each)\.(\w+)")
_NO_MESSAGE = "is read where there is no message; ask for it before, as `if right is None`"

_REWORDED = (
    # From an operator that changes an array in place, where Numba finds no form of it for the array's own type.
    (
        re.compile(r"^'NoneType' object has no attribute 'args'$"),
        "an array changed in place takes results of its type alone: one of integers takes no fractions; use float64",
    ),
    (re.compile(r"\[char x (\d+)\]"), r"bytes[\1]"),
    # From a join's function whose partner may be missing.
    (
        re.compile(r"^Unknown attribute '(\w+)' of type none$"),
        rf"\1 {_NO_MESSAGE}",
    ),
    (re.compile(r"^Numba has no bool\((\w+)\(.*\)\)$"), r"a \1 is neither true nor false; ask `is None`"),
    (re.compile(r"of type (\w+)\(.*\)$"), r"of type \1"),
    # From Python 3.13, in the words that Numba has for 3.11 and 3.12.
    (
        re.compile(r"Use of unsupported opcode \(FORMAT_WITH_SPEC\) found"),
        "format spec in f-strings not supported yet",
    ),
    (re.compile(r"Numba has no is_longer\((.*), Literal.*"), r"expected text, not \1"),
    (re.compile(r"Numba has no as_given\((.*)\)"), r"expected an integer, not \1"),
    (re.compile(r"Cannot bind .* due to \"\w+: (.*)\"\.?"), r"\1"),
)


def explain(function: Callable[..., Any], source: str, error: Exception) -> ApplicationError:
    """The error to show the user. `source`: that of the loop around the function."""
    reason = _reason(error)
    named_line = _line_of_name(function.__code__, reason)
    if "use of yield in a closure" in reason:
        named_line = _line_of_generator(function.__code__)
        reason = "Numba has no generators within a function; write a list, [... for ...], instead"
    # Line 1 is what Numba says when it does not know.
    found = [(file or at, line or at_line) for file, line, at, at_line in _LOCATION.findall(str(error))]
    locations = [(file, int(line)) for file, line in found if line != "1"]
    # The first location named is the innermost: it may be in a function that this one calls.
    users = next((location for location in locations if not _LOOP.search(location[0])), None)
    if users is None and locations and (field := _field_stored(source, locations[0][1])):
        is_none = reason == f"{field} {_NO_MESSAGE}"
        reason = (
            "it returns None, where a result is expected"
            if is_none
            else f"field {field!r} of what it returns: {reason}"
        )
    file, line = users or (None, named_line)
    own = function.__code__.co_filename
    file = own if file is not None and own.endswith(file) else file  # Numba cuts off the working directory
    return refusal(function, ExecutionMode.COMPILED, f"{reason}. {REMEDY}", file=file, line=line)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no field {error.args[0]!r}"
    if "getiter with parameters (LiteralList(" in str(error):
        # Numba's error for a list of messages that it cannot bring to one type.
        return "its results differ in type: in a list, a field is a message's text in each, or a constant in each"
    if (refused := _REFUSED.search(str(error))) is not None:
        return refused[1][:_REASON_CHARACTERS_MAX]
    facts = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in facts if not _PASSES.match(line)] or facts or [type(error).__name__]
    signature = next((line.removeprefix(">>> ") for line in facts if line.startswith(">>> ")), None)
    reason = (
        f"Numba has no {signature}"
        if reasons[0].startswith("No implementation") and signature
        else reasons[0]
    )
    for said, plain in _REWORDED:
        reason = said.sub(plain, reason)
    return re.split(r": %|\.* Raised from", reason)[0].rstrip(".")[:_REASON_CHARACTERS_MAX]


def _field_stored(source: str, line: int) -> str | None:
    lines = source.splitlines()
    found = _RESULT.search(lines[line - 1]) if 0 < line <= len(lines) else None
    return found.group(1) if found else None


def _line_of_name(code: CodeType, reason: str) -> int | None:
    """The line where the function uses a name that the reason quotes."""
    names = set(re.findall(r"(?:name|no field) '(\w+)'", reason))
    for line, name in _names(code):
        if name in names:
            return line
    return None


def _line_of_generator(code: CodeType) -> int | None:
    within = (each for each in codes(code) if each is not code and each.co_flags & inspect.CO_GENERATOR)
    return next((each.co_firstlineno for each in within), None)


def _names(code: CodeType) -> Iterator[tuple[int | None, object]]:
    for each in codes(code):
        for step in dis.get_instructions(each):
            if step.positions is not None:
                yield step.positions.lineno, step.argval
