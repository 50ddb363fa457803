"""Operands in a form or a type that kernels do not read as they are."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional

import jitconv.torch as jt
from jitconv.torch import _convolution

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


FORMATS = (torch.contiguous_format, torch.channels_last)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("formats", list(itertools.product(FORMATS, repeat=3)))
def test_operands_of_two_memory_formats(
    formats: tuple[torch.memory_format, ...], transposed: bool, groups: int
) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(2, 4, 6, 5), torch.randn(*((4, 6 // groups) if transposed else (6, 4 // groups)), 3, 3)
    leaves = [x.to(memory_format=formats[0]), w.to(memory_format=formats[1]), torch.randn(6)]
    for leaf in leaves:
        leaf.requires_grad_()
    name = "conv_transpose2d" if transposed else "conv2d"
    results = []
    for library, keywords in ((jt.functional, {"activation": "relu"}), (functional, {})):
        y = getattr(library, name)(*leaves, groups=groups, **keywords)
        y = y if keywords else y.relu()
        dy = (torch.arange(y.numel()) % 7 - 3.0).view_as(y).to(memory_format=formats[2])
        results.append([y, *torch.autograd.grad(y, leaves, dy)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    assert results[0][0].stride() == results[1][0].stride()


def test_dense_operands_are_read_as_they_lie() -> None:
    c = _convolution.convolution(_convolution.Settings())
    x, w, dy = torch.zeros(2, 3, 6, 5), torch.zeros(4, 3, 3, 3), torch.zeros(2, 4, 4, 3)
    w = w.to(memory_format=torch.channels_last)
    forward = c.forward_spec(x, w, 16, bias=True, activation=False)
    dx = c.dx_spec(dy, x, w, 16, derivative=False)
    dw = c.dw_spec(dy, x, w, 16, derivative=False, bias=True, dtype=torch.float32)
    assert [(s.input_layout, s.output_layout) for s in (forward, dx, dw)] == [
        ("nchw", "nhwc"),
        ("nhwc", "nchw"),
        ("nchw", "nchw"),
    ]
    grouped = _convolution.convolution(_convolution.Settings(groups=3))
    forward = grouped.forward_spec(x, w[:3, :1], 16, bias=True, activation=False)
    assert forward.input_layout == forward.output_layout


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
