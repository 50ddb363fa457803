"""Image classifiers with random weights: ResNet-50, ConvNeXt-T and EfficientNet-B0, layer by layer as published.

Layer sizes are those of the papers (He et al. 2015, Liu et al. 2022, Tan & Le 2019). Stochastic depth and dropout are
left out: they change no convolution and would make losses differ between runs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def conv_bn(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Sequential:
    """A convolution that keeps the extents (divided by the stride), and its BatchNorm."""
    padding = dilation * (size // 2)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding, dilation=dilation, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut; stride or dilation in the 3x3."""

    def __init__(self, inputs: int, width: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        outputs = 4 * width
        self.reduce = nn.Sequential(*conv_bn(inputs, width, 1), nn.ReLU(inplace=True))
        self.convolve = nn.Sequential(*conv_bn(width, width, 3, stride, dilation=dilation), nn.ReLU(inplace=True))
        self.expand = conv_bn(width, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = conv_bn(inputs, outputs, 1, stride) if changes else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.expand(self.convolve(self.reduce(x)))
        out: Tensor = self.relu(y + self.shortcut(x))
        return out


def resnet50_stages(dilated: bool = False) -> nn.Sequential:
    """The convolutional part, 3 to 2048 channels; with `dilated` its last two stages keep 1/8 of the extents."""
    layers: list[nn.Module] = [*conv_bn(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs, dilation = 64, 1
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            first = dilation
            if dilated and stage >= 2 and stride == 2:
                stride, dilation = 1, 2 * dilation
            layers.append(Bottleneck(inputs, width, stride, first if block == 0 else dilation))
            inputs = 4 * width
    return nn.Sequential(*layers)


class ResNet50(nn.Module):
    """N,3,224,224 to N,1000."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = resnet50_stages()
        self.classify = nn.Linear(2048, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classify(self.stages(x).mean((2, 3)))
        return y


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of N,C,H,W."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """7x7 depthwise, LayerNorm, an MLP over channels, a scaled shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        y = self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        out: Tensor = x + (self.scale * y).permute(0, 3, 1, 2)
        return out


class ConvNeXtT(nn.Module):
    """N,3,224,224 to N,1000."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
        for stage, blocks in enumerate((3, 3, 9, 3)):
            width = 96 << stage
            if stage > 0:
                layers += [ChannelNorm(width // 2, eps=1e-6), nn.Conv2d(width // 2, width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(blocks)]
        self.stages = nn.Sequential(*layers)
        self.norm, self.classify = nn.LayerNorm(768, eps=1e-6), nn.Linear(768, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classify(self.norm(self.stages(x).mean((2, 3))))
        return y


class SqueezeExcite(nn.Module):
    """Channels scaled by a gate computed from their means."""

    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Conv2d(width, squeezed, 1), nn.SiLU(), nn.Conv2d(squeezed, width, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = x * self.gate(x.mean((2, 3), keepdim=True))
        return scaled


class InvertedBottleneck(nn.Module):
    """EfficientNet's block: expand, depthwise, squeeze-and-excite, project."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        layers: list[nn.Module] = [] if expansion == 1 else [*conv_bn(inputs, width, 1), nn.SiLU(inplace=True)]
        layers += [*conv_bn(width, width, size, stride, groups=width), nn.SiLU(inplace=True)]
        layers += [SqueezeExcite(width, inputs // 4), *conv_bn(width, outputs, 1)]
        self.layers = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.has_shortcut else y


class EfficientNetB0(nn.Module):
    """N,3,224,224 to N,1000."""

    # expansion, outputs, blocks, stride, filter
    STAGES = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [*conv_bn(3, 32, 3, 2), nn.SiLU(inplace=True)]
        inputs = 32
        for expansion, outputs, blocks, stride, size in self.STAGES:
            for block in range(blocks):
                layers.append(InvertedBottleneck(inputs, outputs, size, stride if block == 0 else 1, expansion))
                inputs = outputs
        self.stages = nn.Sequential(*layers, *conv_bn(320, 1280, 1), nn.SiLU(inplace=True))
        self.classify = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classify(self.stages(x).mean((2, 3)))
        return y
