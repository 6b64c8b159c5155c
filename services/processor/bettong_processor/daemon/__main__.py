"""Entry of `spark.python.daemon.module`. Imports little: if a prepared process takes over, this one only waits."""

import gc
import os
import socket
import sys

from bettong_processor.daemon.prepared import ADDRESS, FLAG, handed_over, take_over

prepared = FLAG in sys.argv
if prepared or ADDRESS not in os.environ or not handed_over(os.environ[ADDRESS]):
    gc.disable()  # imported modules are never garbage; `serve` enables it again
    from bettong.loaded_modules import hidden

    with hidden("rich"):  # structlog imports it for tracebacks in a style that is not used
        import structlog  # noqa: F401
    from bettong_processor.daemon import serving

    if prepared:
        serving.load()
    if not prepared or take_over(socket.socket(fileno=int(sys.argv[-1])), tether=sys.stdin.fileno()):
        serving.serve()
