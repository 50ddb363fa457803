#!/usr/bin/env python3
"""Looks for edges of a photograph in 16 directions, by one convolution with 32 Gabor filters, and writes a picture.

    python filter_bank.py                            # photograph.jpg to filter_bank.jpg, on the GPU
    python filter_bank.py --device cpu --scale 0.5   # the same kernel on the CPU, slowly
    python filter_bank.py --photograph mine.jpg --filter 41 --compare

Below the photograph stand the strength of the strongest edge at each pixel, coloured by its direction, and the filters.
photograph.jpg is scikit-image's `chelsea`, CC0 by its photographer, Stefan van der Walt. Needs Pillow and NumPy.
"""

import argparse
import colorsys
import math
import pathlib
import time
from contextlib import nullcontext

import jitconv.torch
import numpy as np
import torch
from jitconv.torch import functional
from PIL import Image
from torch import Tensor

HERE = pathlib.Path(__file__).parent
DIRECTIONS = 16


def gabor_filters(size: int, wavelength: float) -> Tensor:
    """Waves under a bell, in DIRECTIONS directions, each with a phase of 0 and of 90 degrees.

    Returns 2 * DIRECTIONS filters, (K, 1, size, size): first the even ones, then the odd ones. None has a mean, so that
    a plain surface gives nothing.
    """
    axis = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    bell = torch.exp(-(x.square() + y.square()) / (2 * (size / 6) ** 2))
    filters = []
    for wave in (torch.cos, torch.sin):
        for i in range(DIRECTIONS):
            angle = math.pi * i / DIRECTIONS
            f = bell * wave(2 * math.pi / wavelength * (x * math.cos(angle) + y * math.sin(angle)))
            f = f - bell * (f.sum() / bell.sum())
            filters.append(f / f.abs().sum())
    return torch.stack(filters)[:, None]


def edges(photograph: Tensor, filters: Tensor) -> Tensor:
    """The strength of edges in each direction: (DIRECTIONS, H, W) of a grey (H, W)."""
    border = filters.shape[-1] // 2
    reflected = torch.nn.functional.pad(photograph[None, None], (border,) * 4, mode="reflect")  # black is an edge, too
    responses = functional.conv2d(reflected, filters)[0]
    even, odd = responses.split(DIRECTIONS)
    return torch.hypot(even, odd)


def coloured(strength: Tensor) -> np.ndarray:
    """(H, W, 3): bright where an edge is, in the colour of its direction."""
    best, direction = strength.max(0)
    palette = torch.tensor([colorsys.hsv_to_rgb(i / DIRECTIONS, 0.9, 1.0) for i in range(DIRECTIONS)])
    bright = (best / torch.quantile(best.flatten(), 0.995)).clamp(0, 1).sqrt().cpu()
    return (palette[direction.cpu()] * bright[..., None] * 255).byte().numpy()


def filters_shown(filters: Tensor, width: int) -> np.ndarray:
    """(H, width, 3): the even filters in a row, grey for 0."""
    even = filters[:DIRECTIONS, 0].cpu()
    row = torch.cat(list(torch.nn.functional.pad(even, (1, 1, 1, 1))), 1)
    grey = ((row / row.abs().max() + 1) * 127.5).byte().numpy()
    height = max(1, round(grey.shape[0] * width / grey.shape[1]))
    return np.asarray(Image.fromarray(grey).convert("RGB").resize((width, height)))


def compare_with_pytorch(grey: Tensor, filters: Tensor) -> None:
    """Print the time of both libraries, and how far apart they are."""
    mine = functional.conv2d(grey[None, None], filters, padding="same")
    theirs = torch.nn.functional.conv2d(grey[None, None], filters, padding="same")
    print(f"largest difference to PyTorch: {(mine - theirs).abs().max():.2e}")
    for name, convolve in (("jitconv", functional.conv2d), ("PyTorch", torch.nn.functional.conv2d)):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(50):
            convolve(grey[None, None], filters, padding="same")
        torch.cuda.synchronize()
        print(f"{name}: {(time.perf_counter() - begin) / 50 * 1e3:.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photograph", default=HERE / "photograph.jpg")
    parser.add_argument("--output", default="filter_bank.jpg")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--filter", type=int, default=15, help="extent of a filter, odd")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink or enlarge the photograph before")
    parser.add_argument("--compare", action="store_true", help="time PyTorch's convolution as well, on a GPU")
    arguments = parser.parse_args()

    image = Image.open(arguments.photograph).convert("RGB")
    image = image.resize([max(1, round(extent * arguments.scale)) for extent in image.size])
    grey = torch.from_numpy(np.array(image.convert("L"), dtype=np.float32) / 255).to(arguments.device)
    filters = gabor_filters(arguments.filter, wavelength=arguments.filter / 2.5).to(arguments.device)
    host = jitconv.torch.cpu_policy("host") if arguments.device == "cpu" else nullcontext()
    with host:
        strength = edges(grey, filters)
    parts = [np.array(image), coloured(strength), filters_shown(filters, image.width)]
    Image.fromarray(np.concatenate(parts)).save(arguments.output, quality=90)
    print(f"{arguments.output}: {tuple(grey.shape)} by {len(filters)} filters of {arguments.filter}x{arguments.filter}")
    if arguments.compare and arguments.device == "cuda":
        compare_with_pytorch(grey, filters)


if __name__ == "__main__":
    main()
