"""Convolutions in float64 and the error that a result may have: the bounds of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

Tensors: TypeAlias = tuple[torch.Tensor | None, ...]
Function: TypeAlias = Callable[..., torch.Tensor]

_OUTPUT_ROUNDING = {
    torch.float32: (0.0, 0.0),
    torch.float16: (2.0**-11, 2.0**-25),
    torch.bfloat16: (2.0**-8, 2.0**-134),
}


@dataclass
class Exact:
    """The exact results of a function that is linear in each operand, and what their bounds are made of.

    ``values``, ``magnitudes`` and ``terms`` hold the result and its gradients with respect to x, w and b, in this
    order: the value, the sum of the terms' absolute values, and the largest number of terms.
    """

    values: Tensors
    magnitudes: Tensors
    terms: tuple[int, ...]


def exact(function: Function, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, dy: torch.Tensor) -> Exact:
    """Compute a convolution and its gradients in float64 on the CPU.

    Parameters
    ----------
    function
        ``function(x, w, b)``, by PyTorch, without an activation.
    x, w, b, dy
        The operands, of any type and device, and the gradient of the result.
    """

    def all_results(*operands: torch.Tensor | None) -> Tensors:
        leaves = [None if t is None else t.detach().cpu().double().requires_grad_() for t in operands[:3]]
        y = function(*leaves)
        assert operands[3] is not None
        y.backward(operands[3].detach().cpu().double())
        return (y.detach(), *(None if t is None else t.grad for t in leaves))

    operands = (x, w, b, dy)
    counts = all_results(*(None if t is None else torch.ones_like(t) for t in operands))
    return Exact(
        values=all_results(*operands),
        magnitudes=all_results(*(None if t is None else t.abs() for t in operands)),
        terms=tuple(0 if t is None or t.numel() == 0 else int(t.max().item()) for t in counts),
    )


def excess(actual: torch.Tensor, of: Exact, which: int, math: str) -> float:
    """Return the largest error of a result as a share of its bound; up to 1 is right.

    Parameters
    ----------
    actual
        The result, or the gradient of x, w or b, as ``which`` (0 to 3) says.
    math
        ``"fp32"`` or ``"tf32"``: what float32 operands were allowed.
    """
    value, magnitude = of.values[which], of.magnitudes[which]
    assert value is not None
    assert magnitude is not None
    assert actual.shape == value.shape
    if actual.numel() == 0:
        return 0.0
    single = actual.dtype == torch.float32
    u = 2.0**-24 if single and math != "tf32" else 2.0**-22
    operands = (1 + 2.0**-11) ** 2 - 1 if single and math == "tf32" else 0.0
    n = of.terms[which] + 2
    gamma = n * u / (1 - n * u)
    bound = (gamma + operands + gamma * operands) * magnitude + n * 2.0**-150
    relative, smallest = _OUTPUT_ROUNDING[actual.dtype]
    bound = bound + torch.clamp(relative * (value.abs() + bound), min=smallest)
    error = (actual.detach().cpu().double() - value).abs()
    return float((error / bound.clamp(min=1e-300)).max().item())
