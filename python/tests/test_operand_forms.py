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


def make_known() -> None:
    """Convolve once without and once with gradients, so that later calls are the extension module's."""
    x, w, b = operands()
    with torch.no_grad():
        jt.functional.conv2d(x, w, b)
    y = jt.functional.conv2d(x.requires_grad_(), w, b)
    torch.autograd.grad(y, x, torch.ones_like(y))


@pytest.mark.parametrize("dense", [False, True])
def test_tensors_that_wait_to_be_negated(dense: bool) -> None:
    make_known()
    x, w, b = operands()
    expected = functional.conv2d(-x, w, b)
    torch.testing.assert_close(jt.functional.conv2d(waiting(x, dense), w, b), expected, rtol=1e-4, atol=1e-4)
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


def test_tensors_that_stand_for_zeros() -> None:
    """They have no memory."""
    make_known()
    x, w, b = operands()
    for i in range(3):
        zeros, tensors = [x, w, b], [x, w, b]
        zeros[i] = torch.zeros_like(zeros[i])
        tensors[i] = torch._efficientzerotensor(tensors[i].shape)
        torch.testing.assert_close(jt.functional.conv2d(*tensors), functional.conv2d(*zeros), rtol=1e-4, atol=1e-4)
    y = jt.functional.conv2d(x.requires_grad_(), w, b)
    (dx,) = torch.autograd.grad(y, x, torch._efficientzerotensor(y.shape))
    assert torch.equal(dx, torch.zeros_like(x))


@pytest.mark.parametrize("policy", ["host", "torch"])
def test_tensors_without_memory(policy: jt._config.CpuPolicy) -> None:
    make_known()
    x, w, b = operands()
    with jt.cpu_policy(policy):
        y = jt.functional.conv2d(x.to("meta"), w.to("meta"), b.to("meta"))
        assert (y.device.type, y.shape) == ("meta", (2, 4, 4, 3))
        for others in ((w, b), (w.to("meta"), b), (w, b.to("meta"))):
            with pytest.raises(RuntimeError, match="on another device"):
                jt.functional.conv2d(x.to("meta"), *others)
        for form in (torch.Tensor.to_sparse, torch.Tensor.to_mkldnn):
            with pytest.raises(NotImplementedError, match="Could not run 'jitconv::convolution'"):
                jt.functional.conv2d(form(x), w, b)
        functional_tensor = torch._to_functional_tensor(x)
        assert torch._is_functional_tensor(jt.functional.conv2d(functional_tensor, w, b))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int8, torch.float64])
def test_weights_that_autocast_leaves_as_they_are(dtype: torch.dtype) -> None:
    x, w, b = operands()
    for _ in range(2):
        for tensors in ((x.requires_grad_(), w.to(dtype), b), (x.requires_grad_(), w, b.to(dtype))):
            with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match="must have one type"):
                jt.functional.conv2d(*tensors)
        with torch.autocast("cpu", torch.bfloat16):  # makes the shapes known
            jt.functional.conv2d(x, w, b)
