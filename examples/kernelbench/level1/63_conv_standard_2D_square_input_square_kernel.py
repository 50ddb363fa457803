"""KernelBench level 1, problem 63: one convolution of a 16x16x1024x1024 input."""

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
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv2d = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 16, 1024, 1024)]


def get_init_inputs() -> list[object]:
    return [16, 128, 3]
