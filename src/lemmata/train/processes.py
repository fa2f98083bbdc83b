"""Several processes that train one system: who I am, my share of a batch, and what all must agree on."""

import atexit
import gc
import importlib
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["World"]


@dataclass(frozen=True)
class World:
    """The processes of one training run; alone unless torchrun started us."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls, device: torch.device) -> "World":
        """The group that torchrun's environment describes, joined if we are not in it yet."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        if not dist.is_initialized():
            # Its functions take the group there is at their import as default: imported later, as
            # DistributedDataParallel does, they would hold ours for ever.
            importlib.import_module("torch.distributed.nn")
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
            atexit.register(_leave_group)
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this process writes the files and speaks."""
        return self.rank == 0

    def share(self, indices: Tensor) -> tuple[Tensor, float]:
        """My examples of a batch, and the weight that makes the mean over processes the mean over the batch."""
        if self.size == 1:
            return indices, 1.0
        mine = indices[self.rank :: self.size]
        if len(mine) == 0:  # fewer examples than processes: every process must take part in the sum
            return indices[:1], 0.0
        return mine, len(mine) * self.size / len(indices)

    def agree(self, *mine: bool) -> list[bool]:
        """Of each question whether any process says yes."""
        if self.size == 1:
            return list(mine)
        votes = torch.tensor([float(vote) for vote in mine])
        votes = votes.cuda() if dist.get_backend() == "nccl" else votes
        dist.all_reduce(votes)
        return [vote > 0 for vote in votes.tolist()]

    def decided_by_first(self, mine: bool) -> bool:
        """What the first process says."""
        return self.agree(mine and self.first)[0]

    def gather(self, mine: Tensor) -> list[Tensor]:
        """Equal tensors of bytes of all processes, in the order of their ranks."""
        if self.size == 1:
            return [mine]
        place = "cuda" if dist.get_backend() == "nccl" else "cpu"
        parts = [torch.empty_like(mine, device=place) for _ in range(self.size)]
        dist.all_gather(parts, mine.to(place))
        return [part.cpu() for part in parts]


def _leave_group() -> None:
    """Leave the group while Python lives: a thread of it that drops a tensor later ends the process with an error."""
    if dist.is_initialized():
        gc.collect()  # a wrapped system in a cycle would keep the group, and with it the threads
        dist.destroy_process_group()
