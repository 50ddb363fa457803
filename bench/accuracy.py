"""Errors of fp32 convolutions against fp64, for docs/accuracy.md.

For several numbers of products and kinds of data, the error of every output is divided by the sum of its products'
magnitudes, and given in units of 2^-24. Beside jitconv's modes stand a loop of FMAs in the order c, r, s, and cuDNN
through PyTorch.

    python3 bench/accuracy.py --library build/gpu-bundle/runtime/libjitconv.so --json accuracy.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

try:
    import torch
except ImportError:  # --help needs none
    torch = None
from jitconv_library import Kernel, Library

UNIT = 2.0**-24

LOOP = r"""
extern "C" __global__ void loop(const float* x, const float* w, float* y, int n, int c, int h, int width, int k, int r,
                                int s) {
  const int p = h - r + 1, q = width - s + 1;
  const long long outputs = (long long)n * k * p * q;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < outputs;
       i += gridDim.x * (long long)blockDim.x) {
    const int column = i % q, row = i / q % p, channel = i / q / p % k, image = i / q / p / k;
    float sum = 0.0f;
    for (int a = 0; a < c; ++a)
      for (int b = 0; b < r; ++b)
        for (int d = 0; d < s; ++d)
          sum = fmaf(x[((long long)(image * c + a) * h + row + b) * width + column + d],
                     w[((channel * c + a) * r + b) * s + d], sum);
    y[i] = sum;
  }
}
"""


@dataclasses.dataclass(frozen=True)
class Shape:
    """One convolution without padding; `pixels` is the side of its output."""

    channels: int
    rows: int
    columns: int
    pixels: int
    images: int
    outputs: int = 128

    @property
    def products(self) -> int:
        """Products of an output."""
        return self.channels * self.rows * self.columns

    @property
    def spec(self) -> str:
        """What Library.parse() reads."""
        height, width = self.pixels + self.rows - 1, self.pixels + self.columns - 1
        return (f"input={self.images},{self.channels},{height},{width} "
                f"weight={self.outputs},{self.channels},{self.rows},{self.columns}")


# Ten million outputs each, 128 channels of 280 x 280.
SHAPES = (
    Shape(1, 3, 3, 280, 1), Shape(3, 3, 3, 280, 1), Shape(64, 1, 1, 280, 1), Shape(128, 1, 1, 280, 1),
    Shape(16, 3, 3, 280, 1), Shape(64, 3, 3, 280, 1), Shape(32, 5, 9, 280, 1), Shape(64, 5, 7, 280, 1),
    Shape(512, 3, 3, 280, 1), Shape(2048, 3, 3, 64, 20),
)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Numbers of mean zero."""
    return torch.randn(shape, device="cuda", generator=generator)


def uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Numbers from 0 to 1."""
    return torch.rand(shape, device="cuda", generator=generator)


def lognormal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Numbers above zero, over 40 orders of magnitude among ten million."""
    return torch.exp(8.85 * normal(shape, generator))


def signed(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same numbers, half of them negative."""
    return torch.where(uniform(values.shape, generator) < 0.5, -values, values)


def image(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Smooth pixels with a little noise, normalised as networks are fed with them."""
    n, c, h, w = shape
    coarse = uniform((n, c, max(h // 8, 2), max(w // 8, 2)), generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(h, w), mode="bicubic", align_corners=False)
    noise = 0.02 * normal(shape, generator)
    return ((smooth + noise).clamp(0, 1) * 255).round() / 255 / 0.225 - 0.449 / 0.225


def laplace(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Weights as training leaves them: most of them small, channels of different sizes."""
    sizes = 0.02 + 0.08 * uniform((shape[0], 1, 1, 1), generator)
    return sizes * signed(-torch.log(uniform(shape, generator).clamp_min(1e-7)), generator)


def operands(kind: str, x_shape: tuple[int, ...], w_shape: tuple[int, ...], seed: int,
             summed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """x and w, float32, of one kind of data. `summed` is an axis of both that products are summed over: channels."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    if kind == "zero-mean":
        return normal(x_shape, generator), normal(w_shape, generator)
    if kind == "positive":
        return uniform(x_shape, generator), uniform(w_shape, generator)
    if kind == "lognormal":
        return signed(lognormal(x_shape, generator), generator), normal(w_shape, generator)
    if kind == "lognormal, positive":
        return lognormal(x_shape, generator), uniform(w_shape, generator)
    if kind == "cancelling":
        # The second half of the axis takes away what the first has summed up, but for a thousandth.
        x, w = uniform(x_shape, generator) + 0.5, uniform(w_shape, generator) + 0.5
        half = x_shape[summed] // 2
        of_x, of_w = x.narrow(summed, 0, half), w.narrow(summed, 0, half)
        x.narrow(summed, half, half).copy_(of_x)
        w.narrow(summed, half, half).copy_(-of_w * (1 + uniform(of_w.shape, generator) * 2**-10))
        return x, w
    if kind == "images":
        return image(x_shape, generator), laplace(w_shape, generator)
    raise ValueError(kind)


KINDS = ("zero-mean", "positive", "lognormal", "lognormal, positive", "cancelling", "images")

# What is not to be above the loop of FMAs, and for which kinds. Lognormal numbers span more than "fp16x3" promises to
# tell apart: it adds an error that is relative to the largest magnitudes of a tensor.
WITHIN_LOOP = {"fp32": KINDS, "fp16x3": ("zero-mean", "positive", "cancelling", "images")}


def reference(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The sums and the sums of magnitudes, float64."""
    x64, w64 = x.double(), w.double()
    return torch.nn.functional.conv2d(x64, w64), torch.nn.functional.conv2d(x64.abs(), w64.abs())


def statistics(y: torch.Tensor, exact: torch.Tensor, magnitude: torch.Tensor) -> dict[str, float]:
    """Largest and median elementwise error, and the error of the whole in the 2-norm; units of 2^-24."""
    error = (y.double() - exact).abs()
    elementwise = (error / magnitude).flatten()
    norm = torch.linalg.vector_norm(error) / torch.linalg.vector_norm(exact)
    return {"max": float(elementwise.max()) / UNIT, "median": float(elementwise.median()) / UNIT,
            "norm": float(norm) / UNIT}


def run(library: Library, spec: str, **tensors: torch.Tensor) -> str:
    """Compiles and launches what a spec says, waits for it, and returns its family."""
    kernel = Kernel(library, library.parse(spec), **tensors)
    kernel.launch()
    torch.cuda.synchronize()
    family = kernel.family()
    kernel.close()
    return family


class Engines:
    """Everything that computes a convolution here, by name."""

    def __init__(self, library: Library):
        self.library = library
        self.loop = torch.cuda._compile_kernel(LOOP, "loop")

    def fma_loop(self, shape: Shape, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """A thread's loop over c, r, s."""
        y = torch.empty((shape.images, shape.outputs, shape.pixels, shape.pixels), device="cuda")
        self.loop((132 * 16, 1, 1), (256, 1, 1),
                  (x, w, y, shape.images, shape.channels, x.shape[2], x.shape[3], shape.outputs, shape.rows,
                   shape.columns))
        return y

    def cudnn(self, x: torch.Tensor, w: torch.Tensor, tf32: bool) -> torch.Tensor:
        """PyTorch's convolution."""
        torch.backends.cudnn.allow_tf32 = tf32
        return torch.nn.functional.conv2d(x, w)

    def jitconv(self, shape: Shape, x: torch.Tensor, w: torch.Tensor, math: str) -> tuple[torch.Tensor, str]:
        """A kernel of this mode, and its family."""
        y = torch.empty((shape.images, shape.outputs, shape.pixels, shape.pixels), device="cuda")
        return y, run(self.library, f"{shape.spec} math={math}", x=x, w=w, y=y)


def measure(engines: Engines, shape: Shape, kind: str, seed: int) -> dict[str, Any]:
    """One row of the table."""
    height, width = shape.pixels + shape.rows - 1, shape.pixels + shape.columns - 1
    x, w = operands(kind, (shape.images, shape.channels, height, width),
                    (shape.outputs, shape.channels, shape.rows, shape.columns), seed)
    exact, magnitude = reference(x, w)
    row: dict[str, Any] = {"kind": kind, "products": shape.products, "outputs": exact.numel(), "spec": shape.spec}
    row["fma_loop"] = statistics(engines.fma_loop(shape, x, w), exact, magnitude)
    for name, tf32 in (("cudnn_fp32", False), ("cudnn_tf32", True)):
        row[name] = statistics(engines.cudnn(x, w, tf32), exact, magnitude)
    for math in ("ieee", "fp32", "fp16x3", "tf32"):
        y, family = engines.jitconv(shape, x, w, math)
        row[f"jitconv_{math}"] = statistics(y, exact, magnitude) | {"family": family}
    return row


COLUMNS = ("fma_loop", "cudnn_fp32", "cudnn_tf32", "jitconv_ieee", "jitconv_fp32", "jitconv_fp16x3",
           "jitconv_tf32")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The tables of docs/accuracy.md, one for each kind of data: largest error / median."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        lines += [f"\n*{kind}*\n", "| products | " + " | ".join(name.replace("_", " ") for name in COLUMNS) +
                  " | fp32 by | of FMA loop |", "|" + " --- |" * (len(COLUMNS) + 3)]
        for row in rows:
            if row["kind"] != kind:
                continue
            cells = [f"{row[name]['max']:.3g} / {row[name]['median']:.2g}" for name in COLUMNS]
            ratio = row["jitconv_fp32"]["max"] / row["fma_loop"]["max"]
            lines.append(f"| {row['products']} | " + " | ".join(cells) +
                         f" | {row['jitconv_fp32']['family']} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> int:
    """Prints the tables; exit code 1 if a largest error is above the loop's where WITHIN_LOOP forbids it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libjitconv.so")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--products", type=int, nargs="*", help="only shapes with so many products")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if torch is None:
        print("accuracy.py: needs PyTorch, which this Python does not have", file=sys.stderr)
        return 1
    engines = Engines(Library(arguments.library))
    rows = []
    for shape in SHAPES:
        if arguments.products and shape.products not in arguments.products:
            continue
        rows += [measure(engines, shape, kind, arguments.seed) for kind in arguments.kinds]
    print(markdown(rows))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"device": torch.cuda.get_device_name(), "unit": "2^-24", "rows": rows}, file, indent=1)
    return int(any(row["kind"] in kinds and row[f"jitconv_{math}"]["max"] > row["fma_loop"]["max"]
                   for row in rows for math, kinds in WITHIN_LOOP.items()))


if __name__ == "__main__":
    sys.exit(main())
