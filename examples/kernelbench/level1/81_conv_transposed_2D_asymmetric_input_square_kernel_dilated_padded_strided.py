"""KernelBench level 1, problem 81: one transposed convolution of a 16x32x64x128 input."""

import torch
from torch import nn

from jitconv.torch import ConvTranspose2d


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv_transpose2d = ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv_transpose2d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 64, 128)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 5, 1, 2]
