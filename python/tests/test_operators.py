"""The operators: schema, fake, opcheck, transforms, autocast, graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from reference import exact, excess
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.library import opcheck
from torch.nn import functional

import jitconv.torch as jt
from jitconv.torch import _convolution

pytestmark = pytest.mark.usefixtures("host")

CONVOLUTION = torch.ops.jitconv.convolution
BACKWARD = torch.ops.jitconv.convolution_backward

# stride, padding, dilation, transposed, output_padding, groups
SETTINGS: dict[str, tuple[Any, ...]] = {
    "asymmetric": ([1, 1], [1, 0, 0, 1], [1, 1], False, [0, 0], 2),
    "strided": ([2, 1], [1, 1, 2, 2], [1, 2], False, [0, 0], 2),
    "transposed": ([2, 1], [1, 1, 0, 0], [1, 1], True, [1, 0], 2),
}


def operands(transposed: bool = False, channels_last: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 5, 6)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    w = torch.randn(4, 3, 3, 2) if transposed else torch.randn(6, 2, 3, 2)
    return [t.requires_grad_() for t in (x, w, torch.randn(6))]


def test_schema() -> None:
    assert str(CONVOLUTION.default._schema) == (
        "jitconv::convolution(Tensor x, Tensor w, Tensor? bias, int[2] stride, int[4] padding, int[2] dilation, "
        'bool transposed, int[2] output_padding, int groups, str activation="none", '
        "float slope=0.01, float clamp_min=0., float clamp_max=6., str? math=None, "
        'str policy="always") -> Tensor'
    )


@pytest.mark.parametrize(
    ("name", "channels_last", "activation", "policy"),
    [
        ("asymmetric", False, "none", "host"),
        ("asymmetric", True, "relu", "host"),
        ("asymmetric", True, "silu", "torch"),
        ("strided", False, "silu", "host"),
        ("transposed", False, "none", "torch"),
        ("transposed", True, "relu", "host"),
    ],
)
def test_opcheck_forward(name: str, channels_last: bool, activation: str, policy: Any) -> None:
    x, w, b = operands(SETTINGS[name][3], channels_last)
    with jt.cpu_policy(policy):
        opcheck(CONVOLUTION.default, (x, w, b, *SETTINGS[name], activation))


@pytest.mark.parametrize(
    ("name", "mask", "policy"),
    [
        ("asymmetric", (True, True, True), "torch"),
        ("strided", (False, True, False), "host"),
        ("transposed", (True, False, True), "host"),
    ],
)
def test_opcheck_backward(name: str, mask: tuple[bool, ...], policy: Any) -> None:
    x, w, b = operands(SETTINGS[name][3])
    with jt.cpu_policy(policy):
        dy = torch.randn_like(CONVOLUTION(x, w, b, *SETTINGS[name]))
        opcheck(BACKWARD.default, (dy, x, w, None, *SETTINGS[name]), {"output_mask": list(mask)})


@pytest.mark.parametrize("w_channels_last", [False, True])
@pytest.mark.parametrize(
    "shape", [(2, 4, 5, 6), (2, 1, 5, 6), (1, 4, 1, 1), (2, 4, 1, 6), (1, 1, 5, 6), (2, 4, 5, 1)], ids=str
)
@pytest.mark.parametrize("x_channels_last", [False, True])
def test_strides_are_pytorchs(shape: tuple[int, ...], x_channels_last: bool, w_channels_last: bool) -> None:
    x, w = torch.randn(shape), torch.randn(6, shape[1], 1, 1)
    if x_channels_last:
        x = x.to(memory_format=torch.channels_last)
    if w_channels_last:
        w = w.to(memory_format=torch.channels_last)
    settings = ([1, 1], [0, 0, 0, 0], [1, 1], False, [0, 0], 1)
    y = CONVOLUTION(x, w, None, *settings)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = CONVOLUTION(mode.from_tensor(x), mode.from_tensor(w), None, *settings)
        expected = torch.ops.aten.convolution(
            mode.from_tensor(x), mode.from_tensor(w), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
        )
    assert y.stride() == fake.stride()
    assert y.is_contiguous(memory_format=torch.channels_last) == expected.is_contiguous(
        memory_format=torch.channels_last
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_double_backward(name: str) -> None:
    """In float64, by PyTorch's convolution: what is tested is the formula."""
    with jt.cpu_policy("torch"):
        tensors = [t.detach().double().requires_grad_() for t in operands(SETTINGS[name][3])]
        tensors = [t[..., :4, :4].detach().requires_grad_() if t.dim() == 4 else t for t in tensors]
        assert torch.autograd.gradcheck(lambda *t: CONVOLUTION(*t, *SETTINGS[name]), tensors, fast_mode=True)
        assert torch.autograd.gradgradcheck(lambda *t: CONVOLUTION(*t, *SETTINGS[name]), tensors, fast_mode=True)


def test_double_backward_through_the_function() -> None:
    def penalty(conv: Any) -> tuple[torch.Tensor, ...]:
        x, w, b = operands()
        (g,) = torch.autograd.grad(conv(x, w, b, groups=2).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), (x, w))

    for actual, expected in zip(penalty(jt.functional.conv2d), penalty(functional.conv2d), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-3)


def test_double_backward_of_a_fused_activation_is_refused() -> None:
    x, w, b = operands()
    y = jt.functional.conv2d(x, w, b, groups=2, activation="relu")
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="activation=None"):
        g.sum().backward()


def test_vmap() -> None:
    x, w, b = (t.detach() for t in operands())
    xs, ws = torch.randn(3, *x.shape), torch.randn(3, *w.shape)

    def conv(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return jt.functional.conv2d(x, w, b, groups=2)

    for dims, arguments in (
        ((0, None), (xs, w)),
        ((0, 0), (xs, ws)),
        ((None, 0), (x, ws)),
        ((1, None), (xs.movedim(0, 1), w)),
    ):
        expected = torch.vmap(lambda x, w: functional.conv2d(x, w, b, groups=2), dims)(*arguments)
        torch.testing.assert_close(torch.vmap(conv, dims)(*arguments), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", [None, "silu"])
def test_gradients_of_each_sample(activation: str | None) -> None:
    x, w, b = (t.detach() for t in operands())
    xs = torch.randn(3, *x.shape)

    def per_sample(conv: Any) -> torch.Tensor:
        def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return conv(x, w).square().sum()

        return torch.vmap(torch.func.grad(loss), (None, 0))(w, xs)

    actual = per_sample(lambda x, w: jt.functional.conv2d(x, w, b, groups=2, activation=activation))
    expected = per_sample(
        lambda x, w: (functional.silu if activation else torch.Tensor.clone)(functional.conv2d(x, w, b, groups=2))
    )
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-3)


def test_forward_mode_is_an_error_and_not_a_zero() -> None:
    x, w, b = (t.detach() for t in operands())
    settings = SETTINGS["strided"]
    layer = jt.Conv2d(4, 6, 3)

    def dual(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        with forward_ad.dual_level():
            function(forward_ad.make_dual(x, torch.ones_like(x)))

    def function(x: torch.Tensor) -> torch.Tensor:
        return jt.functional.conv2d(x, w, b, groups=2)

    for call in (
        lambda: torch.func.jvp(function, (x,), (torch.ones_like(x),)),
        lambda: torch.func.jacfwd(function)(x),
        lambda: torch.func.linearize(function, x),
        lambda: dual(function),
        lambda: dual(layer),
        lambda: dual(torch.no_grad()(layer)),
        lambda: dual(lambda x: CONVOLUTION(x, w, b, *settings)),
    ):
        with pytest.raises(NotImplementedError, match="forward-mode"):
            call()


def test_autocast() -> None:
    x, w, b = operands()
    with torch.autocast("cpu", torch.bfloat16):
        eager = jt.functional.conv2d(x, w, b, padding=1, groups=2)
        by_operator = CONVOLUTION(x, w, b, [1, 1], [1] * 4, [1, 1], False, [0, 0], 2)
        expected = functional.conv2d(x, w, b, padding=1, groups=2)
        with torch.no_grad():
            inferred = jt.functional.conv2d(x, w, b, padding=1, groups=2)
    dy = torch.randn_like(expected)
    gradients = [torch.autograd.grad(y, (x, w, b), dy) for y in (expected, eager, by_operator)]
    for y in (eager, by_operator, inferred):
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y, expected, rtol=2e-2, atol=2e-2)
    for results in gradients[1:]:
        for actual, wanted in zip(results, gradients[0], strict=True):
            assert actual.dtype == torch.float32
            torch.testing.assert_close(actual, wanted, rtol=2e-2, atol=5e-2)


def test_autocast_rounds_no_gradient_of_weights() -> None:
    x, w, b = operands()
    with torch.autocast("cpu", torch.bfloat16):
        y = jt.functional.conv2d(x, w, b, groups=2)
    dy = torch.randn_like(y)
    _, dw, db = torch.autograd.grad(y, (x, w, b), dy)
    truth = exact(lambda *t: functional.conv2d(*t, groups=2), x.bfloat16(), w.bfloat16(), b.bfloat16(), dy)
    for which, actual in ((2, dw), (3, db)):
        assert actual.dtype == torch.float32
        assert excess(actual, truth, which, "fp32") <= 4  # tensor cores may sum in steps of 2^-22 instead of 2^-24


@pytest.mark.parametrize("activation", [None, "relu", "silu"])
def test_compile(activation: str | None) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        jt.Conv2d(3, 4, 3, padding="same", activation=activation), jt.ConvTranspose2d(4, 2, 2, stride=2)
    )
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (4, 5):
        x = torch.randn(2, 3, size, 4, requires_grad=True)
        y, expected = compiled(x), model(x)
        torch.testing.assert_close(y, expected)
        parameters = (x, *model.parameters())
        for actual, wanted in zip(
            torch.autograd.grad(y.sum(), parameters), torch.autograd.grad(expected.sum(), parameters), strict=True
        ):
            torch.testing.assert_close(actual, wanted)


def test_sequences_in_a_graph_have_pytorchs_strides() -> None:
    layer = jt.Conv1d(3, 4, 3, activation="relu")
    x = torch.randn(2, 7, 3).mT.requires_grad_()
    expected = torch.nn.Conv1d.forward(torch.nn.Conv1d(3, 4, 3), x).stride()
    for call in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
        y = call(x)
        (dx,) = torch.autograd.grad(y.sum(), x)
        assert (y.stride(), dx.stride()) == (expected, (21, 7, 1))


def test_functions_in_a_graph() -> None:
    torch._dynamo.reset()
    x, w = torch.randn(2, 4, 6), torch.randn(4, 2, 3)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def both(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = jt.functional.conv1d(x, w, padding=[1], groups=2, activation="relu")
        return jt.functional.conv_transpose1d(y, w, groups=1, stride=2)

    expected = functional.conv_transpose1d(functional.conv1d(x, w, padding=1, groups=2).relu(), w, stride=2)
    torch.testing.assert_close(both(x, w), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict: bool) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer, x = jt.Conv2d(3, 4, 3, activation="silu"), torch.randn(2, 3, 4, 5)
    exported = torch.export.export(layer, (x,), strict=strict)
    targets = [node.target for node in exported.graph.nodes]
    assert CONVOLUTION.default in targets
    torch.testing.assert_close(exported.module()(x), layer(x), rtol=1e-4, atol=1e-5)


def test_the_operator_is_seen_where_something_looks() -> None:
    x, w, b = operands()
    names: list[str] = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        jt.functional.conv2d(x, w, b, groups=2)
    assert "jitconv.convolution.default" in names
    with warnings.catch_warnings(), torch.profiler.profile() as profile:
        warnings.simplefilter("ignore")
        jt.functional.conv2d(x, w, b, groups=2)
    assert any(event.name == "jitconv::convolution" for event in profile.events())


@pytest.fixture
def redispatched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the operators that are called by way of the dispatcher once more, behind autograd."""
    names: list[str] = []
    redispatch = torch._ops.OpOverload.redispatch

    def noted(self: torch._ops.OpOverload, *arguments: Any, **keywords: Any) -> Any:
        names.append(self._opname)
        return redispatch(self, *arguments, **keywords)

    monkeypatch.setattr(torch._ops.OpOverload, "redispatch", noted)
    return names


def test_without_derivatives_the_kernel_is_called_at_once(redispatched: list[str]) -> None:
    x, w, b = (t.detach() for t in operands())
    arguments = SETTINGS["asymmetric"]
    y = CONVOLUTION(x, w, b, *arguments)
    BACKWARD(y, x, w, None, *arguments, output_mask=[True, True, False])
    with torch.no_grad():
        CONVOLUTION(x.requires_grad_(), w, b, *arguments)
    with torch.inference_mode():
        CONVOLUTION(x, w, b, *arguments)
    assert redispatched == []
    CONVOLUTION(x, w, b, *arguments)
    assert redispatched == ["convolution"]


def test_what_stands_between_autograd_and_the_kernel_is_not_left_out(redispatched: list[str]) -> None:
    x, w, _ = (t.detach() for t in operands())
    arguments = SETTINGS["asymmetric"]
    negative = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert negative.is_neg()
    with torch.no_grad():
        expected = CONVOLUTION(x, w, None, *arguments)
        assert torch.equal(CONVOLUTION(negative, w, None, *arguments), expected)
        with FakeTensorMode(allow_non_fake_inputs=True):
            assert isinstance(CONVOLUTION(x, w, None, *arguments), FakeTensor)
        assert CONVOLUTION(x.to("meta"), w.to("meta"), None, *arguments).is_meta
    assert redispatched == ["convolution"] * 3
    with torch.no_grad():
        assert torch.equal(torch.vmap(lambda x: CONVOLUTION(x, w, None, *arguments))(x[None])[0], expected)
        gradient = torch.func.grad(lambda w: jt.functional.conv2d(x, w, padding=1, groups=2).sum())(w)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("grad", [False, True])
def test_packed_weights_are_kept_of_parameters(grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other tensors of a graph nobody knows whether they come again."""
    packs: list[bool] = []
    forward = _convolution.Convolution.forward

    def noted(self: Any, *tensors: Any, activation: bool, pack: bool) -> torch.Tensor:
        packs.append(pack)
        return forward(self, *tensors, activation, pack)

    monkeypatch.setattr(_convolution.Convolution, "forward", noted)
    x, w, _ = (t.detach() for t in operands())
    with torch.set_grad_enabled(grad):
        CONVOLUTION(x, w, None, *SETTINGS["asymmetric"])
        CONVOLUTION(x, torch.nn.Parameter(w, requires_grad=False), None, *SETTINGS["asymmetric"])
    assert packs == [False, not grad]
