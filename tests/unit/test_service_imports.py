"""What services do not load: a compiler where nothing is folded (60 MB), Rich for logs, pandas, linear algebra."""

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


_KERNEL = """
import sys
import numpy as np
import numba
import bettong.machine_code

assert numba.njit(lambda numbers: numbers[0] + numbers[1])(np.ones(2)) == 2
print(*{"scipy.linalg"} & sys.modules.keys())
product = numba.njit(lambda one, other: one @ other)
assert product(np.eye(2), np.full((2, 2), 3.0)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
assert numba.njit(lambda one: np.linalg.inv(one))(2 * np.eye(2)).tolist() == [[0.5, 0.0], [0.0, 0.5]]
"""


def test_a_kernel_loads_no_linear_algebra_and_one_that_multiplies_matrices_does() -> None:
    said = subprocess.run([sys.executable, "-c", _KERNEL], check=True, capture_output=True, text=True).stdout
    assert said.split() == []


_FLAGS = """
import sys
from dataclasses import dataclass
from bettong.schema.schema import schema_of
from bettong.schema.values import column_of_values

@dataclass
class Order:
    paid: bool

(field,) = schema_of(Order).fields
assert column_of_values(field, [True, False]).tolist() == [1, 0]
print(*{"pandas"} & sys.modules.keys())
"""


def test_a_state_with_a_flag_loads_no_pandas() -> None:
    said = subprocess.run([sys.executable, "-c", _FLAGS], check=True, capture_output=True, text=True).stdout
    assert said.split() == []
