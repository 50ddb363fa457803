"""What Inductor's autotuning compares: two graphs that compute the same. Choosing between them needs a GPU."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.lowering import lowerings

import jitconv.torch as jt
from jitconv.torch import _inductor
from jitconv.torch._convolution import Settings


@pytest.mark.parametrize(
    "settings",
    [
        Settings(padding=(0, 1, 2, 1), activation="silu", policy="auto"),
        Settings(stride=(2, 1), transposed=True, output_padding=(1, 0), policy="auto"),
    ],
)
def test_both_graphs_compute_the_same(settings: Settings) -> None:
    x, w = torch.randint(-3, 4, (1, 2, 4, 5)).float(), torch.randint(-3, 4, (2, 2, 3, 2)).float()
    b = torch.ones(2)
    with jt.cpu_policy("host"):
        mine = _inductor._by_jitconv(settings)(x, w, b)
    theirs = _inductor._by_pytorch(settings)(x, w, b)
    torch.testing.assert_close(mine, theirs)
    assert mine.stride() == theirs.stride()


def test_it_is_registered_only_when_asked_for() -> None:
    operator = torch.ops.jitconv.convolution.default
    before = lowerings.pop(operator, None)
    try:
        jt.enable_inductor_autotuning()
        assert operator in lowerings
    finally:
        lowerings.pop(operator)
        if before is not None:
            lowerings[operator] = before


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_an_operand_that_inductor_has_not_computed_yet(memory: torch.memory_format) -> None:
    before = lowerings.pop(torch.ops.jitconv.convolution.default, None)
    model = torch.nn.Sequential(torch.nn.ReLU(), jt.Conv2d(2, 4, 3, policy="auto"))
    x = torch.randint(-3, 4, (1, 2, 4, 5)).float().contiguous(memory_format=memory)
    try:
        jt.enable_inductor_autotuning()
        with torch.no_grad(), jt.cpu_policy("host"):
            y = torch.compile(model, mode="max-autotune-no-cudagraphs")(x)
            expected = model(x)
    finally:
        lowerings.pop(torch.ops.jitconv.convolution.default)
        if before is not None:
            lowerings[torch.ops.jitconv.convolution.default] = before
    torch.testing.assert_close(y, expected)
    assert y.stride() == expected.stride()
