"""The functions against float64, through host execution, within the bounds of docs/accuracy.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from reference import exact, excess
from torch.nn import functional

import jitconv
import jitconv.torch as jt

pytestmark = pytest.mark.usefixtures("host")

CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv2d": ("conv2d", (2, 4, 5, 6), (6, 2, 3, 2), {"stride": (2, 1), "padding": (1, 2), "groups": 2}),
    "same": ("conv2d", (2, 3, 5, 6), (4, 3, 4, 2), {"padding": "same", "dilation": (1, 2)}),
    "unbatched": ("conv2d", (3, 5, 6), (4, 3, 3, 3), {"padding": 1}),
    "conv1d": ("conv1d", (2, 4, 9), (3, 4, 3), {"stride": 2, "dilation": 2}),
    "conv_transpose2d": (
        "conv_transpose2d",
        (2, 4, 4, 3),
        (4, 3, 3, 2),
        {"stride": (2, 3), "padding": 1, "output_padding": (1, 2), "groups": 2},
    ),
    "conv_transpose1d": ("conv_transpose1d", (2, 3, 5), (3, 4, 3), {"stride": 2, "padding": 1, "dilation": 2}),
    "output_padding beyond the stride": (
        "conv_transpose2d",
        (2, 2, 4, 4),
        (2, 2, 4, 5),
        {"stride": (3, 2), "padding": (1, 2), "output_padding": (2, 3), "groups": 2, "dilation": (4, 4)},
    ),
}


@pytest.mark.parametrize(
    ("case", "dtype"),
    [(case, torch.float32) for case in CASES]
    + [(case, dtype) for case in ("conv2d", "conv_transpose2d") for dtype in (torch.float16, torch.bfloat16)],
    ids=str,
)
def test_results_and_gradients(case: str, dtype: torch.dtype) -> None:
    name, x_shape, w_shape, arguments = CASES[case]
    torch.manual_seed(0)
    filters = w_shape[1] * arguments.get("groups", 1) if "transpose" in name else w_shape[0]
    x, w, b = (torch.randn(s).to(dtype).requires_grad_() for s in (x_shape, w_shape, (filters,)))
    y = getattr(jt.functional, name)(x, w, b, **arguments)
    dy = torch.randn(y.shape).to(dtype)
    y.backward(dy)
    truth = exact(lambda *t: getattr(functional, name)(*t, **arguments), x, w, b, dy)
    for which, actual in enumerate((y, x.grad, w.grad, b.grad)):
        assert actual is not None
        assert excess(actual, truth, which, "fp32") <= 1


def test_fp16x3_is_nearly_as_exact_as_fp32() -> None:
    """Errors as a share of the sum of the products' magnitudes. Other modes' kernels may serve a problem this small."""
    torch.manual_seed(0)
    x, w, b = (torch.randn(s, requires_grad=True) for s in ((2, 32, 9, 11), (40, 32, 3, 3), (40,)))
    y = jt.functional.conv2d(x, w, b, padding=1, math="fp16x3")
    dy = torch.randn_like(y)
    truth = exact(lambda *t: functional.conv2d(*t, padding=1), x, w, b, dy)
    for actual, value, magnitude in zip(
        (y, *torch.autograd.grad(y, (x, w, b), dy)), truth.values, truth.magnitudes, strict=True
    ):
        assert value is not None
        assert magnitude is not None
        assert ((actual.double() - value).abs() / magnitude).max() < 2.0**-20


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("activation", "reference"),
    [
        ("relu", functional.relu),
        ("leaky_relu", lambda z: functional.leaky_relu(z, 0.2)),
        ("gelu", functional.gelu),
        ("gelu_tanh", lambda z: functional.gelu(z, approximate="tanh")),
        ("silu", functional.silu),
        ("sigmoid", torch.sigmoid),
        ("tanh", torch.tanh),
        ("hardswish", functional.hardswish),
        ("clamp", lambda z: functional.hardtanh(z, -0.5, 1.5)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_activations(activation: str, reference: Any, transposed: bool) -> None:
    """Trained and not: the first keeps what the derivative needs, the second fuses all."""
    torch.manual_seed(0)
    name = "conv_transpose2d" if transposed else "conv2d"
    x, w, b = (torch.randn(s, requires_grad=True) for s in ((2, 3, 5, 4), (3, 3, 3, 2), (3,)))
    more = {"activation": activation, "slope": 0.2, "clamp_min": -0.5, "clamp_max": 1.5}
    y = getattr(jt.functional, name)(x, w, b, padding=1, **more)
    dy = torch.randn_like(y)
    doubles = [t.detach().double().requires_grad_() for t in (x, w, b)]
    expected = reference(getattr(functional, name)(*doubles, padding=1))
    gradients = torch.autograd.grad(y, (x, w, b), dy)
    for actual, wanted in zip(
        (y, *gradients), (expected, *torch.autograd.grad(expected, doubles, dy.double())), strict=True
    ):
        torch.testing.assert_close(actual, wanted.float(), rtol=2e-5, atol=2e-5)
    with torch.no_grad():
        fused = getattr(jt.functional, name)(x, w, b, padding=1, **more)
    torch.testing.assert_close(fused, expected.float(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("slope", [0.0, -0.3])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_leaky_relu_whose_result_hides_the_sign(slope: float, compiled: bool) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(s, requires_grad=True) for s in ((2, 3, 5, 4), (3, 3, 3, 2), (3,))]

    def convolve(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return jt.functional.conv2d(x, w, b, activation="leaky_relu", slope=slope)

    y = (torch.compile(convolve, fullgraph=True, backend="aot_eager") if compiled else convolve)(*tensors)
    expected = functional.leaky_relu(functional.conv2d(*tensors), slope)
    dy = torch.randn_like(y)
    gradients, wanted = (torch.autograd.grad(result, tensors, dy) for result in (y, expected))
    torch.testing.assert_close((y, *gradients), (expected, *wanted), rtol=2e-5, atol=2e-5)
    with torch.no_grad():
        torch.testing.assert_close(convolve(*tensors), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("activation", [None, "relu"])
def test_some_gradients_alone(asked: tuple[int, ...], activation: str | None) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(s) for s in ((2, 3, 5, 4), (3, 3, 3, 2), (3,))]
    for i in asked:
        tensors[i].requires_grad_()
    y = jt.functional.conv2d(*tensors, activation=activation)
    expected = functional.conv2d(*tensors)
    expected = expected.relu() if activation else expected
    wanted = [tensors[i] for i in asked]
    for a, b in zip(torch.autograd.grad(y.sum(), wanted), torch.autograd.grad(expected.sum(), wanted), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def strided(t: torch.Tensor) -> torch.Tensor:
    """Return the same values as a view with gaps."""
    return torch.stack((t, torch.full_like(t, float("nan"))), -1)[..., 0]


@pytest.mark.parametrize("kind", ["gaps", "expanded", "unaligned", "transposed", "sliced"])
def test_views(kind: str) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 3, 5, 4), torch.randn(4, 3, 3, 2), torch.randn(4)
    view = {
        "gaps": lambda: (strided(x), strided(w), strided(b)),
        "expanded": lambda: (x[:1].expand(2, -1, -1, -1), w[:1].expand(4, -1, -1, -1), b[:1].expand(4)),
        "unaligned": lambda: tuple(torch.cat((t.flatten()[:1], t.flatten()))[1:].view(t.shape) for t in (x, w, b)),
        "transposed": lambda: (x.transpose(2, 3), w.transpose(2, 3), b.flip(0)),
        "sliced": lambda: (torch.randn(2, 5, 5, 4)[:, 1:4], w, b),
    }[kind]()
    leaves = [t.detach().requires_grad_() for t in view]
    y = jt.functional.conv2d(*leaves)
    expected = functional.conv2d(*leaves)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
    dy = torch.randn(y.shape[0], y.shape[2], y.shape[3], y.shape[1]).permute(0, 3, 1, 2)
    for a, c in zip(torch.autograd.grad(y, leaves, dy), torch.autograd.grad(expected, leaves, dy), strict=True):
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-4)


def test_an_empty_batch() -> None:
    x, w, b = torch.randn(0, 3, 5, 4, requires_grad=True), torch.randn(4, 3, 3, 2, requires_grad=True), torch.randn(4)
    for arguments in ({}, {"activation": "relu"}):
        y = jt.functional.conv2d(x, w, b.requires_grad_(), **arguments)
        assert y.shape == (0, 4, 3, 3)
        gradients = torch.autograd.grad(y.sum(), (x, w, b))
        assert gradients[0].shape == x.shape
        assert not gradients[1].any()
        assert not gradients[2].any()


def test_packed_weights_follow_the_weights() -> None:
    torch.manual_seed(0)
    layer, x = jt.Conv2d(8, 16, 3, padding=1, math="tf32"), torch.randn(1, 8, 6, 6)
    layer = layer.to(memory_format=torch.channels_last)

    def check() -> None:
        with torch.no_grad():
            expected = functional.conv2d(x, layer.weight, layer.bias, padding=1)
            torch.testing.assert_close(layer(x), expected, rtol=1e-2, atol=1e-2)

    check()
    check()
    with torch.no_grad():
        layer.weight.mul_(3)  # the version counter
    check()
    layer.weight.data = -layer.weight.data  # other memory
    check()
    layer.weight = torch.nn.Parameter(torch.randn_like(layer.weight))  # another tensor
    check()


WRONG = [
    (lambda f, x, w: f(x.double(), w.double()), jitconv.UnsupportedError, "float32, float16 and bfloat16"),
    (lambda f, x, w: f(x.to(torch.complex64), w.to(torch.complex64)), jitconv.UnsupportedError, "complex64"),
    (lambda f, x, w: f(x, w.half()), TypeError, "one type"),
    (lambda f, x, w: f(x.numpy(), w), TypeError, "input is a ndarray, must be a tensor"),
    (lambda f, x, w: f(x, None), TypeError, "weight is a NoneType, must be a tensor"),
    (lambda f, x, w: f(x, w, 1), TypeError, "bias is a int, must be a tensor"),
    (lambda f, x, w: f(x, w[:, :2]), ValueError, "3 channels, must have 2"),
    (lambda f, x, w: f(x[0, 0], w), ValueError, "dimensions"),
    (lambda f, x, w: f(x, w, torch.zeros(5)), ValueError, r"must be \(4,\)"),
    (lambda f, x, w: f(x, w, stride=0), ValueError, "stride"),
    (lambda f, x, w: f(x, w, padding=-1), ValueError, "padding"),
    (lambda f, x, w: f(x, w, padding="same", stride=2), ValueError, "strided"),
    (lambda f, x, w: f(x, w, padding="full"), ValueError, "'same'"),
    (lambda f, x, w: f(x, w, groups=0), ValueError, "groups"),
    (lambda f, x, w: f(x, w, activation="swish"), ValueError, "silu"),
    (lambda f, x, w: f(x, w, math="fast"), ValueError, "ieee, fp32, tf32, fp16x3"),
    (lambda f, x, w: f(x, w, policy="sometimes"), ValueError, "always"),
    (lambda f, x, w: f(x[..., :1, :1], w), jitconv.SpecError, "larger than the padded input"),
]


@pytest.mark.parametrize("index", range(len(WRONG)))
def test_errors_say_what_is_wrong(index: int) -> None:
    call, error, words = WRONG[index]
    with pytest.raises(error, match=words):
        call(jt.functional.conv2d, torch.zeros(1, 3, 5, 5), torch.zeros(4, 3, 3, 3))


@pytest.mark.parametrize("one", [np.int64, np.uint8])
def test_integers_of_other_libraries(one: Any) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(1, 4, 6, 6), torch.randn(4, 2, 3, 3)
    arguments = {"stride": one(2), "padding": (one(1), 0), "groups": one(2)}
    expected = functional.conv2d(x, w, None, 2, (1, 0), 1, 2)
    torch.testing.assert_close(jt.functional.conv2d(x, w, **arguments), expected, rtol=1e-4, atol=1e-5)
    layer = jt.Conv2d(4, 4, 3, bias=False, **arguments)
    layer.weight.data = w
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)
    y = jt.functional.conv_transpose2d(x, w, stride=np.array([2, 1]), output_padding=one(0), groups=2)
    torch.testing.assert_close(y, functional.conv_transpose2d(x, w, stride=(2, 1), groups=2), rtol=1e-4, atol=1e-5)


def test_what_is_no_integer_is_refused_as_pytorch_does() -> None:
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1)
    jt.functional.conv2d(x, w)  # True and False are equal to the integers of this call
    for arguments in ({"stride": True}, {"padding": False}, {"groups": True}, {"dilation": 1.5}, {"stride": "ab"}):
        for function in (functional.conv2d, jt.functional.conv2d):
            with pytest.raises(TypeError):
                function(x, w, **arguments)


def test_cpu_tensors_are_pytorchs_unless_asked() -> None:
    x, w = torch.randn(1, 2, 5, 5, dtype=torch.float64), torch.randn(3, 2, 3, 3, dtype=torch.float64)
    with jt.cpu_policy("torch"):
        before = jitconv.statistics()["compilations"]
        y = jt.functional.conv2d(x, w, activation="relu", padding=1)
        assert torch.equal(y, functional.conv2d(x, w, padding=1).relu())
        assert jitconv.statistics()["compilations"] == before
    with pytest.raises(ValueError, match="'torch' or 'host'"):
        jt.set_cpu_policy("gpu")  # type: ignore[arg-type]


@pytest.mark.parametrize("transposed", [False, True])
def test_sequences_with_other_strides(transposed: bool) -> None:
    """Transposed in memory, their gradients as well; all gradients, those without dw, and second ones."""
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 7, 3).mT.requires_grad_(), torch.randn(4, 3, 3).requires_grad_(), torch.randn(4)
    name = "conv_transpose1d" if transposed else "conv1d"
    if transposed:
        w = w.detach().mT.reshape(3, 4, 3).requires_grad_()
    b.requires_grad_()

    def gradients(module: Any, **keywords: Any) -> list[torch.Tensor]:
        y = getattr(module, name)(x, w, b, padding=1, **keywords)
        y = y if keywords else functional.leaky_relu(y, 0.2)
        dy = torch.linspace(-1, 1, y.numel()).view(y.mT.shape).mT
        without_dw = torch.autograd.grad(y, (x, b), dy, retain_graph=True)
        z = getattr(module, name)(x, w, b, padding=1)
        first = torch.autograd.grad(z.square().sum(), (x, w), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (x, w))
        return [y, *torch.autograd.grad(y, (x, w, b), dy), *without_dw, *first, *second, z.relu_()]

    for mine, theirs in zip(
        gradients(jt.functional, activation="leaky_relu", slope=0.2), gradients(functional), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("policy", ["host", "torch"])
def test_strides_of_sequences_are_pytorchs(groups: int, policy: Any) -> None:
    """PyTorch makes a sequence contiguous first, so that none but weights make its result channels_last."""
    for x, w in (
        (torch.randn(2, 7, 3).mT, torch.randn(6, 3 // groups, 3)),
        (torch.randn(7, 3).T, torch.randn(6, 3 // groups, 3)),
        (torch.randn(2, 3, 7), torch.randn(6, 3, 3 // groups).mT),
        (torch.randn(2, 7, 3)[:, :, :groups].mT, torch.randn(6, 1, 3)),
    ):
        for module in (functional, jt.functional):
            x.requires_grad_()
            with jt.cpu_policy(policy):
                y = module.conv1d(x, w, groups=groups)
                (dx,) = torch.autograd.grad(y.sum(), x)
                (again,) = torch.autograd.grad(module.conv1d(x, w, groups=groups).square().sum(), x, create_graph=True)
            if module is functional:
                expected = (y.stride(), dx.stride(), again.stride())
        assert (y.stride(), dx.stride(), again.stride()) == expected


def test_math_follows_pytorch() -> None:
    from jitconv.torch._config import default_math  # noqa: PLC0415

    before = torch.backends.cudnn.conv.fp32_precision
    try:
        torch.backends.cudnn.conv.fp32_precision = "tf32"
        assert default_math() == "tf32"
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        assert default_math() == "fp32"
    finally:
        torch.backends.cudnn.conv.fp32_precision = before
