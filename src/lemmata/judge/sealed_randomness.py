"""Sealed randomness: what runs inside draws the same numbers each time, and the world outside does not notice."""

import contextlib
import random
from collections.abc import Iterator

import numpy
import torch

__all__ = []  # for the runner, the worker and shared trainings


@contextlib.contextmanager
def sealed_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators and compute on one thread inside; give the caller's state back afterwards."""
    python, array = random.getstate(), numpy.random.get_state()  # noqa: NPY002 (whoever uses the old one is sealed too)
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    deterministic = torch.are_deterministic_algorithms_enabled()
    # Asking for the state of a GPU that nobody has used would start it, in every worker.
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=gpus):
        torch.set_num_threads(1)  # sums in another order have other last bits
        random.seed(seed)
        numpy.random.seed(seed % 2**32)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(array)  # noqa: NPY002
            torch.set_default_dtype(dtype)
            if torch.get_default_device() != device:
                torch.set_default_device(None if device.type == "cpu" else device)  # not a mode that stays for "cpu"
            torch.set_grad_enabled(grad)
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
            if torch.are_deterministic_algorithms_enabled() != deterministic:
                torch.use_deterministic_algorithms(deterministic)
