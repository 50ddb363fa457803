"""Every row of tests/shapes through the layers, on integers whose sums are exact: results are equal in all bits.

N is cut where tensors would be large; all other extents are the row's. Rows with another padding at each side have no
layer of PyTorch's and go through the operator.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import jitconv.torch as jt

FOLDER = Path(__file__).parents[3] / "tests" / "shapes"
LARGEST = 2**23  # elements of a tensor
PART = 40  # kernels of a test, so that pytest-xdist has something to distribute and no test is long
WITH_GRADIENTS = 100  # files of fewer rows: the others would compile for minutes

Row = dict[str, int]

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.skipif(not FOLDER.exists(), reason="not in the repository: no tests/shapes"),
]


def rows(path: Path) -> list[Row]:
    with path.open() as file:
        found = [{k: int(v) for k, v in row.items() if k != "name"} for row in csv.DictReader(file)]
    transposed = "transposed2d" in path.name
    return [{"transposed": int(transposed), "output_pad_h": 0, "output_pad_w": 0, **row} for row in found]


def parts() -> Iterator[tuple[str, int]]:
    for path in sorted(FOLDER.glob("*.csv")):
        count = len(rows(path))
        yield from ((path.name, first) for first in range(0, count, step(count)))


def step(count: int) -> int:
    """Return how many rows of a file of `count` one test takes: with gradients a row has three kernels."""
    return PART // 3 if count < WITH_GRADIENTS else PART


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, device="cuda").float()


def layer_of(row: Row, module: type[nn.Module], **arguments: object) -> nn.Module:
    r = row
    if r["transposed"]:
        arguments["output_padding"] = (r["output_pad_h"], r["output_pad_w"])
    layer = module(
        r["C"], r["K"], (r["R"], r["S"]), stride=(r["stride_h"], r["stride_w"]), padding=(r["pad_h"], r["pad_w"]),
        dilation=(r["dil_h"], r["dil_w"]), groups=r["groups"], bias=False, device="cuda", **arguments,
    )  # fmt: skip
    return layer


def check(row: Row, gradients: bool) -> None:
    ends = (row.get("pad_h_end", row["pad_h"]), row.get("pad_w_end", row["pad_w"]))
    kind = "ConvTranspose2d" if row["transposed"] else "Conv2d"
    ours = layer_of(row, getattr(jt, kind), math="tf32")
    theirs = layer_of(row, getattr(nn, kind), dtype=torch.float64)
    with torch.no_grad():
        extents = theirs(torch.zeros(1, row["C"], row["H"], row["W"], dtype=torch.float64, device="cuda")).numel()
        ours.weight.copy_(integers(*ours.weight.shape))
        theirs.weight.copy_(ours.weight)
    n = max(1, min(row["N"], LARGEST // max(extents, row["C"] * row["H"] * row["W"])))
    x = integers(n, row["C"], row["H"], row["W"]).requires_grad_()
    if ends == (row["pad_h"], row["pad_w"]):
        y = ours(x)
        x64 = x.detach().double().requires_grad_()
        y64 = theirs(x64)
    else:
        pads = [row["pad_h"], ends[0], row["pad_w"], ends[1]]
        steps = ([row["stride_h"], row["stride_w"]], pads, [row["dil_h"], row["dil_w"]])
        y = torch.ops.jitconv.convolution(x, ours.weight, None, *steps, False, [0, 0], row["groups"], math="tf32")
        x64 = x.detach().double().requires_grad_()
        padded = nn.functional.pad(x64, (pads[2], pads[3], pads[0], pads[1]))
        y64 = nn.functional.conv2d(padded, theirs.weight, None, steps[0], 0, steps[2], row["groups"])
    assert torch.equal(y.double(), y64), f"{row}: y"
    if gradients:
        dy = integers(*y.shape)
        found = torch.autograd.grad(y, (x, ours.weight), dy)
        for name, mine, exact in zip(
            ("dx", "dw"), found, torch.autograd.grad(y64, (x64, theirs.weight), dy.double()), strict=True
        ):
            assert torch.equal(mine.double(), exact), f"{row}: {name}"


@pytest.mark.parametrize(("name", "first"), list(parts()) if FOLDER.exists() else [])
def test_rows(name: str, first: int) -> None:
    found = rows(FOLDER / name)
    torch.manual_seed(first)
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        part = found[first : first + step(len(found))]
        for row in part:
            check(row, gradients=len(found) < WITH_GRADIENTS)
    print(f"{name}: rows {first} to {first + len(part) - 1} are exact")
