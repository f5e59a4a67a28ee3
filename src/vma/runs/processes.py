"""One process or many: the same command, alone or under torchrun."""

import ctypes
import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from vma.errors import InputError
from vma.files import from_outside
from vma.ranges import shown

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
ONE_GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Processes:
    """The number of this process among all processes, and its device."""

    rank: int
    world: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def share(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over processes if there are several."""
        if self.world == 1:
            return model
        ids = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=ids)

    def largest(self, value: float) -> float:
        """The largest value of any process, so that all go by the same clock."""
        if self.world == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return float(shared.item())

    def together(self) -> None:
        """Go on when all have come here."""
        if self.world > 1:
            dist.barrier()

    def joined(self, share: torch.Tensor) -> torch.Tensor:
        """The shares of all processes, as large as each other, one after the other."""
        if self.world == 1:
            return share
        shares = [torch.empty_like(share) for _ in range(self.world)]
        dist.all_gather(shares, share.contiguous())
        return torch.cat(shares)

    def any(self, flag: bool) -> bool:
        """Whether any process raises the flag, so that all stop together or none does."""
        return self.largest(float(flag)) > 0


DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")


def number_of_environment(name: str, least: int, default: int) -> int:
    """A whole number from an environment variable, such as torchrun sets; `default` if it is not set."""
    text = os.environ.get(name, str(default))
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < least:
        raise InputError(
            f"The environment says {name}={shown(text)}, which must be a whole number of {least} or more: unset "
            "it, or start several processes with torchrun."
        )
    return int(text)


def choose_device(name: str) -> torch.device:
    """`auto`: this process's GPU if there is one, else the CPU."""
    if name == "auto":
        rank = number_of_environment("LOCAL_RANK", 0, 0)
        name = f"cuda:{rank}" if torch.cuda.is_available() else "cpu"
    if not DEVICE.fullmatch(name):
        raise InputError(f"Unknown device {name!r}: use auto, cpu, cuda or cuda:N.")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"There is no device {name!r} on this machine: use auto or cpu.")
    return device


@contextmanager
def processes(device: str = "auto") -> Iterator[Processes]:
    """The processes that torchrun started, joined in a group; otherwise this one alone."""
    chosen = choose_device(device)
    world = number_of_environment("WORLD_SIZE", 1, 1)
    if world == 1:
        yield Processes(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    with from_outside("The other processes cannot be joined, so start all of them with torchrun"):
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        if dist.get_world_size() != world:
            raise InputError(f"torchrun promised {world} processes, but {dist.get_world_size()} joined.")
        yield Processes(dist.get_rank(), world, chosen)
        dist.barrier()
    finally:
        gc.collect()  # a model that still holds the group would end its threads at exit, and abort
        dist.destroy_process_group()


def keep_memory() -> None:
    """Raise glibc's thresholds for returning memory to the system; on other systems, do nothing.

    Otherwise glibc returns large blocks and maps them again at every update.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, ONE_GIGABYTE)
        library.mallopt(M_TRIM_THRESHOLD, ONE_GIGABYTE)
