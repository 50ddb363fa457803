"""Host time of a call, next to PyTorch's: microseconds between two calls of a convolution that takes a GPU less.

    python bench/pytorch_overhead.py

Needs a GPU, PyTorch and the Python package. Each figure is the median of several rounds. A round enqueues many calls
and does not wait for the GPU, which is done with each before the next comes.
"""

import statistics
import time

import torch
from torch import nn

import jitconv.torch as jt

CALLS, ROUNDS = 500, 9


def microseconds(call):
    for _ in range(50):
        call()
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS * 1e6)
        torch.cuda.synchronize()
    return statistics.median(rounds)


def rows():
    x = torch.randn(1, 32, 8, 8, device="cuda")
    layers = {"PyTorch": nn.Conv2d(32, 32, 3, padding=1).cuda(), "jitconv": jt.Conv2d(32, 32, 3, padding=1).cuda()}
    layers["jitconv"].load_state_dict(layers["PyTorch"].state_dict())
    functions = {"PyTorch": nn.functional.conv2d, "jitconv": jt.functional.conv2d}
    w, b = (p.detach() for p in layers["PyTorch"].parameters())
    trained = [p.detach().requires_grad_() for p in (x, w, b)]
    dy = torch.randn(1, 32, 8, 8, device="cuda")

    def step(call):
        y = call()
        torch.autograd.grad(y, trained, dy)

    def graphed(call):
        with torch.no_grad():
            call()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(20):
                    call()
        return graph

    yield "function, no_grad", {n: lambda f=f: f(x, w, b, padding=1) for n, f in functions.items()}, True
    yield "layer, no_grad", {n: lambda m=m: m(x) for n, m in layers.items()}, True
    for enabled, words in ((False, ""), (True, ", bf16 autocast")):
        def forward(f, on=enabled):
            with torch.autocast("cuda", torch.bfloat16, enabled=on):
                return f(*trained, padding=1)
        yield f"function, forward{words}", {n: lambda f=f, g=forward: g(f) for n, f in functions.items()}, False
        if not enabled:
            yield "function, forward and backward", {
                n: lambda f=f, g=forward: step(lambda: g(f)) for n, f in functions.items()
            }, False
    arguments = ([1, 1], [1, 1, 1, 1], [1, 1], False, [0, 0], 1)
    yield "operator, no_grad", {
        "PyTorch": lambda: torch.ops.aten.convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        "jitconv": lambda: torch.ops.jitconv.convolution(x, w, b, *arguments),
    }, True
    yield "20 calls in a CUDA graph, on the GPU", {
        n: graphed(lambda f=f: f(x, w, b, padding=1)).replay for n, f in functions.items()
    }, True


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, us per call")
    print(f"{'':40}{'PyTorch':>10}{'jitconv':>10}{'difference':>12}")
    for name, calls, no_grad in rows():
        with torch.set_grad_enabled(not no_grad):
            times = {}
            for library, call in calls.items():
                times[library] = gpu_microseconds(call) if "graph" in name else microseconds(call)
        print(f"{name:40}{times['PyTorch']:10.2f}{times['jitconv']:10.2f}{times['jitconv'] - times['PyTorch']:+12.2f}")


def gpu_microseconds(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    rounds = []
    for _ in range(ROUNDS):
        start.record()
        for _ in range(50):
            call()
        end.record()
        end.synchronize()
        rounds.append(start.elapsed_time(end) / 50 * 1e3)
    return statistics.median(rounds)


if __name__ == "__main__":
    main()
