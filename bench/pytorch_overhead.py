"""Host time of a call, next to PyTorch's: microseconds between two calls of a convolution that takes a GPU less.

    python bench/pytorch_overhead.py
    python bench/pytorch_overhead.py --without-gpu build/release    # targets jitconv_fake_driver and jitconv_fake_nvrtc
    python bench/pytorch_overhead.py --without-gpu build/release --profile "layer, no_grad"

With a GPU each figure is the median of several rounds, in which the libraries take turns. A round enqueues many calls
and does not wait for the GPU, which is done with each before the next comes.

Without one, CPU tensors take the path of CUDA's: jitconv compiles for sm_90a and launches on the tests' fake driver,
which returns at once. Figures are CPU time of the calling thread, the best of the rounds. PyTorch's are those of its
smallest convolution, of one number by one number, which is little but the way there. What a GPU adds, such as launches,
its allocator and autograd's thread of the device, is missing in both.
"""

import argparse
import cProfile
import ctypes
import os
import pathlib
import pstats
import statistics
import sys
import time

import torch
from torch import nn

CALLS, ROUNDS = 300, 15


def use_fakes(build):
    """Load the tests' driver and compiler in place of NVIDIA's, before jitconv asks for them."""
    folder = pathlib.Path(build, "tests/unit/runtime").resolve()
    driver = ctypes.CDLL(str(folder / "jitconv_fake_driver/libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    driver._ZN11fake_driver6recordEb(False)
    os.environ["JITCONV_NVRTC_PATH"] = str(folder / "jitconv_fake_nvrtc/libnvrtc.so.13")
    os.environ["JITCONV_CACHE"] = "off"
    libc = ctypes.CDLL(None)  # keeps memory as PyTorch's allocator of a GPU does, in place of giving it back
    for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
        libc.mallopt(parameter, 2**30)
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False

    import jitconv
    import jitconv.torch

    jitconv.torch.set_cpu_policy("host")
    jitconv.torch._plan.compile = lambda spec, arch=None: jitconv.compile(spec, "sm_90a")


class Clock:
    """How a call is timed: on the wall's clock with a GPU, by the thread's CPU time without."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.now = time.perf_counter if gpu else time.thread_time
        self.figure = statistics.median if gpu else min
        self.wait = torch.cuda.synchronize if gpu else lambda: None

    def microseconds(self, calls, count=CALLS, rounds=ROUNDS):
        """Time callables by name, which take turns."""
        times = {name: [] for name in calls}
        for call in calls.values():
            for _ in range(min(50, count)):
                call()
        for _ in range(rounds):
            for name, call in calls.items():
                self.wait()
                start = self.now()
                for _ in range(count):
                    call()
                times[name].append((self.now() - start) / count * 1e6)
        self.wait()
        return {name: self.figure(found) for name, found in times.items()}


def rows(device):
    import jitconv.torch as jt

    # PyTorch's own work on a CPU must not count.
    extents = {"PyTorch": (32, 8, 3) if device == "cuda" else (1, 1, 1), "jitconv": (32, 8, 3)}
    pad = {name: size // 2 for name, (_, _, size) in extents.items()}
    layers = {
        name: kind(c, c, size, padding=pad[name]).to(device)
        for (name, (c, _, size)), kind in zip(extents.items(), (nn.Conv2d, jt.Conv2d), strict=True)
    }
    functions = {"PyTorch": nn.functional.conv2d, "jitconv": jt.functional.conv2d}
    sequences = {"PyTorch": nn.functional.conv1d, "jitconv": jt.functional.conv1d}
    names = tuple(functions)
    x = {n: torch.randn(1, c, h, h, device=device) for n, (c, h, _) in extents.items()}
    dy = {n: torch.randn_like(t) for n, t in x.items()}
    parameters = {n: tuple(p.detach() for p in layer.parameters()) for n, layer in layers.items()}
    trained = {n: [p.detach().clone().requires_grad_() for p in (x[n], *parameters[n])] for n in names}
    row = {n: (x[n][0].unsqueeze(0).flatten(2), parameters[n][0][:, :, 0].contiguous(), parameters[n][1]) for n in names}

    def called(n):
        return functions[n](*trained[n], padding=pad[n])

    def step(n):
        torch.autograd.grad(called(n), trained[n], dy[n])

    def layer_step(n):
        torch.autograd.grad(layers[n](trained[n][0]), tuple(layers[n].parameters()), dy[n])

    def cast(n):
        with torch.autocast(device, torch.bfloat16):
            return called(n)

    def cast_step(n):
        torch.autograd.grad(cast(n), trained[n], dy[n].bfloat16())

    def graphed(n):
        with torch.no_grad():
            called(n)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(20):
                    called(n)
        return graph.replay

    def both(call):
        return {n: lambda n=n: call(n) for n in names}

    yield "function, no_grad", both(lambda n: functions[n](x[n], *parameters[n], padding=pad[n])), True
    yield "layer, no_grad", both(lambda n: layers[n](x[n])), True
    yield "function of sequences, no_grad", both(lambda n: sequences[n](*row[n], padding=pad[n])), True
    yield "function, forward", both(called), False
    yield "function, forward and backward", both(step), False
    if device == "cuda":
        yield "the same, backward in the same thread", both(step), False
    yield "layer, forward and backward of dw, db", both(layer_step), False
    yield "function, forward, bf16 autocast", both(cast), False
    yield "the same, forward and backward", both(cast_step), False
    arguments = {
        "PyTorch": ([1, 1], [pad["PyTorch"]] * 2, [1, 1], False, [0, 0], 1),
        "jitconv": ([1, 1], [pad["jitconv"]] * 4, [1, 1], False, [0, 0], 1),
    }
    operators = {"PyTorch": torch.ops.aten.convolution, "jitconv": torch.ops.jitconv.convolution}
    yield "operator, no_grad", both(lambda n: operators[n](x[n], *parameters[n], *arguments[n])), True
    if device == "cuda":
        yield "20 calls in a CUDA graph, on the GPU", {n: graphed(n) for n in names}, True


class Empty(nn.Module):
    """What is left of a layer that does nothing but make its result."""

    def __init__(self, layer, shape):
        super().__init__()
        self.shape = shape
        self.parameter = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x.new_empty(self.shape)


def unet(clock):
    """Print the time per convolution in the networks' U-Net, between all its other layers: caches are not warm."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "networks"))
    import jitconv.torch as jt
    from dense import UNet

    UNet.WIDTHS = (32, 64, 128)  # the other layers' work on a CPU must not hide the convolutions'
    x = torch.randn(1, 4, 8, 8)
    net = jt.convert(UNet().eval())
    empty, shapes = jt.convert(net, inplace=False), {}
    hooks = [
        layer.register_forward_hook(lambda layer, arguments, y, name=name: shapes.__setitem__(name, y.shape))
        for name, layer in net.named_modules()
        if isinstance(layer, nn.Conv2d)
    ]
    with torch.no_grad():
        net(x)
        for hook in hooks:
            hook.remove()
        for name, shape in shapes.items():
            parent, _, child = name.rpartition(".")
            setattr(empty.get_submodule(parent), child, Empty(None, shape))
        times = clock.microseconds({"jitconv": lambda: net(x), "empty": lambda: empty(x)}, count=5, rounds=60)
    each = (times["jitconv"] - times["empty"]) / len(shapes)
    print(f"U-Net of {len(shapes)} convolutions, no_grad: {each:.2f} above an empty layer for each")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-gpu", metavar="BUILD", help="with the fakes of this build folder")
    parser.add_argument("--profile", metavar="ROW", help="print where Python's time of jitconv's goes in this row")
    arguments = parser.parse_args()
    gpu = arguments.without_gpu is None
    if not gpu:
        use_fakes(arguments.without_gpu)
    device, clock = ("cuda" if gpu else "cpu"), Clock(gpu)
    if not arguments.profile:
        name = torch.cuda.get_device_name() if gpu else "without a GPU"
        print(f"{name}, PyTorch {torch.__version__}, us per call")
        print(f"{'':40}{'PyTorch':>10}{'jitconv':>10}{'difference':>12}")
    for name, calls, no_grad in rows(device):
        if arguments.profile not in (None, name):
            continue
        torch.autograd.set_multithreading_enabled("same thread" not in name)
        with torch.set_grad_enabled(not no_grad):
            if arguments.profile:
                profile(calls["jitconv"])
                continue
            timed = gpu_microseconds if "graph" in name else clock.microseconds
            times = timed(calls)
        print(f"{name:40}{times['PyTorch']:10.2f}{times['jitconv']:10.2f}{times['jitconv'] - times['PyTorch']:+12.2f}")
    if not gpu and not arguments.profile:
        unet(clock)


def profile(call):
    """Print which Python functions the time of a call goes to."""
    for _ in range(50):
        call()
    with cProfile.Profile() as found:
        for _ in range(5000):
            call()
    pstats.Stats(found).sort_stats("tottime").print_stats(25)


def gpu_microseconds(calls):
    """Time callables on the GPU's clock."""
    result = {}
    for name, call in calls.items():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        rounds = []
        for _ in range(ROUNDS):
            start.record()
            for _ in range(50):
                call()
            end.record()
            end.synchronize()
            rounds.append(start.elapsed_time(end) / 50 * 1e3)
        result[name] = statistics.median(rounds)
    return result


if __name__ == "__main__":
    main()
