"""A drop-in layer for KernelBench's level 1, problem 80: a dilated, padded convolution, forward and gradients.

    python -c "import torch; from model import ModelNew; model = ModelNew(); model = model.cuda(); \
x = torch.randn(8,32,512,512, device='cuda', requires_grad=True); y = model(x); y.sum().backward()"

The layer is a torch.nn.Conv2d in its arguments, parameters and state_dict; jitconv compiles its kernels at the first
call. level1/ has a ModelNew for every convolution problem of the level.
"""

import torch
from torch import nn

from jitconv.torch import Conv2d


class ModelNew(nn.Module):
    """A 5x9 convolution, 32 to 64 channels, padding (2, 4), dilation (2, 3), with a bias.

    Takes (N, 32, H, W) and returns (N, 64, H - 4, W - 16): 8x32x512x512 becomes 8x64x508x496.
    """

    def __init__(
        self,
        in_channels: int = 32,
        out_channels: int = 64,
        kernel_size: int | tuple[int, int] = (5, 9),
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = (2, 4),
        dilation: int | tuple[int, int] = (2, 3),
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.conv2d = Conv2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 32, 512, 512)]


def get_init_inputs() -> list[object]:
    return []
