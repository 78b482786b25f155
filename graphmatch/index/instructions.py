"""Two instructions of the processor for compiled loops: the lowest bit of a word, and prefetch.

numba has no name for either. `lowest_bit` is one instruction instead of a multiplication and a
look-up; `prefetch` asks for a line of memory before it is needed, which is what makes checks of
scattered rows four times faster (docs/decisions/constraint-tables.md). With ``NUMBA_DISABLE_JIT=1``
both are plain Python.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    def lowest_bit(word: np.uint64) -> int:
        """Return the place of the lowest bit that is set; 64 when there is none."""
        number = int(word)
        return (number & -number).bit_length() - 1 if number else 64

    def prefetch(array: NDArray[Any], place: int) -> None:
        """Ask for the line of memory that holds ``array[place]``; `array` is flat."""

else:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    @intrinsic
    def lowest_bit(_typing: Any, _word: Any) -> Any:
        """Return the place of the lowest bit that is set; 64 when there is none."""

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), generate

    @intrinsic
    def prefetch(_typing: Any, array: Any, _place: Any) -> Any:
        """Ask for the line of memory that holds ``array[place]``; `array` is flat."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            function = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [address.type],
                ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
            )
            read, keep, data_cache = (ir.Constant(number, value) for value in (0, 3, 1))
            builder.call(function, [address, read, keep, data_cache])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate
