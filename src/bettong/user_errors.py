"""What functions of users raise."""

from typing import Any

# What a user's function may raise, and is then its message's failure: everything, KeyboardInterrupt and
# asyncio.CancelledError too. Where such functions are called no interrupt of Python's own arrives: services handle or
# ignore SIGINT, and nothing is awaited in there.
ANY_ERROR: tuple[type[BaseException], ...] = (BaseException,)


def reason_of(error: BaseException) -> str:
    """What a user's function raised, as a dead letter says it. The class alone where to make its text raises, too."""
    try:
        text = str(error)
    except ANY_ERROR:
        text = "(to make its text raises, too)"
    return f"{type(error).__name__}: {text}"


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
