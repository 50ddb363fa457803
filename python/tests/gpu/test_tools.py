"""policy="auto", enable(), prepare(), explain() and async_compile() on a GPU, where times and captures are real."""

from __future__ import annotations

import pathlib

import pytest
import torch
from torch import nn
from torch.nn import functional

import jitconv
import jitconv.torch as jt
from jitconv.torch import _background, _policy, _stats

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without kernels on disk and without choices."""
    monkeypatch.setenv("JITCONV_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JITCONV_CACHE", "rw")
    _policy.forget()
    _stats.stats(reset=True)


def small() -> nn.Sequential:
    """Return a net with a choice in every layer, and no bias whose gradient a BatchNorm makes 0.

    Its activations are smooth: TF32 moves inputs of a ReLU across 0, and each changes dx of its neighbours by more than
    a tolerance of rounding allows, in any library.
    """
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(8, 32, 3, padding=1), nn.SiLU(),
        nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False), nn.BatchNorm2d(32),
        nn.ConvTranspose2d(32, 16, 2, 2), nn.SiLU(), nn.Conv2d(16, 4, 1),
    ).cuda()  # fmt: skip


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    """Compare what two TF32 computations gave."""
    a, b = a.detach().float(), b.detach().float()
    torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2 * b.abs().max().item())


def strides(t: torch.Tensor) -> list[int]:
    """Return the strides that matter: PyTorch itself differs in those of dimensions of one element."""
    return [stride for stride, extent in zip(t.stride(), t.shape, strict=True) if extent > 1]


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("policy", ["always", "auto"])
def test_converted_training_follows(memory: torch.memory_format, policy: str) -> None:
    model = small().to(memory_format=memory)
    converted = jt.convert(model, inplace=False, policy=policy, fuse_activation=True)
    x = torch.randn(4, 8, 32, 32, device="cuda").contiguous(memory_format=memory)
    for _ in range(2):
        a, b = model(x), converted(x)
        close(b, a)
        assert strides(b) == strides(a)
        a.square().mean().backward()
        b.square().mean().backward()
    for mine, theirs in zip(converted.parameters(), model.parameters(), strict=True):
        close(mine.grad, theirs.grad)


def test_auto_takes_the_faster_and_remembers_it(tmp_path: pathlib.Path) -> None:
    layer = jt.Conv2d(32, 32, 3, policy="auto", device="cuda")
    x = torch.randn(8, 32, 64, 64, device="cuda", requires_grad=True)
    layer(x).sum().backward()
    known = _policy.choices.items()
    assert len(known) == 3
    for _, choice in known:
        assert choice.jitconv_ms is not None
        assert choice.pytorch_ms is not None
    assert len(list((tmp_path / "torch-choices-1").iterdir())) == 3
    _policy.forget()
    layer(x).sum().backward()
    assert sorted(_policy.choices.items()) == sorted(known)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("policy", ["always", "auto"])
def test_enable_reaches_functions_layers_and_gradients(memory: torch.memory_format, policy: str) -> None:
    model = small().to(memory_format=memory)
    x = torch.randn(4, 8, 32, 32, device="cuda").contiguous(memory_format=memory).requires_grad_()
    expected = torch.autograd.grad(model(x).square().mean(), [x, *model.parameters()])
    expected_strides = [strides(model[:i](x)) for i in range(1, 8)]
    with jt.enable(policy=policy):
        found = torch.autograd.grad(model(x).square().mean(), [x, *model.parameters()])
        assert [strides(model[:i](x)) for i in range(1, 8)] == expected_strides
    assert jt.stats().compiled
    assert jt.stats().served_by_pytorch == {}
    for mine, theirs in zip(found, expected, strict=True):
        close(mine, theirs)
        assert strides(mine) == strides(theirs)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_inductors_code_reaches_the_override(memory: torch.memory_format) -> None:
    model = small().to(memory_format=memory)
    x = torch.randn(4, 8, 32, 32, device="cuda").contiguous(memory_format=memory)
    compiled = torch.compile(model, fullgraph=True)
    expected = model(x)
    with jt.enable():
        found = compiled(x)
        found.square().mean().backward()
    close(found, expected)
    assert {c.asked_by for c in jt.stats().compiled} == {"a call"}


@pytest.mark.parametrize("backends", ["ATEN", "ATEN,TRITON"])
def test_inductor_chooses_in_max_autotune(backends: str) -> None:
    jt.enable_inductor_autotuning()
    model = jt.convert(small().eval(), policy="auto")
    x = torch.randn(4, 8, 32, 32, device="cuda")
    options = {"max_autotune_conv_backends": backends, "max_autotune_gemm_backends": backends}
    with torch.no_grad(), torch._inductor.config.patch(options):
        expected = jt.revert(model, inplace=False)(x)
        close(torch.compile(model, mode="max-autotune-no-cudagraphs")(x), expected)


def test_a_capture_after_prepare_compiles_nothing() -> None:
    model = jt.convert(small().eval())
    x = torch.randn(4, 8, 32, 32, device="cuda")
    with torch.no_grad():
        expected = jt.revert(model, inplace=False)(x)
    prepared = jt.prepare(model, x, backward=True)
    compilations = jitconv.statistics()["compilations"]
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            torch.empty(1, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            y = model(x)
    graph.replay()
    torch.cuda.synchronize()
    close(y, expected)
    model(x).sum().backward()
    assert jitconv.statistics()["compilations"] == compilations
    assert len(prepared.kernels) == len(prepared.origins)


def test_a_cold_capture_under_enable_is_pytorchs() -> None:
    x, w = torch.randn(2, 8, 9, 9, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
    functional.conv2d(x, w)  # cuDNN's own start
    graph = torch.cuda.CUDAGraph()
    with jt.enable(), torch.cuda.graph(graph):
        y = functional.conv2d(x, w)
    graph.replay()
    close(y, functional.conv2d(x, w))
    assert "a CUDA graph is being captured and the kernel is missing" in jt.stats().served_by_pytorch


def test_background_compilation_is_taken_up() -> None:
    layer = jt.Conv2d(8, 16, 3, device="cuda")
    x = torch.randn(2, 8, 19, 21, device="cuda")
    with jt.async_compile(), torch.no_grad():
        close(layer(x), functional.conv2d(x, layer.weight, layer.bias))
        _background.wait()
        _stats.stats(reset=True)
        close(layer(x), functional.conv2d(x, layer.weight, layer.bias))
    assert jt.stats().served_by_pytorch == {}


def test_explain_measures_every_operation(tmp_path: pathlib.Path) -> None:
    model = jt.convert(small())
    x = torch.randn(4, 8, 32, 32, device="cuda", requires_grad=True)
    explanation = jt.explain(model, x)
    assert len(explanation.rows) == 12
    for row in explanation.rows:
        assert row.jitconv_ms is not None
        assert row.pytorch_ms is not None
        assert row.floor_ms is not None
        assert 0 < row.floor_ms < row.jitconv_ms
    print(explanation)
    for name in ("page.html", "rows.json", "table.txt"):
        explanation.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 500
