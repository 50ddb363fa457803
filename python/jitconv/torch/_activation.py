"""Activations as PyTorch computes them, for what is not fused into a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from jitconv.torch._convolution import Settings

# The derivatives of these are computed from the result; those of the others from what the activation was applied to.
_FROM_RESULT = frozenset(("relu", "leaky_relu", "clamp"))


def saves_result(settings: Settings) -> bool:
    """Say whether an activation's derivative is computed from its result y, rather than from its argument z."""
    return settings.activation in _FROM_RESULT and not hides_sign(settings)


def hides_sign(settings: Settings) -> bool:
    """Say whether y does not show the sign of z, as that of leaky ReLU with a slope that is not above 0."""
    return settings.activation == "leaky_relu" and settings.slope <= 0


def apply(z: torch.Tensor, settings: Settings) -> torch.Tensor:
    """Return the activation of z, by PyTorch."""
    match settings.activation:
        case "none":
            return z
        case "relu":
            return functional.relu(z)
        case "leaky_relu":
            return functional.leaky_relu(z, settings.slope)
        case "gelu_erf":
            return functional.gelu(z)
        case "gelu_tanh":
            return functional.gelu(z, approximate="tanh")
        case "silu":
            return functional.silu(z)
        case "sigmoid":
            return torch.sigmoid(z)
        case "tanh":
            return torch.tanh(z)
        case "hardswish":
            return functional.hardswish(z)
        case "clamp":
            return functional.hardtanh(z, settings.clamp_min, settings.clamp_max)
    raise ValueError(f"activation is {settings.activation!r}")


def gradient(dy: torch.Tensor, saved: torch.Tensor, settings: Settings) -> torch.Tensor:
    """Return dy times the activation's derivative, by PyTorch.

    Parameters
    ----------
    dy, saved : N, K, P, Q
        The gradient of the result, and y or z as `saves_result` says.
    """
    aten = torch.ops.aten
    match settings.activation:
        case "relu":
            result = aten.threshold_backward(dy, saved, 0)
        case "leaky_relu":
            result = aten.leaky_relu_backward(dy, saved, settings.slope, saves_result(settings))
        case "gelu_erf":
            result = aten.gelu_backward(dy, saved)
        case "gelu_tanh":
            result = aten.gelu_backward(dy, saved, approximate="tanh")
        case "silu":
            result = aten.silu_backward(dy, saved)
        case "sigmoid":
            result = aten.sigmoid_backward(dy, torch.sigmoid(saved))
        case "tanh":
            result = aten.tanh_backward(dy, torch.tanh(saved))
        case "hardswish":
            result = aten.hardswish_backward(dy, saved)
        case "clamp":
            result = aten.hardtanh_backward(dy, saved, settings.clamp_min, settings.clamp_max)
        case _:
            return dy
    assert isinstance(result, torch.Tensor)
    return result
