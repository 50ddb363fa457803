"""One process of the tests with several: ``workers.py WHAT COUNT FOLDER RANK``."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import jitconv
import jitconv.torch as jt


def model(layer: type[nn.Conv2d]) -> nn.Module:
    """Return a small network whose weights depend on the seed alone."""
    torch.manual_seed(0)
    return nn.Sequential(layer(3, 8, 3, padding=1), nn.ReLU(), layer(8, 4, 3, stride=2)).cuda()


def share_cache(count: int, folder: Path, rank: int) -> None:
    """Compile the same kernels as the other processes at the same time."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    dist.barrier()
    x = torch.ones(2, 3, 16, 16, device="cuda", requires_grad=True)
    y = model(jt.Conv2d)(x)
    y.sum().backward()
    results: list[float] = [0.0] * count
    dist.all_gather_object(results, float(y.double().sum()))
    assert len(set(results)) == 1
    statistics = jitconv.statistics()
    assert statistics["disk_errors"] == 0
    print(f"process {rank}: {statistics}")
    dist.destroy_process_group()


def ddp(count: int, folder: Path, rank: int) -> None:
    """Train with DDP and compare with training on the whole batch with PyTorch's layers."""
    torch.backends.cudnn.allow_tf32 = False
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    torch.manual_seed(1)
    batch = torch.randn(2 * count, 3, 16, 16, device="cuda")
    parallel = nn.parallel.DistributedDataParallel(model(jt.Conv2d))
    alone = model(nn.Conv2d)
    optimizers = [torch.optim.SGD(m.parameters(), 0.05) for m in (parallel, alone)]
    for _ in range(3):
        for network, part, optimizer in zip(
            (parallel, alone), (batch[2 * rank : 2 * rank + 2], batch), optimizers, strict=True
        ):
            optimizer.zero_grad()
            network(part).square().mean().backward()
            optimizer.step()
    for a, b in zip(parallel.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    print(f"rank {rank}: parameters agree after 3 steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    what, count, folder, rank = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    {"cache": share_cache, "ddp": ddp}[what](count, folder, rank)
