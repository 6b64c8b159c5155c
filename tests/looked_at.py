"""Processes that are looked at while they start and end, as a busy machine has them do at any moment."""

import psutil


def has_ended(process: psutil.Process | int) -> bool:
    """Whether it is gone, or a zombie. One that is known by its number alone may be a later one that has the same."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return not found.is_running() or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def words_of(process: psutil.Process) -> list[str]:
    """Its command line: empty for one that has ended, and for a moment while it starts; before, its parent's."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
