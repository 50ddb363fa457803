"""KernelBench level 1, problem 50: one convolution of a 256x3x224x224 input."""

import torch
from torch import nn

from jitconv.torch import Conv2d


class ModelNew(nn.Module):
    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(256, 3, 224, 224)]


def get_init_inputs() -> list[object]:
    return [1000]
