"""The calls of the extension module: what they decline, what they keep, and tensors that DLPack does not describe."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import jitconv
import jitconv.torch as jt
from jitconv import _native
from jitconv.torch import _convolution, _eager

pytestmark = pytest.mark.usefixtures("host")

Tensors = tuple[torch.Tensor, ...]


def operands() -> Tensors:
    torch.manual_seed(0)
    return torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 3), torch.randn(4)


@pytest.fixture
def by_attributes() -> Iterator[None]:
    _eager.bind(None)
    yield
    _eager.bind(getattr(torch.Tensor, "__dlpack_c_exchange_api__", None))


def step(convolve: Callable[..., torch.Tensor], x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Tensors:
    leaves = [t.detach().requires_grad_() for t in (x, w, b)]
    y = convolve(*leaves)
    dy = torch.linspace(-1, 1, y.numel()).view(y.shape)
    return (y.detach(), *torch.autograd.grad(y, leaves, dy))


@pytest.mark.usefixtures("by_attributes")
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_without_dlpack(memory: torch.memory_format) -> None:
    x, w, b = (t.to(memory_format=memory) if t.dim() == 4 else t for t in operands())
    expected = step(functional.conv2d, x, w, b)
    for _ in range(2):  # compiled, and known
        for mine, theirs in zip(step(jt.functional.conv2d, x, w, b), expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(jt.functional.conv2d(x, w, b), expected[0], rtol=1e-4, atol=1e-4)
        zeros = jt.functional.conv2d(torch._efficientzerotensor(x.shape), w, b)
        torch.testing.assert_close(zeros, functional.conv2d(0 * x, w, b), rtol=1e-4, atol=1e-4)
        meta = [t.to("meta") for t in (x, w, b)]
        assert jt.functional.conv2d(*meta).device.type == "meta"
        with pytest.raises(jitconv.UnsupportedError, match="float64"):
            jt.functional.conv2d(x.double(), w.double(), b.double())


@pytest.mark.parametrize("grad_enabled", [False, True])
def test_autocast_without_gradients_keeps_cast_weights(grad_enabled: bool) -> None:
    x, w, b = operands()
    layer = jt.Conv2d(3, 4, 3).requires_grad_(False)

    def check() -> None:
        with torch.set_grad_enabled(grad_enabled), torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        expected = functional.conv2d(*(t.bfloat16().float() for t in (x, layer.weight, layer.bias)))
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y.float(), expected, rtol=1e-2, atol=1e-2)

    check()
    layer.weight.copy_(w)
    layer.bias.copy_(b)
    check()
    layer.weight.data = -layer.weight.data
    check()
    with pytest.raises(TypeError, match="one type"):  # outside of autocast it stays an error
        torch.ops.jitconv.convolution(x.bfloat16(), w, b, [1, 1], [0, 0, 0, 0], [1, 1], False, [0, 0], 1)


def test_weights_that_are_views_or_gone() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 5)
    for _ in range(3):
        bank = torch.randn(2, 3, 3, 3, 4).permute(0, 4, 1, 2, 3)  # kept in a dense form
        for _ in range(2):
            for w in bank:
                with torch.no_grad():
                    y = jt.functional.conv2d(x, w)
                torch.testing.assert_close(y, functional.conv2d(x, w), rtol=1e-4, atol=1e-4)
            bank.mul_(-1)
        del bank, w
        gc.collect()


def test_what_stands_between_a_layer_and_its_call() -> None:
    x = torch.randn(2, 3, 6, 5)

    class Standardised(jt.Conv2d):
        def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            return super()._conv_forward(input, weight - weight.mean((1, 2, 3), keepdim=True), bias)

    layer = Standardised(3, 4, 3)
    for _ in range(2):
        centred = layer.weight - layer.weight.mean((1, 2, 3), keepdim=True)
        torch.testing.assert_close(layer(x), functional.conv2d(x, centred, layer.bias), rtol=1e-4, atol=1e-4)

    layer = jt.Conv2d(3, 4, 3)
    layer(x)
    layer._conv_forward = lambda input, weight, bias: functional.conv2d(input, 2 * weight, bias)
    torch.testing.assert_close(layer(x), functional.conv2d(x, 2 * layer.weight, layer.bias))

    layer = nn.utils.parametrizations.weight_norm(jt.Conv2d(3, 4, 3))
    for _ in range(2):
        torch.testing.assert_close(layer(x), functional.conv2d(x, layer.weight, layer.bias), rtol=1e-4, atol=1e-4)

    layer = jt.Conv2d(3, 4, 3)
    layer(x)
    layer.padding_mode = "circular"
    layer.padding = (1, 1)
    layer._reversed_padding_repeated_twice = [1, 1, 1, 1]
    assert layer(x).shape == (2, 4, 6, 5)


def test_the_policy_for_cpu_tensors_holds_for_known_shapes() -> None:
    x, w, b = operands()
    jt.functional.conv2d(x, w, b)
    with jt.cpu_policy("torch"), torch.no_grad():
        assert torch.equal(jt.functional.conv2d(x, w, b), functional.conv2d(x, w, b))


def test_a_rank_that_is_another_functions() -> None:
    """A known sequence is not an image."""
    x, w = torch.randn(1, 3, 9), torch.randn(4, 3, 3)
    with torch.no_grad():
        jt.functional.conv1d(x, w)
        with pytest.raises(ValueError, match="weight has 3 dimensions, must have 4"):
            jt.functional.conv2d(x, w)


@pytest.mark.parametrize("rank", [0, 2, 4, 5])
def test_biases_of_another_rank(rank: int) -> None:
    x, w, _ = operands()
    for grad_enabled in (False, True):
        with torch.set_grad_enabled(grad_enabled), pytest.raises(ValueError, match="bias has shape"):
            jt.functional.conv2d(x, w.requires_grad_(), torch.zeros((1,) * rank))


def test_layers_train_by_both_halves_of_the_function() -> None:
    """Shapes that are new and known, without and with an activation in the kernel; a frozen weight."""
    torch.manual_seed(0)
    for activation, reference in ((None, nn.Identity()), ("relu", nn.ReLU())):
        mine, theirs = jt.Conv2d(3, 4, 3, activation=activation), nn.Conv2d(3, 4, 3)
        theirs.load_state_dict(mine.state_dict())
        x = torch.randn(2, 3, 6, 5)
        for frozen in (False, False, True):
            results = []
            for layer in (mine, theirs):
                layer.weight.requires_grad_(not frozen)
                leaf = x.clone().requires_grad_()
                y = layer(leaf) if layer is mine else reference(layer(leaf))
                wanted = [leaf, *(p for p in layer.parameters() if p.requires_grad)]
                results.append((y, *torch.autograd.grad(y.square().sum(), wanted)))
            for a, b in zip(*results, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def strided_weight() -> torch.Tensor:
    """Return weights that no kernel reads as they are, so that inference keeps a dense copy."""
    return torch.randn(3, 3, 3, 4).permute(3, 0, 1, 2)


def check_inference(layer: jt.Conv2d, x: torch.Tensor) -> None:
    torch.testing.assert_close(layer(x), functional.conv2d(x, layer.weight, layer.bias), rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_weights_written_in_inference_mode() -> None:
    layer, x = jt.Conv2d(3, 4, 3), torch.randn(2, 3, 6, 5)
    with torch.inference_mode(False):
        layer.weight = nn.Parameter(strided_weight())
    for _ in range(3):
        check_inference(layer, x)
        layer.weight.mul_(-1)


@torch.no_grad()
def test_weights_whose_memory_others_get() -> None:
    """The memory that was given back first is the next to be had, and no version counts."""
    layer, x = jt.Conv2d(3, 4, 3), torch.randn(2, 3, 6, 5)
    for _ in range(20):
        check_inference(layer, x)
        layer.weight.data = strided_weight()
        layer.weight.data = strided_weight()


def write_uncounted(layer: jt.Conv2d) -> None:
    """Write weights as collectives, replays of CUDA graphs and foreign kernels do."""
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(layer.weight):
        layer.weight.mul_(-1)


def inference_layer() -> tuple[jt.Conv2d, torch.Tensor]:
    """Return a layer that keeps a copy of its weights, and its input."""
    layer, x = jt.Conv2d(3, 4, 3), torch.randn(2, 3, 6, 5)
    layer.weight = nn.Parameter(strided_weight())
    with torch.no_grad():
        check_inference(layer, x)
    return layer, x


@torch.no_grad()
def test_weights_that_collectives_write() -> None:
    layer, x = inference_layer()
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        for _ in range(2):
            write_uncounted(layer)
            check_inference(layer, x)
        write_uncounted(layer)
        layer(x)
    finally:
        torch.distributed.destroy_process_group()
    check_inference(layer, x)


@torch.no_grad()
def test_weights_that_training_wrote_uncounted() -> None:
    layer, x = inference_layer()
    layer.eval()
    before = layer(x)
    layer.train()
    write_uncounted(layer)
    layer.eval()
    check_inference(layer, x)
    write_uncounted(layer)
    layer.eval()  # the same mode, as a server may set it at each request
    assert not torch.allclose(layer(x), before)


@torch.no_grad()
def test_weights_that_are_forgotten_by_hand() -> None:
    layer, x = inference_layer()
    write_uncounted(layer)
    jt.forget_packed_weights()
    check_inference(layer, x)


def test_threads_beside_one_that_forgets() -> None:
    """An extent may be forgotten at any time, also between the look-up and the launch."""
    tensors = operands()
    expected = step(functional.conv2d, *tensors)
    convolution = _convolution.convolution(_convolution.Settings())
    end, failures = time.monotonic() + 0.5, []

    def work() -> None:
        try:
            while time.monotonic() < end:
                for mine, theirs in zip(step(jt.functional.conv2d, *tensors), expected, strict=True):
                    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            convolution.forget()
            time.sleep(0.002)
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


def test_errors_keep_no_references() -> None:
    x, w, b = operands()
    jt.functional.conv2d(x, w, b)
    wrong = (torch.randn(4, 2, 3, 3), b), (w, b[:2]), (w, "bias"), (None, b), (w.to("meta"), b)
    counts = []
    for repetitions in (1, 8):
        for _ in range(repetitions):
            for others in wrong:
                for leaf in (x, x.detach().requires_grad_()):
                    with pytest.raises((TypeError, ValueError, RuntimeError, AttributeError)):
                        jt.functional.conv2d(leaf, *others)
        gc.collect()
        counts.append([sys.getrefcount(t) for t in (x, w, b)])
    assert counts[0] == counts[1]


def test_arguments_of_another_type() -> None:
    """The extension module's own functions raise, too."""
    x, w, b = operands()
    c = _convolution.convolution(_convolution.Settings())
    wrong: tuple[Callable[[], Any], ...] = (
        lambda: c.calls.call(x, w, b, "2"),
        lambda: c.calls.run(x, w, b),
        lambda: c.calls.share(c.gradient_calls, x, w, b, True, True, False),
        lambda: c.calls.leave(print, x, w, b, True, True),
        lambda: c.gradient_calls.choose(c.calls, x, x, w, None, (True,) * 3, True, (True,) * 3, None),
        lambda: c.calls.add(x, w, b, True, False, "kernel", (), (), None, None, None),
        lambda: _native.function_forward(None, x, w, b, None),
    )
    for call in wrong:
        with pytest.raises((TypeError, AttributeError)):
            call()
    assert c.calls.run(1, w, b, True, True, False) is None


def test_a_convolution_that_is_gone() -> None:
    x, w, b = operands()
    call = _convolution.Convolution(_convolution.Settings()).call
    gc.collect()
    assert call(x.requires_grad_(), w, b, 2) is None


def test_operators_while_a_graph_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters run operators on real tensors."""
    monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)
    arguments = ([1, 1], [0, 0, 0, 0], [1, 1], False, [0, 0], 1, "none", 0.01, 0.0, 6.0, "fp32")
    y = torch.ops.jitconv.convolution(*operands(), *arguments)
    assert y.shape == (2, 4, 4, 3)


def test_deterministic_mode() -> None:
    """PyTorch fills new memory with NaN then, also that of results and of scratch."""
    x, w, b = operands()
    expected = step(jt.functional.conv2d, x, w, b)
    torch.use_deterministic_algorithms(True)
    try:
        assert all(torch.equal(a, e) for a, e in zip(step(jt.functional.conv2d, x, w, b), expected, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)
