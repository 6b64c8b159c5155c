"""What a receiver loads: it compiles nothing, and a compiler is 60 MB of its memory."""

import subprocess
import sys


def test_a_receiver_loads_no_compiler() -> None:
    code = "import sys, bettong_receiver.service; print(*{'numba', 'llvmlite', 'scipy'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.split() == []
