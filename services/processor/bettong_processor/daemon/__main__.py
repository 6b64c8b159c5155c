"""Entry of `spark.python.daemon.module`. Imports little: where a prepared process takes over, this one only waits."""

import gc
import os
import socket
import sys

from bettong_processor.daemon.prepared import ADDRESS, FLAG, handed_over, take_over

prepared = FLAG in sys.argv
if prepared or ADDRESS not in os.environ or not handed_over(os.environ[ADDRESS]):
    gc.disable()  # what is loaded stays; `serve` has it looked through once
    from bettong.loaded_modules import hidden

    with hidden("rich"):  # which structlog has for tracebacks that are not ours
        import structlog  # noqa: F401
    from bettong_processor.daemon import serving

    if prepared:
        serving.load()
    if not prepared or take_over(socket.socket(fileno=int(sys.argv[-1])), tether=sys.stdin.fileno()):
        serving.serve()
