"""Backward passes with more than dense gradients: hooks, transforms, modes, and operands that were overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import jitconv.torch as jt
from jitconv.torch import _convolution

pytestmark = pytest.mark.usefixtures("host")

Convolve = Callable[..., torch.Tensor]


@pytest.fixture(autouse=True)
def _known() -> None:
    leaves, y = recorded(jt.functional.conv2d)
    torch.autograd.grad(y, leaves, torch.ones_like(y))


def recorded(convolve: Convolve) -> tuple[list[torch.Tensor], torch.Tensor]:
    torch.manual_seed(0)
    leaves = [torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 3), torch.randn(4)]
    for leaf in leaves:
        leaf.requires_grad_()
    return leaves, convolve(*leaves)


def close(mine: Any, theirs: Any) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_a_batch_of_gradients() -> None:
    dy, results = torch.randn(3, 2, 4, 4, 3), []
    for convolve in (jt.functional.conv2d, functional.conv2d):
        leaves, y = recorded(convolve)
        results.append(torch.autograd.grad(y, leaves, dy, is_grads_batched=True))
    close(*results)


def test_a_mode_sees_the_operator() -> None:
    names = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(function))
            return function(*args, **(kwargs or {}))

    leaves, y = recorded(jt.functional.conv2d)
    with Mode():
        torch.autograd.grad(y, leaves, torch.ones_like(y))
    assert "jitconv.convolution_backward.default" in names


def test_a_gradient_of_another_class() -> None:
    leaves, y = recorded(jt.functional.conv2d)
    ones = torch.ones_like(y)
    (dx,) = torch.autograd.grad(y, leaves[0], TwoTensor(ones, 2 * ones))
    leaves, y = recorded(functional.conv2d)
    (expected,) = torch.autograd.grad(y, leaves[0], ones)
    close((dx.a, dx.b), (expected, 2 * expected))


def test_compiled_autograd() -> None:
    leaves, y = recorded(jt.functional.conv2d)
    expected = torch.autograd.grad(y, leaves, torch.ones_like(y))
    leaves, y = recorded(jt.functional.conv2d)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        y.sum().backward()
    close([leaf.grad for leaf in leaves], list(expected))


def test_saved_tensors_that_a_hook_replaces() -> None:
    def negative(t: torch.Tensor) -> torch.Tensor:
        return torch._neg_view(-t)

    def transposed(t: torch.Tensor) -> torch.Tensor:
        return t.mT.contiguous().mT

    for unpack in (negative, transposed):
        results = []
        for convolve in (jt.functional.conv2d, functional.conv2d):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
                leaves, y = recorded(convolve)
            results.append(torch.autograd.grad(y, leaves, torch.ones_like(y)))
        close(*results)


def test_a_saved_result_of_another_shape_or_type() -> None:
    changes: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (lambda t: t[:1], torch.Tensor.half)
    for change in changes:

        def unpack(t: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor] = change) -> torch.Tensor:
            return change(t) if t.shape == (2, 4, 4, 3) else t

        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            leaves, y = recorded(lambda x, w, b: jt.functional.conv2d(x, w, b, activation="relu"))
        with pytest.raises(ValueError, match=r"saved is .* must be torch\.float32 of shape"):
            torch.autograd.grad(y, leaves, torch.ones_like(y))


def test_operands_that_were_overwritten() -> None:
    for i in range(2):
        leaves, y = recorded(jt.functional.conv2d)
        with torch.no_grad():
            leaves[i].mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.parametrize("kind", [jt.Conv2d, jt.ConvTranspose2d])
@pytest.mark.parametrize("autocast", [False, True])
def test_checkpointing_of_extents_that_are_new(kind: type[jt.Conv2d], autocast: bool) -> None:
    """Checkpointing lets a saved tensor be unpacked once."""
    results = []
    for checkpointed in (True, False):
        torch.manual_seed(0)
        layer = kind(3, 7, (2, 3), activation="relu")
        x = torch.randn(2, 3, 9, 11, requires_grad=True)
        for known in _convolution._convolutions.values():
            known.forget()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = checkpoint(layer, x, use_reentrant=False) if checkpointed else layer(x)
        results.append([y, *torch.autograd.grad(y.float().square().sum(), (x, layer.weight, layer.bias))])
    close(*results)
