"""How a computation's function is run: message by message, compiled, or over whole frames. The worker runs it.

| mark                  | the function takes and returns         | what it may use         |
| --------------------- | -------------------------------------- | ----------------------- |
| none                  | one message (and one state)            | all of Python           |
| `@bettong.compiled`   | the same, as machine code              | what Numba can compile  |
| `@bettong.vectorized` | messages whose fields are whole columns | numpy and Arrow         |
"""

from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bettong.errors import ApplicationError

_MARK = "__bettong_execution_mode__"


class BuiltIn:
    """A built-in that has a compiled form, so that `compiled` may mark it. Has a `__name__`."""

    __name__: str


Function = TypeVar("Function", bound=Callable[..., Any])
Marked = TypeVar("Marked", bound=Callable[..., Any] | BuiltIn)

# Whole numbers: for each result the index of its row; for each row the index of its key's row in the state.
RowIndexes: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class ExecutionMode(Enum):
    """How a function is run."""

    PYTHON = "Python"
    COMPILED = "compiled"
    VECTORIZED = "vectorized"


def compiled(function: Marked) -> Marked:
    """Marks a function of `map`, `filter`, `flat_map` or `stateful` to be compiled by Numba over a frame's columns.

    Also marks a `bettong.aggregate(...)`: then windows of a fixed size run over columns. Or the function of
    `join_within` with `how="inner"`: then the join does.

    The function itself is unchanged: called from Python, it does the same. Its messages and state must have fixed-width
    fields. Several results are returned in a list, or yielded where there is no state. It may call plain functions,
    make dataclasses, and use text as a str. Where compiled code differs from Python:

    - integers wrap at 64 bits instead of growing; one of a `u64` field raises OverflowError from 2**63 on, unless it is
      passed to a `u64` of a result
    - bytes of a state end before the NULs that pad them; setting bytes that end in NUL raises ValueError
    - assigning text to a field of the state raises ValueError when it is longer than the field
    - a variable that holds text of a message on one branch and a str made in the function on another takes 64 bytes, or
      as many as the message's field; a longer str raises ValueError
    - `str()` and f-strings take text, integers and bools; `repr()` takes integers and bools

    What Numba cannot compile is refused when the application starts, with its line.
    """
    return _marked(function, ExecutionMode.COMPILED)


def vectorized(function: Function) -> Function:
    """Marks a function that is called with a whole frame at once: a message whose fields are columns.

    It is annotated as it would be for single messages, and has to mean the same: **row i of its result may depend on
    row i of its argument, and in `stateful` on the state after the earlier rows of its key**. The result must not
    depend on how messages are batched into frames; a frame may have any number of rows, also none.

    | in         | it takes                     | it returns                                                      |
    | ---------- | ---------------------------- | --------------------------------------------------------------- |
    | `map`      | `Message`                    | `Result`: as many rows                                          |
    | `filter`   | `Message`                    | `bool`: one a row                                               |
    | `flat_map` | `Message`                    | `tuple[Result, bettong.RowIndexes]`: of each result its row     |
    | `stateful` | `Message, State, RowIndexes` | as `map`, as `flat_map`, or None                                |

    Columns: read-only numpy arrays of int64, float64 or bool, and for text and bytes of a bounded width of bytes (dtype
    S; text compares with str too). Fields of other widths are Arrow arrays. `Result(...)` is made of such columns, or
    of plain Python values that apply to all rows. Row indexes count from 0 and never decrease.

    A stateful function's state is columns too, which it changes in place or replaces: a row for each key of the
    frame. The third argument holds for each message the row of its key. Key and state must have fixed widths.

    Numbers are those of compiled functions: integers wrap at 64 bits, those of a `u64` field are negative from 2**63
    on. A division by zero and a result of NaN raise, as in Python; `with numpy.errstate(...)` changes that.

    When it raises, halves of the frame are tried, and halves of those: so the rows that cause it become dead letters,
    or as `on_error` says, each for its own reason, and the others go on. So does each result that does not fit its
    schema. It may reuse the arrays that it returns: they are copied.
    """
    return _marked(function, ExecutionMode.VECTORIZED)


def execution_mode_of(function: object) -> ExecutionMode:
    """The execution mode that a function is marked with."""
    mode: ExecutionMode = getattr(function, _MARK, ExecutionMode.PYTHON)
    return mode


def common_mode(owner: str, functions: Iterable[Callable[..., Any]]) -> ExecutionMode:
    """The execution mode of all functions of a computation. Raises ApplicationError, naming `owner`, if they differ."""
    modes = {execution_mode_of(function) for function in functions}
    if len(modes) > 1:
        marks = " or ".join(
            f"@bettong.{mode.value}"
            for mode in ExecutionMode
            if mode in modes and mode is not ExecutionMode.PYTHON
        )
        raise ApplicationError(f"{owner}: mark all of its functions {marks}, or none")
    return modes.pop()


def refusal(
    function: Callable[..., Any],
    mode: ExecutionMode,
    reason: str,
    *,
    file: str | None = None,
    line: int | None = None,
) -> ApplicationError:
    """The error that a function cannot be run in that mode, and where the cause is; by default its first line."""
    code = function.__code__
    location = f"{Path(file or code.co_filename).resolve()}:{line or code.co_firstlineno}"
    return ApplicationError(f"{function.__name__!r} ({location}) cannot be {mode.value}: {reason}")


def _marked(function: Marked, mode: ExecutionMode) -> Marked:
    is_built_in = isinstance(function, BuiltIn) and mode is ExecutionMode.COMPILED
    if not isinstance(function, FunctionType) and not is_built_in:
        raise ApplicationError(
            f"@bettong.{mode.value}: {function!r} is no plain function: only these can be marked"
        )
    if (marked := execution_mode_of(function)) is not ExecutionMode.PYTHON:
        raise ApplicationError(
            f"@bettong.{mode.value}: {function.__name__!r} is marked @bettong.{marked.value} already"
        )
    setattr(function, _MARK, mode)
    return function
