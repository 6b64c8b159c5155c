"""Every error that the node tuner raises on purpose.

    TunerError
    ├── SettingsError   settings are missing or contradict each other
    ├── JournalError    the journal cannot be read or written: nothing is changed without one
    └── NodeError       the API server does not answer or refuses: tried again at the next pass

A setting that the machine refuses is no error: it is reported, and the others are still applied.
"""

from typing import ClassVar


class TunerError(Exception):
    """Root of the tree. Its text names the object, what was expected and the remedy; `exit_code` ends the command."""

    exit_code: ClassVar[int] = 1


class SettingsError(TunerError):
    """Settings are wrong; the text lists all faults at once."""

    exit_code = 4


class JournalError(TunerError):
    """The journal is damaged, or its folder cannot be written."""

    exit_code = 5


class NodeError(TunerError):
    """The API server does not answer, or refuses. The node is tuned anyway."""
