"""KernelBench level 1, problem 76: one 1-D convolution of a 64x64x524280 input."""

import torch
from torch import nn

from jitconv.torch import Conv1d


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        dilation: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv1d = Conv1d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            dilation=dilation,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 524280)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 3, 4]
