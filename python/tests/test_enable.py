"""enable(): PyTorch's own functions reach jitconv, below PyTorch's autograd; everything else stays PyTorch's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import jitconv.torch as jt
from jitconv.torch import _convolution, _stats


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note what jitconv computed: "forward" and the masks of gradients. Nothing stays enabled."""
    found: list[str] = []
    forward, backward = _convolution.Convolution.forward, _convolution.Convolution.backward

    def counted_forward(self, *arguments, **keywords):  # type: ignore[no-untyped-def]
        found.append("forward")
        return forward(self, *arguments, **keywords)

    def counted_backward(self, dy, x, w, saved, mask, **keywords):  # type: ignore[no-untyped-def]
        found.append("".join(name for name, wanted in zip(("dx", "dw", "db"), mask, strict=True) if wanted))
        return backward(self, dy, x, w, saved, mask, **keywords)

    monkeypatch.setattr(_convolution.Convolution, "forward", counted_forward)
    monkeypatch.setattr(_convolution.Convolution, "backward", counted_backward)
    _stats.stats(reset=True)
    yield found
    jt.disable()


def values(shape: tuple[int, ...]) -> torch.Tensor:
    """Small integers, whose sums are exact."""
    return torch.randint(-3, 4, shape).float().requires_grad_()


CALLS = {
    "conv2d": (lambda x, w, b: functional.conv2d(x, w, b, padding=1, stride=2), (2, 4, 5, 6), (2, 4, 3, 3), (2,)),
    "grouped": (lambda x, w, b: functional.conv2d(x, w, b, padding="same", groups=2), (1, 4, 4, 5), (2, 2, 3, 2), (2,)),
    "conv1d": (lambda x, w, b: functional.conv1d(x, w, b, dilation=2), (2, 2, 9), (3, 2, 3), (3,)),
    "transposed": (
        lambda x, w, b: functional.conv_transpose2d(x, w, b, stride=2, output_padding=1),
        (1, 2, 3, 3), (2, 3, 3, 3), (3,),
    ),
    "transposed 1-D": (lambda x, w, b: functional.conv_transpose1d(x, w, b, stride=2), (1, 2, 4), (2, 3, 3), (3,)),
    "unbatched": (functional.conv2d, (2, 4, 4), (2, 2, 3, 3), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_and_gradients_are_exact(name: str, launches: list[str]) -> None:
    call, *shapes = CALLS[name]
    tensors = [values(shape) for shape in shapes]
    expected = call(*tensors)
    dy = torch.randint(-3, 4, expected.shape).float()
    gradients = torch.autograd.grad(expected, tensors, dy)
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        found = call(*tensors)
        mine = torch.autograd.grad(found, tensors, dy)
    assert launches == ["forward", "dxdwdb"]
    assert torch.equal(found, expected)
    assert all(torch.equal(a, b) for a, b in zip(mine, gradients, strict=True))
    assert _stats.stats().served_by_pytorch == {}


def test_second_gradients_are_pytorchs_formula(launches: list[str]) -> None:
    x, w = values((1, 1, 3, 4)), values((1, 1, 2, 2))

    def second() -> tuple[torch.Tensor, ...]:
        y = functional.conv2d(x, w)
        (dx,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return torch.autograd.grad(dx.square().sum(), (x, w))

    expected = second()
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        found = second()
    assert len(launches) > 3
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_jitconv_does_not_have_is_pytorchs_and_counted(launches: list[str]) -> None:
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        functional.conv2d(torch.ones(1, 1, 2, 2).double(), torch.ones(1, 1, 1, 1).double())
        functional.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 1))
        functional.conv2d(torch.ones(0, 1, 2, 2), torch.ones(1, 1, 1, 1))
        layer = nn.Conv3d(1, 1, 1)
        layer(torch.ones(1, 1, 2, 2, 2)).sum().backward()
    assert launches == []
    assert _stats.stats().served_by_pytorch == {
        "float64 tensors": 1, "three spatial dimensions": 3, "an empty tensor": 1,
    }  # fmt: skip


REFUSED = {
    "no stride": lambda x, w: functional.conv2d(x, w, stride=0),
    "no dilation": lambda x, w: functional.conv2d(x, w, dilation=0),
    "negative padding": lambda x, w: functional.conv2d(x, w, padding=-1),
    "three paddings": lambda x, w: functional.conv2d(x, w, padding=(1, 2, 3)),
    "channels": lambda x, w: functional.conv2d(x[:, :1], w),
    "groups": lambda x, w: functional.conv2d(x, w, groups=3),
    "bias": lambda x, w: functional.conv2d(x, w, torch.ones(7)),
    "a large filter": lambda x, w: functional.conv2d(x, w.repeat(1, 1, 3, 3)),
    "a weight of a sequence": lambda x, w: functional.conv2d(x, w[0]),
    "output_padding": lambda x, w: functional.conv_transpose2d(x, w.transpose(0, 1), stride=2, output_padding=5),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_errors_are_pytorchs(call: Callable[..., torch.Tensor], launches: list[str]) -> None:
    x, w = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 3, 3)
    with pytest.raises(RuntimeError) as expected:
        call(x, w)
    with jt.cpu_policy("host"), jt.enable(device="cpu"), pytest.raises(RuntimeError) as found:
        call(x, w)
    assert type(found.value) is type(expected.value)
    assert str(found.value) == str(expected.value)
    assert sum(_stats.stats().served_by_pytorch.values()) == 1


def test_a_kernel_that_cannot_be_compiled_is_pytorchs(
    launches: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JITCONV_HOST_CXX", str(tmp_path / "no-compiler"))
    x, w = values((1, 1, 4, 9)), values((1, 1, 3, 2))
    expected = functional.conv2d(x, w)
    gradients = torch.autograd.grad(expected.sum(), (x, w))
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        found = functional.conv2d(x, w)
        mine = torch.autograd.grad(found.sum(), (x, w))
    assert torch.equal(found, expected)
    assert all(torch.equal(a, b) for a, b in zip(mine, gradients, strict=True))
    ((reason, count),) = _stats.stats().served_by_pytorch.items()
    assert reason.startswith("a kernel cannot be compiled: ")
    assert count == 2


def test_it_ends_with_its_block_and_nests(launches: list[str]) -> None:
    x, w = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1)
    with jt.cpu_policy("host"):
        with jt.enable(device="cpu"):
            with jt.enable(device="cpu", math="ieee"):
                functional.conv2d(x, w)
            functional.conv2d(x, w)
        functional.conv2d(x, w)
        assert len(launches) == 2
        jt.enable(device="cpu")
        jt.enable(device="cpu")
        jt.disable()
        functional.conv2d(x, w)
    assert len(launches) == 2


def test_it_holds_in_all_threads(launches: list[str]) -> None:
    x, w = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1)
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        threads = [threading.Thread(target=functional.conv2d, args=(x, w)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert launches == ["forward"] * 3


def test_compiled_code_reaches_it(launches: list[str]) -> None:
    layer = nn.Conv2d(2, 2, 3)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    x = values((1, 2, 4, 4))
    expected = layer(x)
    with jt.cpu_policy("host"), jt.enable(device="cpu", math="ieee"):
        found = compiled(x)
        found.sum().backward()
    assert launches[0] == "forward"
    assert len(launches) == 2
    torch.testing.assert_close(found, expected)


def test_jitconvs_own_layers_are_not_counted_twice(launches: list[str]) -> None:
    with jt.cpu_policy("host"), jt.enable(device="cpu"):
        jt.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2))
    assert launches == ["forward"]


def test_arguments_are_checked() -> None:
    for keywords in ({"policy": "never"}, {"device": "xpu"}, {"math": "fp8"}):
        with pytest.raises(ValueError, match="must be"):
            jt.enable(**keywords)  # type: ignore[arg-type]
    assert functional.conv2d(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1)).item() == 1
