"""Ignores SIGINT in Spark's Python workers.

SIGINT reaches all processes of a terminal, or of a container. Spark's daemon makes its workers raise KeyboardInterrupt,
which within a user's function would count as a failure of its message. Spark itself ends workers by other signals.
"""

import signal
import threading


def ignore() -> None:
    """Call it first in a task. Does nothing outside the main thread, in which Spark runs all tasks."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
