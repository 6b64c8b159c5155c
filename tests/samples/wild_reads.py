"""A read at an address that is nobody's, for functions that Numba compiles: their arrays' indexes are checked."""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _wild_read(_typing: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """Its type and its code, as Numba asks for them."""
    del address  # its type: an address is an integer

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        found = builder.load(pointer)
        found.volatile = True  # else it may be left out, for nobody may read there
        return found

    return types.float64(types.int64), generate


# The float at an address. Ends the process by SIGSEGV where nothing is mapped, as at 64.
wild_read: Callable[[int], float] = cast("Any", intrinsic(_wild_read))
