"""What needs a GPU: PyTorch's own samples against float64, streams, graphs, AMP, threads, processes, DDP."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import run_workers
from reference import exact, excess
from torch import nn

import jitconv.torch as jt

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

NAMES = ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")


@pytest.fixture(autouse=True)
def _full_precision() -> Iterator[None]:
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def samples(name: str, dtype: torch.dtype) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415

    (info,) = [op for op in op_db if op.name == f"nn.functional.{name}"]
    return list(info.sample_inputs("cuda", dtype, requires_grad=True))


def leaves(sample: Any, channels_last: bool) -> tuple[Any, ...]:
    x, (w, *rest) = sample.input, sample.args
    b, *positional = rest if rest else [None]
    tensors = [None if t is None else t.detach().clone().requires_grad_() for t in (x, w, b)]
    if channels_last:
        tensors = [
            t.detach().to(memory_format=torch.channels_last).requires_grad_() if t is not None and t.dim() == 4 else t
            for t in tensors
        ]
    return (*tensors, positional)


@pytest.mark.parametrize("channels_last", [False, True], ids=["nchw", "nhwc"])
@pytest.mark.parametrize(("dtype", "math"), [(torch.float32, "fp32"), (torch.float32, "tf32"),
                                             (torch.float16, "fp32"), (torch.bfloat16, "fp32")],
                         ids=["fp32", "tf32", "f16", "bf16"])  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_samples_of_pytorch(
    name: str, dtype: torch.dtype, math: str, channels_last: bool, record_property: Any
) -> None:
    torch.manual_seed(0)
    function, reference = getattr(jt.functional, name), getattr(nn.functional, name)
    done: Counter[str] = Counter()
    worst = 0.0
    for sample in samples(name, dtype):
        x, w, b, positional = leaves(sample, channels_last)
        if channels_last and x.dim() != 4:
            done["without a channels_last form"] += 1
            continue
        y = function(x, w, b, *positional, **sample.kwargs, math=math)
        expected = reference(x.detach(), w.detach(), None if b is None else b.detach(), *positional, **sample.kwargs)
        assert y.shape == expected.shape
        assert y.dtype == dtype
        if channels_last:
            assert y.is_contiguous(memory_format=torch.channels_last)
        dy = torch.randn_like(y)
        y.backward(dy)
        truth = exact(lambda *t, p=positional, k=sample.kwargs: reference(*t, *p, **k), x, w, b, dy)
        results = [y, x.grad, w.grad, None if b is None else b.grad]
        for which, actual in enumerate(results):
            if actual is not None:
                share = excess(actual, truth, which, math)
                worst = max(worst, share)
                assert share <= 1, f"{sample}: result {which} is {share:.2f} times its bound"
        done["forward and backward"] += 1
    assert done["forward and backward"] > 0 or channels_last
    record_property("samples", dict(done))
    print(
        f"\n{name} {dtype} {math} {'nhwc' if channels_last else 'nchw'}: {dict(done)}, worst {worst:.3f} of the bound"
    )


def layer(**arguments: Any) -> jt.Conv2d:
    torch.manual_seed(1)
    return jt.Conv2d(16, 32, 3, padding=1, **arguments).cuda()


def picture(n: int = 4) -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(n, 16, 24, 20, device="cuda")


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_current_stream() -> None:
    conv, x = layer(), picture()
    expected = conv(x).detach()
    stream = torch.cuda.Stream()
    late = torch.empty_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream), torch.no_grad():
        late.fill_(float("nan"))
        torch.cuda._sleep(20_000_000)
        late.copy_(x)
        y = conv(late)  # must wait for the copy, which only this stream knows of
    stream.synchronize()
    close(y, expected)


def test_packed_weights_follow_the_weights_and_the_stream() -> None:
    conv, x = layer(math="tf32").eval(), picture()
    with torch.no_grad():
        for _ in range(2):
            conv(x)
        conv.weight.mul_(2)
        doubled = conv(x)
        conv.weight.data = conv.weight.data * 2
        quadrupled = conv(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            again = conv(x)
        torch.cuda.synchronize()
        bias = conv.bias.view(1, -1, 1, 1)
        torch.testing.assert_close(quadrupled - bias, 2 * (doubled - bias), rtol=1e-3, atol=1e-3)
        assert torch.equal(again, quadrupled)


def test_packed_weights_go_with_the_weights() -> None:
    x = torch.randn(1, 256, 8, 8, device="cuda")
    used = []
    for _ in range(4):
        conv = jt.Conv2d(256, 256, 3, padding=1, math="tf32", device="cuda").eval()
        conv = conv.to(memory_format=torch.channels_last)  # so that a copy is kept, if not packed
        with torch.no_grad():
            conv(x)
        del conv
        used.append(torch.cuda.memory_allocated())
    assert used[-1] == used[1]


def test_cuda_graph() -> None:
    conv, x = layer(activation="relu"), picture()
    with torch.no_grad():
        expected = conv(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = conv(x)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, expected)
        conv.weight.mul_(0.5)  # a graph reads the weights of the time of its replay
        conv.bias.mul_(0.5)
        graph.replay()
        torch.cuda.synchronize()
        close(y, expected / 2)


def test_inference_beside_a_training_step_in_a_graph() -> None:
    """A replay counts no version of the weights that it writes."""
    conv, x = layer(), picture()
    conv = conv.to(memory_format=torch.channels_last)  # so that a copy is kept, if not packed
    optimizer = torch.optim.SGD(conv.parameters(), 0.1)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        conv(x).square().mean().backward()
        optimizer.step()

    def check() -> None:
        with torch.no_grad():
            close(conv(x), nn.functional.conv2d(x, conv.weight, conv.bias, padding=conv.padding))

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    check()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        check()
        graph.replay()
    check()


def test_cold_kernel_in_a_capture() -> None:
    conv = layer(activation="relu")
    x = torch.randn(3, 16, 9, 11, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), pytest.raises(jt.ColdKernelError, match=r"jitconv\.torch\.prepare"), torch.cuda.graph(graph):
        conv(x)
    torch.cuda.synchronize()
    assert conv(x).shape == (3, 32, 9, 11)


@pytest.mark.parametrize("activation", [None, "relu", "silu"])
def test_graphed_callables(activation: str | None) -> None:
    conv, x = layer(activation=activation), picture().requires_grad_()
    eager = conv(x)
    dy = torch.randn_like(eager)
    expected = torch.autograd.grad(eager, (x, conv.weight, conv.bias), dy)
    graphed = torch.cuda.make_graphed_callables(layer(activation=activation), (picture().requires_grad_(),))
    y = graphed(x)
    close(y, eager)
    parameters = list(graphed.parameters())
    for actual, wanted in zip(torch.autograd.grad(y, (x, *parameters), dy), expected, strict=True):
        close(actual, wanted)


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="Triton needs a C compiler")
def test_compile_reduce_overhead() -> None:
    """The second layer's kernel packs its weights, which must not be kept in the memory of a CUDA graph."""
    model = nn.Sequential(layer(activation="silu"), jt.Conv2d(32, 8, 3).cuda())
    x = picture().requires_grad_()
    expected = model(x)
    expected_gradients = torch.autograd.grad(expected.square().sum(), tuple(model.parameters()))
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        y = compiled(x)
        gradients = torch.autograd.grad(y.square().sum(), tuple(model.parameters()))
        y, gradients = y.clone(), [g.clone() for g in gradients]
    torch.testing.assert_close(y, expected, rtol=1e-3, atol=1e-3)
    for actual, wanted in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-3, atol=1e-2)
    with torch.no_grad():
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            y = compiled(x).clone()
        torch.testing.assert_close(y, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    conv, plain, x = layer(), nn.Conv2d(16, 32, 3, padding=1).cuda(), picture()
    plain.load_state_dict(conv.state_dict())
    with torch.autocast("cuda", dtype):
        y, expected = conv(x), plain(x)
    assert y.dtype == expected.dtype == dtype
    torch.testing.assert_close(y, expected, rtol=1e-2, atol=1e-2)
    scaler = torch.amp.GradScaler()
    for module, result in ((conv, y), (plain, expected)):
        scaler.scale(result.float().square().mean()).backward()
        assert module.weight.grad is not None
    assert conv.weight.grad.dtype == torch.float32
    torch.testing.assert_close(conv.weight.grad, plain.weight.grad, rtol=5e-2, atol=scaler.get_scale() * 1e-3)


def test_deterministic() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        conv, x = layer(activation="relu"), picture().requires_grad_()
        runs = []
        for _ in range(3):
            y = conv(x)
            runs.append((y, *torch.autograd.grad(y.square().sum(), (x, conv.weight, conv.bias))))
        for run in runs[1:]:
            assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


def test_eight_threads() -> None:
    layers = [layer() for _ in range(8)]
    inputs = [torch.randn(2, 16, 10 + i % 4, 12, device="cuda", requires_grad=True) for i in range(8)]
    expected = [
        nn.functional.conv2d(x, conv.weight, conv.bias, padding=1).detach()
        for x, conv in zip(inputs, layers, strict=True)
    ]
    torch.cuda.synchronize()
    errors: list[BaseException] = []

    def work(conv: nn.Module, x: torch.Tensor, wanted: torch.Tensor) -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(20):
                    y = conv(x)
                    torch.autograd.grad(y.sum(), x)
                    close(y, wanted)
            stream.synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=arguments) for arguments in zip(layers, inputs, expected, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_two_processes_share_the_cache(tmp_path: Path) -> None:
    run_workers("cache", "cuda:0", tmp_path)


def test_ddp_over_gloo(tmp_path: Path) -> None:
    run_workers("ddp", "cuda:0", tmp_path)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")
@pytest.mark.parametrize("what", ["ddp", "fsdp"])
def test_two_gpus_over_nccl(what: str, tmp_path: Path) -> None:
    run_workers(what, "cuda", tmp_path)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")
def test_two_gpus() -> None:
    conv, x = layer(), picture()
    expected = conv(x)
    second = layer().to("cuda:1")
    y = second(x.to("cuda:1").requires_grad_())
    y.sum().backward()
    close(y.to("cuda:0"), expected)
