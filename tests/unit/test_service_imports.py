"""What services load that fold nothing: no compiler, which is 60 MB of memory, and a receiver no Rich for its logs."""

import subprocess
import sys

_CODE = """
import sys
from bettong.cli import services

class Entry:
    def load(self):
        import bettong_receiver.main
        return lambda flags: print(*{"numba", "llvmlite", "scipy", "rich"} & sys.modules.keys())

services.found = lambda name: Entry()
services.service_command("receiver")()
"""


def test_a_receiver_loads_no_compiler_and_nothing_for_terminals() -> None:
    said = subprocess.run([sys.executable, "-c", _CODE], check=True, capture_output=True, text=True).stdout
    assert said.split() == []


def test_a_console_loads_no_compiler() -> None:
    code = "import sys, bettong_console.main\nprint(*{'numba', 'llvmlite', 'scipy'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.split() == []
