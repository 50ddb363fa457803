"""Operands in a form or a type that kernels do not read as they are."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import jitconv.torch as jt

pytestmark = pytest.mark.usefixtures("host")


def operands() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 3), torch.randn(4)


def waiting(t: torch.Tensor, dense: bool) -> torch.Tensor:
    """Return -t as a view with a bit that says so: dense, or the imaginary part of a conjugate."""
    negative = torch._neg_view(t) if dense else torch.complex(t, t).conj().imag
    assert negative.is_neg()
    return negative


@pytest.mark.parametrize("dense", [False, True])
def test_tensors_that_wait_to_be_negated(dense: bool) -> None:
    x, w, b = operands()
    expected = functional.conv2d(-x, w, b)
    for _ in range(2):
        y = jt.functional.conv2d(waiting(x, dense), w, b)
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
    for others in ((waiting(-w, dense), b), (w, waiting(-b, dense))):
        torch.testing.assert_close(jt.functional.conv2d(-x, *others), expected, rtol=1e-4, atol=1e-4)
    leaf = x.clone().requires_grad_()
    gradients = []
    for convolve in (jt.functional.conv2d, functional.conv2d):
        y = convolve(leaf, w, b)
        gradients.append(torch.autograd.grad(y, leaf, waiting(y.detach(), dense))[0])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_gradients_in_a_third_type() -> None:
    """float16 autocast of a bfloat16 model: kernels write float16 or float32, and the gradients are bfloat16."""
    x, w, b = operands()
    leaves = [t.bfloat16().requires_grad_() for t in (w, b)]
    with torch.autocast("cpu", torch.float16):
        y = jt.functional.conv2d(x, *leaves)
    mine = torch.autograd.grad(y.float().sum(), leaves)
    exact = [t.detach().half().double().requires_grad_() for t in leaves]
    theirs = torch.autograd.grad(functional.conv2d(x.half().double(), *exact).sum(), exact)
    for a, e in zip(mine, theirs, strict=True):
        assert a.dtype == torch.bfloat16
        torch.testing.assert_close(a.double(), e, rtol=1e-2, atol=1e-2)
