r"""One pass of the perceptron over its points, at speed.

The readable reference is `lemmata.connectionism.textbook_perceptron`, point by point. The same updates are found here
in two quicker ways: block by block in numpy, as nothing changes between two mistakes, and in C where mistakes are many.
Weights and bias are one array (features + 1,), the bias last, which is changed in place.
"""

import ctypes
import functools
import hashlib
import math
from pathlib import Path

import numpy as np

from lemmata.fast.compiled_library import load_compiled

__all__ = ["block_sweep", "compiled_sweep", "fingerprint", "quick_sweep"]

FIRST_BLOCK = 64  # points multiplied at once when the search for a mistake begins; a block without one doubles the next
MANY = 500  # mistakes after which the time goes into calls rather than arithmetic, and it pays to ask for a compiler
NUMBERS = {"float32": "-DREAL=float", "float64": "-DREAL=double"}


def quick_sweep(
    x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool, earlier: int = 0
) -> tuple[list[int], float]:
    r"""Show every point once, in order, and learn from mistakes; the points of the updates made.

    Blocks find the first mistakes, compiled code the rest once `MANY` were made, `earlier` ones included. The second
    result is the lowest product $y_i(w^\top x_i + b)$ as it was rounded, if it is known: -inf after a mistake or
    compiled code.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1, state: (features + 1,); of one type, no gaps

    Claims: perceptron.algorithm
    """
    mistakes, first, lowest = block_sweep(x, y, state, bias, max_mistakes=max(MANY - earlier, 0))
    if first == len(x):
        return mistakes, lowest
    rest = compiled_sweep(x[first:], y[first:], state, bias)
    if rest is None:  # nothing compiled on this machine
        rest, _, _ = block_sweep(x[first:], y[first:], state, bias)
    return mistakes + [first + index for index in rest], -math.inf


def block_sweep(
    x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool, max_mistakes: int | None = None
) -> tuple[list[int], int, float]:
    """The next mistake by a galloping search over blocks, again and again, until there are `max_mistakes`.

    Returns the mistakes, how many points were shown, and the lowest product if there was no mistake, else -inf.
    """
    weight = state[:-1]
    mistakes, first, block, lowest = [], 0, FIRST_BLOCK, np.inf
    while first < len(x) and (max_mistakes is None or len(mistakes) < max_mistakes):
        margin = x[first : first + block].dot(weight)  # (block,)
        margin += state[-1]
        margin *= y[first : first + block]
        ahead = (margin <= 0).tobytes().find(True)
        if ahead < 0:
            first, block, lowest = first + block, 2 * block, np.minimum(lowest, margin.min())  # NaN stays NaN
            continue
        wrong = first + ahead
        if y[wrong] > 0:
            weight += x[wrong]  # (features,)
        else:
            weight -= x[wrong]
        if bias:
            state[-1] += y[wrong]
        mistakes.append(wrong)
        first, block = wrong + 1, FIRST_BLOCK
    return mistakes, min(first, len(x)), -math.inf if mistakes else float(lowest)


def compiled_sweep(x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool) -> list[int] | None:
    """The whole pass in C; None if nothing compiled can be had on this machine."""
    library = _library(x.dtype.name)
    if library is None:
        return None
    mistakes = np.empty(len(x), dtype=np.int64)
    places = (ctypes.c_void_p(array.ctypes.data) for array in (x, y, state))
    sizes = (ctypes.c_int64(number) for number in (*x.shape, bias))
    found = library.sweep(*places, *sizes, ctypes.c_void_p(mistakes.ctypes.data))
    return mistakes[:found].tolist()


def fingerprint(state: np.ndarray) -> bytes:
    """32 bytes by which to know the weights again without keeping them."""
    return hashlib.sha256(state.tobytes()).digest()


@functools.cache
def _library(name: str) -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"), (NUMBERS[name],))
    if library is not None:
        library.sweep.restype = ctypes.c_int64
    return library
