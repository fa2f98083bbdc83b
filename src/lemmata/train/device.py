"""Where to compute, and whether the chosen numbers work there."""

import functools
import subprocess
import sys

import torch

__all__ = ["choose_device"]


def choose_device(name: str = "auto") -> torch.device:
    """The device of this name; "auto" takes cuda, else mps, else cpu.

    >>> choose_device("cuda:99")
    Traceback (most recent call last):
    ValueError: device 'cuda:99' is not here: use auto, cpu...
    """
    here = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    here += ["mps"] if torch.backends.mps.is_available() else []
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if "mps" in here else "cpu")
    if name not in here and not (name == "cuda" and len(here) > 1):
        raise ValueError(f"device {name!r} is not here: use {', '.join(['auto', *here])}")
    return torch.device(name)


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse numbers the device cannot compute with, before the first step does it less politely."""
    if precision == "float64" and device.type == "mps":
        raise ValueError("precision float64 is not known to mps: use --device cpu or --precision float32")
    if precision == "bfloat16" and device.type == "cpu" and not _cpu_multiplies_bfloat16():
        raise ValueError("precision bfloat16 crashes torch on this CPU: use --precision float32")


@functools.cache
def _cpu_multiplies_bfloat16() -> bool:
    # Some virtual machines announce instructions they do not have; the illegal one kills the process that tries.
    code = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
