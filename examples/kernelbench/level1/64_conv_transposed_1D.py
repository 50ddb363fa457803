"""KernelBench level 1, problem 64: one transposed 1-D convolution of a 64x128x65536 input."""

import torch
from torch import nn

from jitconv.torch import ConvTranspose1d


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv1d_transpose = ConvTranspose1d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1d_transpose(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 128, 65536)]


def get_init_inputs() -> list[object]:
    return [128, 128, 3]
