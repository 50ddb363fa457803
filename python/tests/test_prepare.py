"""prepare(): it finds what a step asks for, and the model is the same afterwards. stats() and async_compile()."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import jitconv
import jitconv.torch as jt
from jitconv.torch import _background, _convolution, _gradients, _plan, _record, _stats


class Net(nn.Module):
    """One of each: strided, fused, grouped, transposed, 1-D, shared, and a functional call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = jt.Conv2d(2, 4, 3, stride=2, padding=1, activation="relu")
        self.norm = nn.BatchNorm2d(4)
        self.second = jt.Conv2d(4, 4, 3, padding="same", groups=2, bias=False, activation="silu")
        self.grow = jt.ConvTranspose2d(4, 2, 3, 2, output_padding=1, activation="tanh")
        self.line = jt.Conv1d(2, 2, 3, dilation=2, activation="clamp")
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.second(self.norm(self.first(x)))
        self.kept = self.grow(self.second(y))
        z = jt.functional.conv2d(self.kept, self.grow.weight[:2], stride=3)
        return self.line(self.kept.flatten(2)).sum((1, 2)) + z.sum((1, 2, 3))


@pytest.fixture
def asked(host: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the specs that plans ask for, in order. Kernels are those of host execution."""
    specs: list[str] = []
    inner = _plan.compile_for

    def compile_for(spec: jitconv.Spec, device: torch.device) -> jitconv.Kernel:
        specs.append(str(spec))
        return inner(spec, device)

    for module in (_convolution, _gradients):
        monkeypatch.setattr(module, "compile_for", compile_for)
    for convolution in _convolution._convolutions.values():
        convolution.forget()
    return specs


@pytest.mark.parametrize(("needs_dx", "last"), [(False, False), (True, True)])
def test_the_first_step_compiles_nothing_new(asked: list[str], needs_dx: bool, last: bool) -> None:
    model = Net()
    x = torch.randn(2, 2, 6, 6, requires_grad=needs_dx)
    if last:
        model, x = model.to(memory_format=torch.channels_last), x.detach().contiguous(memory_format=torch.channels_last)
        x.requires_grad_(needs_dx)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seen: list[tuple[int, int, int, str]] = []
    prepared = jt.prepare(model, x, progress=lambda *step: seen.append(step))
    assert asked == []
    assert model.calls == 0
    assert "kept" not in model.__dict__
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert [done for done, *_ in seen] == list(range(1, len(prepared.origins) + 1))
    before = jitconv.statistics()["compilations"]
    model(x).sum().backward()
    assert jitconv.statistics()["compilations"] == before
    assert set(asked) == set(prepared.origins)
    layers = {(operation.layer, operation.direction) for operation in prepared.operations}
    assert {("first", "forward"), ("grow", "dx"), ("line", "dw")} <= layers
    assert (("first", "dx") in layers) == needs_dx
    assert "kernels in" in str(prepared)


def test_inference_and_autocast(asked: list[str]) -> None:
    model, x = Net().eval(), torch.randn(2, 2, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        prepared = jt.prepare(model, x, backward=False)
        with torch.no_grad():
            model(x)
    assert set(asked) == set(prepared.origins)
    assert all("dtype=bf16" in spec for spec in asked)
    assert {operation.direction for operation in prepared.operations} == {"forward"}


def test_training_under_autocast(asked: list[str]) -> None:
    layer, x = jt.Conv2d(2, 3, 2, activation="gelu"), torch.randn(1, 2, 3, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        prepared = jt.prepare(layer, x)
        y = layer(x)
    y.sum().backward()
    assert set(asked) == set(prepared.origins)
    assert sum("output_dtype=f32" in spec for spec in asked) == 1


def test_nothing_to_do_for_tensors_that_pytorch_computes() -> None:
    prepared = jt.prepare(Net(), torch.randn(2, 2, 6, 6))
    assert prepared.origins == {}
    assert "jitconv.torch.convert(model)" in str(prepared)


def test_a_recording_that_fails_leaves_no_trace() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(ValueError, match="Branch cannot run on fake tensors"):
        jt.prepare(Branch(), torch.ones(1))
    assert _record.active is None


@pytest.mark.parametrize("read", [lambda x: x.detach().numpy(), lambda x: np.asarray(x.detach()), lambda x: x.tolist()])
def test_code_that_reads_values_is_told_what_to_do(read: Any) -> None:
    class Reading(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            read(x)
            return x

    with pytest.raises(ValueError, match=r"Reading cannot run on fake tensors, .*: run one real step instead"):
        jt.prepare(Reading(), torch.ones(1))


def test_other_errors_of_a_model_stay_its_own() -> None:
    class Failing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        jt.prepare(Failing(), torch.ones(1))


@pytest.mark.parametrize("make", [lambda: jt.LazyConv2d(2, 1), nn.LazyBatchNorm2d])
def test_lazy_layers_are_called_first(make: Any) -> None:
    model, x = nn.Sequential(jt.Conv2d(2, 2, 1), make()), torch.ones(1, 2, 2, 2)
    with pytest.raises(ValueError, match=r"Sequential has lazy layers, .*1\..*: call it once on a real input"):
        jt.prepare(model, x)
    model(x)
    jt.prepare(model, x)


def test_what_cannot_be_computed_is_the_error_of_a_call() -> None:
    with pytest.raises(jitconv.SpecError, match=r"weight 3x3 .* larger than the padded input 2x5"):
        jt.prepare(jt.Conv2d(1, 2, 3), torch.ones(1, 1, 2, 5))


def test_wrappers_are_looked_through(asked: list[str]) -> None:
    layer = jt.Conv2d(1, 1, 1)
    prepared = jt.prepare(torch.compile(nn.DataParallel(layer)), torch.ones(1, 1, 2, 2), backward=False)
    assert len(prepared.origins) == 1


def test_the_bar_is_one_line(capsys: pytest.CaptureFixture[str], asked: list[str]) -> None:
    jt.prepare(jt.Conv2d(1, 1, 1), torch.ones(1, 1, 2, 2), progress=True)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "] 2/2 kernels, " in shown


def test_stats_and_the_log_say_what_changed(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jitconv.torch")
    _stats.stats(reset=True)
    layer = jt.Conv2d(1, 3, 1, bias=False)
    with torch.no_grad():
        layer(torch.ones(1, 1, 2, 5))
        layer(torch.ones(1, 1, 2, 5))
        layer(torch.ones(1, 1, 4, 5))
    compiled = jt.stats().compiled
    assert len(compiled) == 2
    assert compiled[1].reason == "input 1x1x2x5 -> 1x1x4x5"
    assert compiled[1].asked_by == "a call"
    assert "(input 1x1x2x5 -> 1x1x4x5)" in caplog.text
    assert "2 kernels in" in str(jt.stats(reset=True))
    assert jt.stats().compiled == ()


def test_stats_do_not_call_a_prepared_kernel_dropped(asked: list[str]) -> None:
    layer, x = jt.Conv2d(1, 3, 1, bias=False), torch.ones(1, 1, 3, 5)
    prepared = jt.prepare(layer, x, backward=False)
    _stats.stats(reset=True)
    with torch.no_grad():
        layer(x)
    assert [(c.origin, c.reason) for c in jt.stats().compiled] == [("memory", "nothing new")]
    del prepared


def test_pytorch_serves_while_a_kernel_compiles(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ready, inner = threading.Event(), _background._compile

    def slow(*arguments: Any) -> jitconv.Kernel:
        ready.wait(60)
        return inner(*arguments)

    def finish() -> None:
        ready.set()
        _background.wait()
        ready.clear()

    monkeypatch.setattr(_background, "_compile", slow)
    _stats.stats(reset=True)
    layer = jt.Conv2d(1, 2, 3, activation="relu")
    x = torch.randn(1, 1, 4, 7, requires_grad=True)
    expected = torch.relu(torch.nn.functional.conv2d(x, layer.weight, layer.bias))
    with jt.async_compile():
        first = layer(x)
        torch.testing.assert_close(first, expected)
        finish()
        second = layer(x)
        torch.testing.assert_close(second, expected)
        first.sum().backward()
        finish()
        second.sum().backward()
    found = jt.stats()
    assert found.served_by_pytorch == {"the kernel is being compiled": 3}  # forward, dx and dw, once each
    assert {c.asked_by for c in found.compiled} == {"the background"}
    assert x.grad is not None
    reference = torch.autograd.grad(expected.sum(), x)[0]
    torch.testing.assert_close(x.grad, 2 * reference)


def test_prepared_kernels_serve_the_first_call(asked: list[str]) -> None:
    layer, x = jt.Conv2d(1, 2, 2), torch.randn(1, 1, 3, 3)
    with jt.async_compile(), torch.no_grad():
        jt.prepare(layer, x, backward=False)
        _stats.stats(reset=True)
        layer(x)
    assert jt.stats().served_by_pytorch == {}


def test_a_capture_takes_what_was_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test on the CPU of what decides: `compile_for` refuses in a capture, and a prepared plan spares the call."""
    device, plan = torch.device("cuda", 0), object()
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(_background, "_plans", {})
    _background.provide("prepared", device, plan)  # type: ignore[arg-type]

    @_background.allowed
    def compile_for(spec: Any, device: torch.device) -> Any:
        raise jt.ColdKernelError(spec)

    for enabled in (False, True):
        with jt.async_compile(enabled):
            assert compile_for("prepared", device) is plan  # type: ignore[arg-type]
            with pytest.raises(jt.ColdKernelError):
                compile_for("cold", device)  # type: ignore[arg-type]
    assert len(_background._plans) == 1
