"""Prefetches memory in compiled code: with many keys, most of a message's time is the wait for memory.

Only a hint to the CPU: results never depend on it. Numba caches the machine code of kernels that prefetch, and does not
notice changes of this file: then touch theirs.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

# How many rows ahead to prefetch: some 100 ns of work, which is the latency of memory.
AHEAD = np.uint64(32)
# An array of fewer bytes is in a core's own caches anyway.
CACHED_BYTES = 128 * 1024


def _prefetch(_context: Any, array: Any, row: Any) -> Any:
    """`prefetch(array, row)`: prefetches a row of an array in compiled code; does not check bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, arguments[0])
        wide = context.cast(builder, arguments[1], signature.args[1], types.intp)
        offset = builder.mul(builder.extract_value(rows.strides, 0), wide)
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        ask = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        # To read, into all caches, data: see llvm.prefetch in LLVM's language reference.
        hint: Any = cgutils.get_or_insert_function(builder.module, ask, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(
            hint, [builder.gep(builder.bitcast(rows.data, byte), [offset]), whole(0), whole(3), whole(1)]
        )
        return context.get_dummy_value()

    return types.void(array, row), generate


prefetch: Any = intrinsic(_prefetch)
