"""Host time of a call, next to PyTorch's: microseconds between two calls of a convolution that takes a GPU less.

    python bench/pytorch_overhead.py

Needs a GPU, PyTorch and the Python package. Each figure is the median of several rounds, in which the libraries take
turns. A round enqueues many calls and does not wait for the GPU, which is done with each before the next comes.
"""

import statistics
import time

import torch
from torch import nn

import jitconv.torch as jt

CALLS, ROUNDS = 300, 15


def microseconds(calls):
    rounds = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(50):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            rounds[name].append((time.perf_counter() - start) / CALLS * 1e6)
    torch.cuda.synchronize()
    return {name: statistics.median(times) for name, times in rounds.items()}


def rows():
    x = torch.randn(1, 32, 8, 8, device="cuda")
    layers = {"PyTorch": nn.Conv2d(32, 32, 3, padding=1).cuda(), "jitconv": jt.Conv2d(32, 32, 3, padding=1).cuda()}
    layers["jitconv"].load_state_dict(layers["PyTorch"].state_dict())
    functions = {"PyTorch": nn.functional.conv2d, "jitconv": jt.functional.conv2d}
    w, b = (p.detach() for p in layers["PyTorch"].parameters())
    trained = [p.detach().requires_grad_() for p in (x, w, b)]
    dy = torch.randn(1, 32, 8, 8, device="cuda")

    def step(call):
        torch.autograd.grad(call(*trained, padding=1), trained, dy)

    def cast(call):
        with torch.autocast("cuda", torch.bfloat16):
            return call(*trained, padding=1)

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
    row = (x.view(8, 32, 8), w[:, :, 0].contiguous(), b)
    sequences = {"PyTorch": nn.functional.conv1d, "jitconv": jt.functional.conv1d}
    yield "function of sequences, no_grad", {n: lambda f=f: f(*row, padding=1) for n, f in sequences.items()}, True
    yield "function, forward", {n: lambda f=f: f(*trained, padding=1) for n, f in functions.items()}, False
    yield "function, forward and backward", {n: lambda f=f: step(f) for n, f in functions.items()}, False
    yield "the same, backward in the same thread", {n: lambda f=f: step(f) for n, f in functions.items()}, False
    yield "function, forward, bf16 autocast", {n: lambda f=f: cast(f) for n, f in functions.items()}, False
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
        torch.autograd.set_multithreading_enabled("same thread" not in name)
        with torch.set_grad_enabled(not no_grad):
            if "graph" in name:
                times = {library: gpu_microseconds(call) for library, call in calls.items()}
            else:
                times = microseconds(calls)
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
