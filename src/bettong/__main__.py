"""The command `bettong`, and `python -m bettong`. Imports the command line where a Ctrl-C meanwhile is no traceback."""

import sys

from bettong.garbage import CollectionPaused


def main() -> None:
    """Runs the command line, and ends the process with its exit code."""
    try:
        with CollectionPaused():  # what is loaded stays
            from bettong.cli.main import main as run
    except KeyboardInterrupt:
        from bettong.cli.exit_codes import INTERRUPTED

        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
