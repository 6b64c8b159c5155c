"""A process that ends without being taken apart leaves nothing undone."""

import subprocess
import sys

PROGRAM = """
import atexit, sys, threading, time
from bettong.cli.ending import QuickExit

end = QuickExit()
atexit.register(print, "handler")


class Last:
    def __del__(self):
        print("taken apart")


last = Last()
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("said", end=" ")
{status}
sys.exit(3)
"""


def ended(status: str) -> tuple[int, str]:
    """The exit code of the program, and what it printed."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(status=status)], capture_output=True, text=True, check=False
    )
    assert found.stderr == ""
    return found.returncode, found.stdout


def test_threads_handlers_and_output_are_waited_for() -> None:
    assert ended("end.status = 6") == (6, "said thread\nhandler\n")


def test_without_a_status_a_process_ends_as_ever() -> None:
    assert ended("") == (3, "said thread\nhandler\ntaken apart\n")


def test_output_that_nobody_reads_is_no_fault() -> None:
    assert ended("sys.stdout.close(); end.status = 5; sys.stdout = open('/dev/full', 'w'); print(1)")[0] == 5
