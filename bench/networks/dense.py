"""Networks whose result is as large as their input, with random weights.

A diffusion U-Net, DeepLabV3, EDSR, and a 1-D speech net.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from vision import conv_bn, resnet50_stages


class ResidualBlock(nn.Module):
    """GroupNorm, SiLU, 3x3, twice, with the time embedding added between (Ho et al. 2020)."""

    def __init__(self, inputs: int, outputs: int, embedding: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(embedding, outputs)
        self.second = nn.Sequential(nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        y = self.first(x) + self.time(embedding)[:, :, None, None]
        out: Tensor = self.second(y) + self.shortcut(x)
        return out


class UNet(nn.Module):
    """The convolutions of a latent-diffusion U-Net at 320, 640 and 1280 channels, without its attention layers.

    N,4,64,64 to N,4,64,64.
    """

    WIDTHS = (320, 640, 1280)

    def __init__(self) -> None:
        super().__init__()
        embedding, width = 1280, self.WIDTHS[0]
        self.embedding = nn.Parameter(torch.randn(1, embedding))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        skips = [width]
        for level, outputs in enumerate(self.WIDTHS):
            for _ in range(2):
                self.down.append(ResidualBlock(width, outputs, embedding))
                width = outputs
                skips.append(width)
            if level + 1 < len(self.WIDTHS):
                self.shrink.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
        self.middle = ResidualBlock(width, width, embedding)
        self.up, self.grow = nn.ModuleList(), nn.ModuleList()
        for level, outputs in reversed(list(enumerate(self.WIDTHS))):
            for _ in range(3):
                self.up.append(ResidualBlock(width + skips.pop(), outputs, embedding))
                width = outputs
            if level > 0:
                self.grow.append(nn.Conv2d(width, width, 3, padding=1))
        self.leave = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        embedding = self.embedding.to(x.dtype).expand(x.shape[0], -1)
        x = self.enter(x)
        skips = [x]
        for i, block in enumerate(self.down):
            x = block(x, embedding)
            skips.append(x)
            if i % 2 == 1 and i // 2 < len(self.shrink):
                x = self.shrink[i // 2](x)
                skips.append(x)
        x = self.middle(x, embedding)
        for i, block in enumerate(self.up):
            x = block(torch.cat([x, skips.pop()], 1), embedding)
            if i % 3 == 2 and i // 3 < len(self.grow):
                x = self.grow[i // 3](functional.interpolate(x, scale_factor=2.0))
        y: Tensor = self.leave(x)
        return y


class DeepLabV3(nn.Module):
    """ResNet-50 at 1/8 of the extents and filters of dilation 12, 24 and 36 (Chen et al. 2017).

    N,3,H,W to N,21,H,W.
    """

    def __init__(self) -> None:
        super().__init__()
        self.backbone = resnet50_stages(dilated=True)
        self.branches = nn.ModuleList(
            [
                nn.Sequential(*conv_bn(2048, 256, size, dilation=dilation), nn.ReLU())
                for size, dilation in ((1, 1), (3, 12), (3, 24), (3, 36))
            ]
        )
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2048, 256, 1), nn.ReLU())
        self.project = nn.Sequential(*conv_bn(1280, 256, 1), nn.ReLU())
        self.classify = nn.Sequential(*conv_bn(256, 256, 3), nn.ReLU(), nn.Conv2d(256, 21, 1))

    def forward(self, x: Tensor) -> Tensor:
        features = self.backbone(x)
        parts = [branch(features) for branch in self.branches]
        parts.append(self.pooled(features).expand(-1, -1, *features.shape[2:]))
        y = self.classify(self.project(torch.cat(parts, 1)))
        return functional.interpolate(y, x.shape[2:], mode="bilinear")


class EDSR(nn.Module):
    """Super-resolution by 2: 16 residual blocks of 64 channels without normalisation (Lim et al. 2017).

    N,3,H,W to N,3,2H,2W.
    """

    def __init__(self, width: int = 64, blocks: int = 16) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
                for _ in range(blocks)
            ]
        )
        self.join = nn.Conv2d(width, width, 3, padding=1)
        self.leave = nn.Sequential(
            nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        first = self.enter(x)
        y = first
        for block in self.blocks:
            y = y + 0.1 * block(y)
        out: Tensor = self.leave(first + self.join(y))
        return out


class SpeechBlock(nn.Module):
    """Dilated 1-D convolutions with a shortcut."""

    def __init__(self, width: int, size: int, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LeakyReLU(0.1),
            nn.Conv1d(width, width, size, padding=dilation * (size // 2), dilation=dilation),
            nn.LeakyReLU(0.1),
            nn.Conv1d(width, width, size, padding=size // 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


class Speech(nn.Module):
    """A vocoder's generator in the manner of HiFi-GAN (Kong et al. 2020).

    Transposed 1-D convolutions lengthen by 8, 8, 2 and 2, with dilated blocks behind each. N,80,T to N,1,256 T.
    """

    def __init__(self) -> None:
        super().__init__()
        width = 512
        layers: list[nn.Module] = [nn.Conv1d(80, width, 7, padding=3)]
        for factor in (8, 8, 2, 2):
            transposed = nn.ConvTranspose1d(width, width // 2, 2 * factor, factor, factor // 2)
            width //= 2
            layers += [nn.LeakyReLU(0.1), transposed]
            layers += [SpeechBlock(width, size, dilation) for size in (3, 7) for dilation in (1, 3)]
        self.layers = nn.Sequential(*layers, nn.LeakyReLU(), nn.Conv1d(width, 1, 7, padding=3), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y
