"""Which tile scans which shape on a GPU, and whether its programs work alone or as a relay.

The sizes are what was quickest on an H200 among those that were tried. What matters on every GPU: whole lines of
memory, enough bytes on their way (some 32 KB for each multiprocessor), and no spilled registers.
"""

import functools
from dataclasses import dataclass, replace

import torch

__all__ = []

LINE, VECTOR = 128, 16  # bytes: of a line of memory, and of the widest load of a thread
MANY, FEW = 16, 3  # sequences for each multiprocessor


@dataclass(frozen=True)
class Plan:
    """A tile of `runs` x `steps` of `columns` sequences, for so many warps.

    `group` tiles share the state before them in a relay; 0 means strips without one, loaded `stages` - 1 tiles ahead.
    """

    runs: int
    steps: int
    columns: int
    warps: int = 4
    group: int = 0
    stages: int = 1
    registers: int | None = None  # the most a thread may take; None leaves it to the compiler


@dataclass(frozen=True)
class Task:
    """What is scanned: `batch` times `columns` sequences of `length` numbers, on so many multiprocessors."""

    batch: int
    columns: int
    length: int
    dtype: torch.dtype
    constant: bool
    backward: bool
    time_last: bool
    processors: int = 132


@functools.lru_cache(1024)
def plan_of(task: Task) -> Plan:
    """The tile for a task.

    >>> plan_of(Task(1, 12288, 16384, torch.float32, constant=False, backward=False, time_last=True))
    Plan(runs=256, steps=4, columns=1, warps=4, group=0, stages=1, registers=None)
    """
    plan = _fit_tile(_time_last(task) if task.time_last else _columns_last(task), task)
    one_chunk = task.length <= plan.runs * plan.steps
    return replace(plan, group=0) if one_chunk else plan


def _time_last(task: Task) -> Plan:
    """One sequence a program: all of it if there are enough sequences, or else a piece of it."""
    enough, many = (task.columns >= each * task.processors for each in (FEW, MANY))
    wide = VECTOR // task.dtype.itemsize
    if task.dtype == torch.complex128:
        return Plan(128, 2, 1, group=0 if enough else 16)
    if task.dtype == torch.complex64:
        if enough:
            return Plan(256, 4, 1, stages=3 if task.constant else 2) if task.backward else Plan(128, 8, 1, stages=3)
        return Plan(128, 16 if task.constant else 8, 1, group=16)
    if not enough:
        return Plan(2048 // wide, wide, 1, group=16 if task.backward else 32)
    if task.constant:
        return Plan(512, wide, 1, stages=1 if many else 3)
    return Plan(256 if many or wide == 8 else 512, wide, 1)


def _columns_last(task: Task) -> Plan:
    """Lines of memory across: the fewer there are, the narrower the tile, and the longer the groups of the relay."""
    line = LINE // task.dtype.itemsize
    lines = task.batch * -(-task.columns // line)
    wide, few = lines >= 1.4 * task.processors, lines < 8
    group = 1 if wide else 16 if few else 4
    if task.dtype.is_complex:
        return _complex_columns_last(task, line, group)
    if task.dtype.itemsize != 4:
        # Half precision takes the registers of single precision, double precision twice as many.
        steps = 16 if task.dtype == torch.float64 and not task.backward else 8
        return Plan(16, steps, line, group=0 if wide else group)
    if few:
        return Plan(32, 16, line // 2, group=group)
    if task.backward:
        return Plan(16, 8, 2 * line, warps=8, group=group) if wide else Plan(32, 8, line, warps=8, group=group)
    if task.constant:
        return Plan(8 if wide else 16, 32, 2 * line if wide else line, group=group)
    return Plan(8, 16, 2 * line, group=group, registers=168) if wide else Plan(16, 16, line, group=group)


def _complex_columns_last(task: Task, line: int, group: int) -> Plan:
    group = max(4, group)
    if task.dtype == torch.complex128:
        return Plan(16, 4, line, group=group)
    if task.constant and task.backward:
        return Plan(16, 16, line, group=group, registers=128)
    if task.constant:
        return Plan(16, 32, line, group=group if group > 4 else 2)
    return Plan(16, 8 if task.backward else 16, line, group=group)


def _fit_tile(plan: Plan, task: Task) -> Plan:
    """A tile as large, but not much wider or longer than the task."""
    runs, steps, columns = plan.runs, plan.steps, plan.columns
    while columns > 1 and columns >= 2 * task.columns:
        runs, columns = 2 * runs, columns // 2
    while runs * steps > 1 and runs * steps >= 2 * task.length:
        runs, steps = (runs // 2, steps) if runs > 1 else (runs, steps // 2)
        columns = min(2 * columns, _power_of_two(task.columns))
    return replace(plan, runs=runs, steps=steps, columns=columns)


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()
