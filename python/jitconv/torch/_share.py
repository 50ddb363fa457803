"""Shares of the processes of one machine in the kernels of prepare(), where `torch.distributed` runs them.

Each compiles its share, says so in the store of the process group, and takes the rest from the disk cache. No process
has to wait for another: one that does not come, or another model, only means that more is compiled here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch.distributed as dist

import jitconv

#: How long the others are waited for at least, in seconds: they may be a little later.
_PATIENCE = 10.0

Compile = Callable[[list[str]], list[jitconv.Kernel]]


@dataclass(frozen=True)
class LocalGroup:
    """The processes that share a disk cache, and which of them this is."""

    rank: int
    size: int
    node: int
    """The first rank of the machine."""

    def compile(self, lines: Sequence[str], compile: Compile, origins: Mapping[str, str]) -> list[jitconv.Kernel]:
        """Return the kernels of all specs, of which this process compiles a share.

        Parameters
        ----------
        lines
            The specs, which should be the same for all processes.
        compile
            Returns the kernels of some of them.
        origins
            Where it says afterwards where each kernel came from.

        Raises
        ------
        jitconv.Error
            If a kernel cannot be compiled. All others are compiled nevertheless.
        """
        own = list(lines[self.rank :: self.size])
        rest = [line for line in lines if line not in own]
        kernels: dict[str, jitconv.Kernel] = {}
        failure: jitconv.Error | None = None
        begin = time.perf_counter()
        try:
            kernels.update(zip(own, compile(own), strict=True))
        except jitconv.Error as error:
            failure = error
        finally:
            self._say_done(lines)
        if not own or any(origins.get(line) == "compiler" for line in own):
            self._wait(lines, max(_PATIENCE, (self.size - 1) * (time.perf_counter() - begin)))
        kernels.update(zip(rest, compile(rest), strict=True))
        if failure is not None:
            raise failure
        return [kernels[line] for line in lines]

    def _key(self, lines: Sequence[str], rank: int) -> str:
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return f"jitconv/{digest}/{self.node}/{rank}"

    def _say_done(self, lines: Sequence[str]) -> None:
        with contextlib.suppress(RuntimeError, ValueError):  # the others are ending, and do not wait
            dist.distributed_c10d._get_default_store().set(self._key(lines, self.rank), "done")

    def _wait(self, lines: Sequence[str], seconds: float) -> None:
        """Wait until all have compiled their share, but no longer than the rest would take here."""
        keys = [self._key(lines, rank) for rank in range(self.size)]
        with contextlib.suppress(RuntimeError, ValueError):  # somebody is missing
            dist.distributed_c10d._get_default_store().wait(keys, timedelta(seconds=seconds))


def local_group() -> LocalGroup | None:
    """Return the processes of this machine; None if this is the only one, or the disk cache is not written."""
    if not (dist.is_available() and dist.is_initialized()) or (os.environ.get("JITCONV_CACHE") or "rw") != "rw":
        return None
    rank, size = dist.get_rank(), dist.get_world_size()
    local_rank, local_size = (os.environ.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    node = 0
    if local_rank.isdecimal() and local_size.isdecimal():  # as torchrun sets them
        node = rank - int(local_rank)
        rank, size = int(local_rank), int(local_size)
    return LocalGroup(rank, size, node) if size > 1 else None
