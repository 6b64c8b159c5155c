"""Entry of `spark.python.daemon.module`. Imports little: where a prepared process takes over, this one only waits."""

import os
import socket
import sys

from bettong_processor.daemon.prepared import ADDRESS, FLAG, handed_over, take_over

if FLAG in sys.argv:
    from bettong_processor.daemon.serving import load, serve

    load()
    if take_over(socket.socket(fileno=int(sys.argv[-1])), tether=sys.stdin.fileno()):
        serve()
elif ADDRESS not in os.environ or not handed_over(os.environ[ADDRESS]):
    from bettong_processor.daemon.serving import serve

    serve()
