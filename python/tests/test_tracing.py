"""What PyTorch's tools see of layers and functions: torch.fx, FlopCounterMode, skip_init and signatures."""

from __future__ import annotations

import copy
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import jitconv.torch as jt

pytestmark = pytest.mark.usefixtures("host")


class Net(nn.Module):
    """Each kind of layer, one call with an output size, and attributes that a graph must find."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 4, 3, padding="same", padding_mode="reflect"), nn.ReLU())
        self.grow = nn.ConvTranspose2d(4, 2, 3, 2)
        self.line = nn.Conv1d(2, 2, 3)
        self.shrink = nn.ConvTranspose1d(2, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.grow(self.layers(x), output_size=[12, 12])
        return self.shrink(self.line(y.flatten(2)))


def targets(graph: fx.GraphModule, op: str) -> list[Any]:
    return [node.target for node in graph.graph.nodes if node.op == op]


def test_a_converted_model_traces_to_the_same_graph() -> None:
    torch.manual_seed(0)
    model, x = Net(), torch.randn(1, 2, 5, 5)
    before = fx.symbolic_trace(model)
    expected = model(x)
    jt.convert(model)
    model(x)  # and with the static parts found
    after = fx.symbolic_trace(model)
    assert targets(after, "call_module") == targets(before, "call_module")
    torch.testing.assert_close(after(x), expected, rtol=1e-4, atol=1e-5)
    assert type(after.grow) is jt.ConvTranspose2d
    torch.testing.assert_close(copy.deepcopy(after)(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(jt.revert(after)(x), expected)


def test_a_hook_runs_once() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(jt.Conv2d(2, 3, 2, activation="relu")), torch.randn(1, 2, 3, 3)
    model[0].register_forward_hook(lambda module, arguments, y: y * 2)
    torch.testing.assert_close(fx.symbolic_trace(model)(x), model(x))


@pytest.mark.parametrize(
    "layer",
    [jt.Conv2d(2, 4, 3, padding="same", activation="gelu"), jt.ConvTranspose2d(2, 4, 3, 2, output_padding=1)],
    ids=["Conv2d", "ConvTranspose2d"],
)
def test_a_layer_by_itself_becomes_a_function(layer: nn.Module) -> None:
    x = torch.randn(1, 2, 4, 4)
    traced = fx.symbolic_trace(layer, {"output_size": None} if isinstance(layer, nn.ConvTranspose2d) else None)
    assert targets(traced, "call_function")[-1] is jt.functional.convolve_by_settings
    assert torch.equal(traced(x), layer(x))
    assert traced(x[0]).shape == layer(x[0]).shape


def test_functions_are_traced() -> None:
    def call(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return jt.functional.conv2d(x, w, stride=2, padding=1, activation="silu")

    x, w = torch.randn(1, 2, 4, 4), torch.randn(3, 2, 3, 3)
    assert torch.equal(fx.symbolic_trace(call)(x, w), call(x, w))


CALLS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "conv2d": (lambda f, x, w: f.conv2d(x, w, stride=2, padding=1, groups=2), (2, 4, 5, 6), (6, 2, 3, 3)),
    "conv1d": (lambda f, x, w: f.conv1d(x, w, dilation=2), (2, 3, 9), (4, 3, 3)),
    "transposed": (lambda f, x, w: f.conv_transpose2d(x, w, stride=2), (1, 3, 4, 4), (3, 2, 3, 2)),
}


@pytest.mark.parametrize("policy", ["torch", "host"])
@pytest.mark.parametrize("name", CALLS)
def test_products_are_counted_as_pytorchs(name: str, policy: Any) -> None:
    call, *shapes = CALLS[name]
    counts = []
    for library in (functional, jt.functional):
        operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
        with jt.cpu_policy(policy), FlopCounterMode(display=False) as forward:
            y = call(library, *operands)
        with jt.cpu_policy(policy), FlopCounterMode(display=False) as backward:
            y.sum().backward()
        counts.append((forward.get_total_flops(), backward.get_total_flops()))
    assert counts[0] == counts[1]
    assert min(counts[0]) > 0


def test_the_counter_is_imported_by_who_wants_it() -> None:
    """It imports Triton, which takes longer than the package does."""
    code = (
        "import sys, torch, jitconv.torch\n"
        "assert 'torch.utils.flop_counter' not in sys.modules\n"
        "from torch.utils.flop_counter import flop_registry\n"
        "assert torch.ops.jitconv.convolution in flop_registry\n"
        "assert torch.ops.jitconv.convolution_backward in flop_registry\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_layer_with_an_activation_is_counted() -> None:
    counts = []
    for layer in (nn.Conv2d(2, 4, 3), jt.Conv2d(2, 4, 3, activation="gelu")):
        with FlopCounterMode(display=False) as counter:
            layer(torch.randn(1, 2, 5, 5)).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "ConvTranspose1d", "LazyConv2d", "LazyConvTranspose2d"])
def test_constructors_have_pytorchs_parameters_and_the_own(name: str) -> None:
    theirs, ours = (list(inspect.signature(getattr(module, name)).parameters) for module in (nn, jt))
    assert ours == [*theirs, "activation", "slope", "clamp_min", "clamp_max", "math", "policy"]


def test_parameters_need_no_initialisation() -> None:
    layer = nn.utils.skip_init(jt.Conv2d, 3, 4, 3, activation="relu")
    assert layer.weight.shape == (4, 3, 3, 3)
    assert layer.weight.device.type == "cpu"
    assert layer.activation == "relu"


def test_a_subclass_has_its_own_constructor() -> None:
    class Same(jt.Conv2d):
        pass

    class Square(jt.Conv2d):
        def __init__(self, channels: int) -> None:
            super().__init__(channels, channels, 3)

    assert inspect.signature(Same) == inspect.signature(jt.Conv2d)
    assert list(inspect.signature(Square).parameters) == ["channels"]
