"""KernelBench level 1, problem 86: a depthwise and a pointwise convolution of a 16x64x512x512 input."""

import torch
from torch import nn

from jitconv.torch import Conv2d


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
        self.depthwise = Conv2d(
            in_channels,
            in_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )
        self.pointwise = Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pointwise(self.depthwise(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 1, 1, 1]
