"""Errors of fp32 weight gradients of 1x1 filters against fp64, for the last table of docs/accuracy.md.

As in bench/accuracy.py, over the sum of the products' magnitudes and in units of 2^-24, the largest of all 32,768 weights.
An image's pixels are the products. Ends with 1 if `fp32` is above the loop of FMAs anywhere.

    python3 bench/accuracy_gradients.py --library build/gpu-bundle/runtime/libjitconv.so
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

try:
    import torch
except ImportError:  # --help needs none
    torch = None
from accuracy import operands, run, statistics
from jitconv_library import Library

LOOP = r"""
extern "C" __global__ void loop(const float* x, const float* dy, float* dw, int n, int c, int k, int pixels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < k * c; i += gridDim.x * blockDim.x) {
    const int channel = i % c, filter = i / c;
    float sum = 0.0f;
    for (int image = 0; image < n; ++image)
      for (int p = 0; p < pixels; ++p)
        sum = fmaf(x[(long long)(image * c + channel) * pixels + p],
                   dy[(long long)(image * k + filter) * pixels + p], sum);
    dw[i] = sum;
  }
}
"""

CHANNELS, FILTERS = 128, 256
KINDS = ("zero-mean", "positive", "lognormal", "lognormal, positive", "cancelling")
SIZES = ((1, 12), (2, 24), (2, 72), (8, 112), (16, 256))  # images, and their sides


def row(library: Library, loop: Any, kind: str, n: int, side: int) -> bool:
    """Print a row, and return whether `fp32` is within the loop's error."""
    # "cancelling": each image of the second half takes away what one of the first half added.
    x, dy = operands(kind, (n, CHANNELS, side, side), (n, FILTERS, side, side), 1, summed=0)
    flat_x, flat_dy = x.flatten(2).double(), dy.flatten(2).double()
    exact = torch.einsum("nkp,ncp->kc", flat_dy, flat_x)
    magnitude = torch.einsum("nkp,ncp->kc", flat_dy.abs(), flat_x.abs())
    of_loop = torch.empty(FILTERS, CHANNELS, device="cuda")
    loop((128, 1, 1), (256, 1, 1), (x, dy, of_loop, n, CHANNELS, FILTERS, side * side))
    w = torch.empty(FILTERS, CHANNELS, 1, 1, device="cuda")
    of_cudnn = torch.ops.aten.convolution_backward(dy, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                                   [False, True, False])[1].flatten(1)
    results, family = {"loop": of_loop, "cudnn": of_cudnn}, ""
    for math in ("ieee", "fp32", "tf32"):
        dw = torch.full((FILTERS, CHANNELS, 1, 1), float("nan"), device="cuda")
        served_by = run(library, f"input={n},{CHANNELS},{side},{side} weight={FILTERS},{CHANNELS},1,1 "
                        f"operation=weight_gradient math={math}", x=x, dy=dy, dw=dw)
        results[math] = dw.flatten(1)
        family = served_by if math == "fp32" else family
    most = {name: statistics(value, exact, magnitude)["max"] for name, value in results.items()}
    columns = " | ".join(f"{value:.3g}" for value in most.values())
    print(f"| {kind} | {n * side * side} | {columns} | {family} | {most['fp32'] / most['loop']:.2f} |")
    return most["fp32"] <= most["loop"]


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", required=True, help="libjitconv.so")
    arguments = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        print("accuracy_gradients.py: no GPU that this PyTorch can use", file=sys.stderr)
        return 1
    torch.backends.cudnn.allow_tf32 = False
    library = Library(arguments.library)
    loop = torch.cuda._compile_kernel(LOOP, "loop")
    print("| data | products | fma loop | cudnn fp32 | jitconv ieee | jitconv fp32 | jitconv tf32 | fp32 by | of FMA loop |")
    print("|---|---|---|---|---|---|---|---|---|")
    within = [row(library, loop, kind, n, side) for kind in KINDS for n, side in SIZES
              if n > 1 or kind != "cancelling"]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
