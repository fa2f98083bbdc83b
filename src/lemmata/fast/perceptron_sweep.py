r"""One sweep of the perceptron in C, for where mistakes are many: each changes the weights, so none can be foreseen."""

import ctypes
import functools
from pathlib import Path

import numpy as np

from lemmata.fast.compiled_library import load_compiled

__all__ = ["compiled_sweep"]

NUMBERS = {"float32": "-DREAL=float", "float64": "-DREAL=double"}


def compiled_sweep(x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool) -> list[int] | None:
    """Sweep once, in place; the mistakes in order, or None if nothing compiled can be had on this machine.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1, state: (features + 1,), the bias last; of one type, no gaps

    Claims: perceptron.algorithm
    """
    library = _library(x.dtype.name)
    if library is None:  # without it the caller makes the same updates
        return None
    mistakes = np.empty(len(x), dtype=np.int64)
    places = (ctypes.c_void_p(array.ctypes.data) for array in (x, y, state))
    sizes = (ctypes.c_int64(number) for number in (*x.shape, bias))
    found = library.sweep(*places, *sizes, ctypes.c_void_p(mistakes.ctypes.data))
    return mistakes[:found].tolist()


@functools.cache
def _library(name: str) -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"), (NUMBERS[name],))
    if library is not None:
        library.sweep.restype = ctypes.c_int64
    return library
