"""SIGINT in Spark's Python workers: ignored.

It comes to all of a terminal's processes, and a container's. Spark's daemon has its workers raise KeyboardInterrupt,
which within a user's function would be taken for its message's failure. Spark itself ends workers by other signals.
"""

import signal
import threading


def ignore() -> None:
    """For this process, a task's first act. Does nothing on another thread than the main one, where Spark runs none."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
