"""The policies for a message that a computation cannot process, or that a sink's destination rejects for good.

| `on_error`      | the message                                      | what follows it             |
| --------------- | ------------------------------------------------ | --------------------------- |
| `"dead-letter"` | goes to the sink `dead-letters`, with its reason | goes on                     |
| `"skip"`        | is counted, and nothing else                     | goes on                     |
| `"stop"`        | stays the next one of its log                    | waits: the processor ends   |

A processor that stopped resumes at that message when it is started again, with code that can process it. For a source,
which the sender reads, `"stop"` refuses the whole frame: its client is told why, and the log holds nothing of it. For
the destination of a sink, `"stop"` makes that sink wait; the others go on.
"""

from typing import Literal, TypeAlias, get_args

from bettong.errors import ApplicationError

OnError: TypeAlias = Literal["dead-letter", "skip", "stop"]

DEAD_LETTER: OnError = "dead-letter"
SKIP: OnError = "skip"
STOP: OnError = "stop"


def check_on_error(owner: str, on_error: object) -> None:
    """Raises ApplicationError, naming `owner`, for any other value."""
    if on_error not in get_args(OnError):
        expected = ", ".join(repr(each) for each in get_args(OnError))
        raise ApplicationError(f"{owner}: on_error={on_error!r}: expected one of {expected}")
