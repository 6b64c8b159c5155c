"""Runs one job at a time on its own thread, so that a slow disk or store does not block the caller."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Background:
    """Runs jobs one after the other. Use it from one thread."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._last: Future[None] | None = None

    def idle(self) -> bool:
        """Whether a job can be started. Raises the exception of the last job."""
        if self._last is None:
            return True
        if not self._last.done():
            return False
        last, self._last = self._last, None
        last.result()
        return True

    def start(self, job: Callable[[], None]) -> None:
        """Starts a job, behind the last one if `idle` has not returned True: then that one's exception is lost."""
        self._last = self._executor.submit(job)

    def finish(self, timeout_s: float) -> bool:
        """Waits up to `timeout_s` for the last job; False if it still runs. Raises its exception."""
        if self._last is not None:
            wait([self._last], timeout_s)
        return self.idle()

    def close(self) -> None:
        """Starts no more jobs. Does not wait for a running one."""
        self._executor.shutdown(wait=False, cancel_futures=True)
