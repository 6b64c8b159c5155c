"""Compiles users' functions with two checks that Numba does not make by itself.

An index out of bounds is an error, except in a user's own `numba.njit`, which has its own option for it. And a float
must not be assigned to an integer or bool field of a state: Numba would truncate it, Python would keep its fraction.
The types of assignments are known after type inference, and must be refused before machine code is made and cached: so
the check is a compiler pass.
"""

from typing import Any

import numba
from numba.core import errors, ir, types
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

from bettong.worker.numba_types.states import StateType


def compiled_later(function: Any) -> Any:
    """A function that is compiled when compiled code calls it.

    It has no wrappers for calls from Python and C, which would take 7 % of the time to compile a kernel.
    """
    return numba.njit(  # type: ignore[call-overload] # Numba's own stubs lack two of its options
        boundscheck=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_Checked
    )(function)


def checked_as(own: Any) -> Any:
    """A user's own `numba.njit`, with its options and our checks. None if it is compiled already, or has them."""
    compiler = own._compiler  # noqa: SLF001 - there is no public way to read its pipeline
    if not own._can_compile or compiler.pipeline_class is not Compiler:  # noqa: SLF001 - likewise
        return None
    return type(own)(own.py_func, own.locals, own.targetoptions, pipeline_class=_Checked)


@register_pass(mutates_CFG=False, analysis_only=True)
class _KeptFractions(AnalysisPass):
    _name = "bettong_kept_fractions"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Raises NumbaTypeError, with the line of the assignment. Changes nothing."""
        for block in state.func_ir.blocks.values():
            for step in block.find_insts(ir.SetAttr):
                _check(state.typemap[step.target.name], step, state.typemap[step.value.name])
        return False


class _Checked(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        """See CompilerBase."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_KeptFractions, NopythonTypeInference)
        passes.finalize()
        return [passes]


def _check(owner: Any, step: Any, given: Any) -> None:
    if not isinstance(owner, StateType):
        return
    number = given.type if isinstance(given, types.Optional) else given
    held = owner.typeof(step.attr)
    if isinstance(number, types.Float) and isinstance(held, types.Integer | types.Boolean):
        name = "a bool" if isinstance(held, types.Boolean) else f"an {held}"
        raise errors.NumbaTypeError(
            f"field {step.attr!r} of a {owner.name} is {name}, not a {number}", loc=step.loc
        )
