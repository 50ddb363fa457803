"""What Inductor's autotuning compares: two graphs that compute the same. Choosing between them needs a GPU."""

from __future__ import annotations

from typing import Any

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


def test_an_operand_that_inductor_has_not_computed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes a buffer, which has strides. The rest of the compilation takes half a minute and is left out."""
    strides = []

    def choose(*, inputs: list[Any], **others: object) -> None:
        strides.extend(tuple(operand.get_stride()) for operand in inputs)
        raise RuntimeError("far enough")

    operator = torch.ops.jitconv.convolution.default
    monkeypatch.setattr("torch._inductor.kernel.custom_op.autotune_custom_op", choose)
    monkeypatch.setitem(lowerings, operator, None)
    jt.enable_inductor_autotuning()
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.ReLU(), jt.Conv2d(2, 4, 3, policy="auto"))
    x = torch.randn(1, 2, 4, 5).contiguous(memory_format=torch.channels_last)
    with torch.no_grad(), pytest.raises(Exception, match="far enough"):
        torch.compile(model, mode="max-autotune-no-cudagraphs", dynamic=False)(x)
    assert strides == [x.stride(), model[1].weight.stride(), (1,)]
