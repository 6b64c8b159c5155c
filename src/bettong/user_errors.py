"""What functions of users raise."""

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
