"""One process of the tests with several: ``workers.py WHAT COUNT FOLDER RANK DEVICE``.

The processes of ``cpu`` and of ``cuda:0`` meet over gloo. Of ``cuda`` each has a GPU of its own, and NCCL.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import jitconv
import jitconv.torch as jt


def model(layer: type[nn.Conv2d], device: torch.device) -> nn.Module:
    """Return a small network whose weights depend on the seed alone."""
    torch.manual_seed(0)
    return nn.Sequential(layer(3, 8, 3, padding=1), nn.ReLU(), layer(8, 4, 3, stride=2)).to(device)


def share_cache(count: int, _: int, device: torch.device) -> None:
    """Compile the same kernels as the other processes at the same time."""
    dist.barrier()
    x = torch.ones(2, 3, 16, 16, device=device, requires_grad=True)
    y = model(jt.Conv2d, device)(x)
    y.sum().backward()
    results: list[float] = [0.0] * count
    dist.all_gather_object(results, float(y.double().sum()))
    assert len(set(results)) == 1
    statistics = jitconv.statistics()
    assert statistics["disk_errors"] == 0
    print(statistics)
    share_work(count, device)


def share_work(count: int, device: torch.device) -> None:
    """Prepare the same model as the other processes: together they compile each kernel once."""
    before = jitconv.statistics()["compilations"]
    network, x = model(jt.Conv2d, device), torch.ones(3, 3, 12, 12, device=device, requires_grad=True)
    seen: list[tuple[int, int]] = []
    dist.barrier()
    prepared = jt.prepare(network, x, progress=lambda done, total, *_: seen.append((done, total)))
    kernels = len(prepared.origins)
    assert seen == [(i + 1, kernels) for i in range(kernels)]
    compiled: list[int] = [0] * count
    dist.all_gather_object(compiled, jitconv.statistics()["compilations"] - before)
    print(f"{compiled} of {kernels} kernels")
    assert sum(compiled) == kernels
    assert min(compiled) > 0
    network(x).sum().backward()
    assert jitconv.statistics()["compilations"] - before == compiled[dist.get_rank()]


def train(parallel: nn.Module, count: int, rank: int, device: torch.device) -> None:
    """Train on the ranks' parts of a batch and compare with PyTorch's layers on the whole batch."""
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    batch = torch.randn(2 * count, 3, 16, 16, device=device)
    alone = model(nn.Conv2d, device)
    before = [p.detach().clone() for p in alone.parameters()]
    optimizers = [torch.optim.SGD(m.parameters(), 0.05) for m in (parallel, alone)]
    for _ in range(3):
        for network, part, optimizer in zip(
            (parallel, alone), (batch[2 * rank : 2 * rank + 2], batch), optimizers, strict=True
        ):
            optimizer.zero_grad()
            network(part).square().mean().backward()
            optimizer.step()
    for a, b, first in zip(parallel.parameters(), alone.parameters(), before, strict=True):
        assert not torch.equal(b, first)
        torch.testing.assert_close(a.full_tensor() if isinstance(a, DTensor) else a, b, rtol=1e-4, atol=1e-5)
    print("parameters agree after 3 steps")


def ddp(count: int, rank: int, device: torch.device) -> None:
    """Train with DDP: every rank has all parameters."""
    train(nn.parallel.DistributedDataParallel(model(jt.Conv2d, device)), count, rank, device)


def fsdp(count: int, rank: int, device: torch.device) -> None:
    """Train with FSDP: every rank has a part of each layer's parameters, which are gathered before its calls."""
    parallel: Any = model(jt.Conv2d, device)
    mesh = dist.device_mesh.init_device_mesh(device.type, (count,))
    for layer in parallel:
        if isinstance(layer, nn.Conv2d):
            fully_shard(layer, mesh=mesh)
    fully_shard(parallel, mesh=mesh)
    assert all(isinstance(p, DTensor) for p in parallel.parameters())
    train(parallel, count, rank, device)


if __name__ == "__main__":
    what, count, folder, rank, where = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    device, backend = torch.device(where), "gloo"
    if where == "cpu":
        jt.set_cpu_policy("host")
    elif device.index is None:
        device, backend = torch.device("cuda", rank), "nccl"
        torch.cuda.set_device(device)
    dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank, world_size=count)
    {"cache": share_cache, "ddp": ddp, "fsdp": fsdp}[what](count, rank, device)
    dist.destroy_process_group()
    if what == "fsdp":  # whose groups have left threads of gloo, for which PyTorch aborts as the interpreter ends
        sys.stdout.flush()
        os._exit(0)
