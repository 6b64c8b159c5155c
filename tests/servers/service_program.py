"""A service as a process of its own, without the command line."""

# What the command line does with an error: one line, and its exit code.
_PROGRAM = """\
import sys
from bettong.errors import BettongError
from bettong.garbage import CollectionPaused
with CollectionPaused():  # as the command line does
    from bettong_{service}.main import main
try:
    main({{}})
except BettongError as error:
    print("ERROR", error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def program_of(service: str) -> str:
    """Python that runs `sender`, `receiver` or `processor`, configured by the environment."""
    return _PROGRAM.format(service=service)
