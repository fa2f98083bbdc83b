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

from lemmata import validate
from lemmata.fast.compiled_library import load_compiled

__all__ = ["block_sweep", "compiled_sweep", "fingerprint", "quick_sweep"]

FIRST_BLOCK = 64  # points multiplied at once when the search for a mistake begins; a block without one doubles the next
MANY = 64  # mistakes after which the time goes into calls rather than arithmetic, and it pays to ask for a compiler
NUMBERS = {np.dtype(np.float32): "-DREAL=float", np.dtype(np.float64): "-DREAL=double"}  # in the machine's byte order


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
    _check_sweep(x, y, state, bias)
    validate.count("earlier", earlier, least=0)
    mistakes, first, lowest = _sweep_blocks(x, y, state, bias, max_mistakes=max(MANY - earlier, 0))
    if first == len(x):
        return mistakes, lowest
    rest = _compiled_sweep(x[first:], y[first:], state, bias)
    if rest is None:  # nothing compiled on this machine
        rest, _, _ = _sweep_blocks(x[first:], y[first:], state, bias)
    return mistakes + [first + index for index in rest] if first else rest, -math.inf


def block_sweep(
    x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool, max_mistakes: int | None = None
) -> tuple[list[int], int, float]:
    """The next mistake by a galloping search over blocks, again and again, until there are `max_mistakes`.

    Returns the mistakes, how many points were shown, and the lowest product if there was no mistake, else -inf.
    """
    _check_sweep(x, y, state, bias)
    if max_mistakes is not None:
        validate.count("max_mistakes", max_mistakes, least=0)
    return _sweep_blocks(x, y, state, bias, max_mistakes)


def _sweep_blocks(
    x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool, max_mistakes: int | None = None
) -> tuple[list[int], int, float]:
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
    _check_sweep(x, y, state, bias)
    return _compiled_sweep(x, y, state, bias)


def _compiled_sweep(x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool) -> list[int] | None:
    library = _sweep_library(x.dtype)
    if library is None:
        return None
    mistakes = np.empty(len(x), dtype=np.int64)
    places = (ctypes.c_void_p(array.ctypes.data) for array in (x, y, state))
    sizes = (ctypes.c_int64(number) for number in (*x.shape, bias))
    found = library.sweep(*places, *sizes, ctypes.c_void_p(mistakes.ctypes.data))
    return mistakes[:found].tolist()


def fingerprint(state: np.ndarray) -> bytes:
    """32 bytes by which to know the weights again without keeping them."""
    if not isinstance(state, np.ndarray):
        raise TypeError(f"state must be a numpy array, got {type(state).__name__}")
    return hashlib.sha256(state.tobytes()).digest()


def _check_sweep(x: np.ndarray, y: np.ndarray, state: np.ndarray, bias: bool) -> None:
    """C reads and writes where these sizes say, so they must be true."""
    for name, array in (("x", x), ("y", y), ("state", state)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name} must be a numpy array, got {type(array).__name__}: use {name}.numpy()")
        if array.dtype != x.dtype or array.dtype not in NUMBERS:
            raise TypeError(f"x, y and state must all be float32 or all float64, got {name} of {array.dtype}")
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            raise ValueError(f"{name} must have no gaps in memory: use numpy.ascontiguousarray({name})")
    if x.ndim != 2:
        raise ValueError(f"x must be (points, features), got shape {x.shape}")
    if y.shape != x.shape[:1] or (len(y) and not (np.abs(y) == 1).all()):
        raise ValueError(f"y must be -1 or +1 for each of the {len(x)} points, got shape {y.shape} or other values")
    if state.shape != (x.shape[1] + 1,):
        raise ValueError(f"state must be ({x.shape[1] + 1},), the weights and the bias, got shape {state.shape}")
    if not state.flags.writeable or np.may_share_memory(state, x) or np.may_share_memory(state, y):
        raise ValueError("state must be an array of its own that can be written to: use state.copy()")
    if not isinstance(bias, bool | np.bool_):
        raise TypeError(f"bias must be True or False, got {bias!r}")


@functools.cache
def _sweep_library(dtype: np.dtype) -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"), (NUMBERS[dtype],))
    if library is not None:
        library.sweep.restype = ctypes.c_int64
    return library
