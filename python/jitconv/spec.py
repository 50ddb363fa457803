"""The description of one operation, as the line of text that the library reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Operation: TypeAlias = Literal["forward", "data_gradient", "weight_gradient"]
Layout: TypeAlias = Literal["nchw", "nhwc"]
Math: TypeAlias = Literal["ieee", "fp32", "tf32", "fp16x3"]

# Names that PyTorch uses, and the library's.
_ACTIVATION_ALIASES = {"": "none", "gelu": "gelu_erf", "hardtanh": "clamp"}
ACTIVATIONS = (
    "none",
    "relu",
    "leaky_relu",
    "gelu_erf",
    "gelu_tanh",
    "silu",
    "sigmoid",
    "tanh",
    "hardswish",
    "clamp",
)
MATH_MODES = ("ieee", "fp32", "tf32", "fp16x3")


def activation_name(name: str | None) -> str:
    """Return the library's name of an activation.

    Parameters
    ----------
    name
        ``None``, or a name such as ``"relu"``; ``"gelu"`` is ``"gelu_erf"`` and ``"hardtanh"`` is ``"clamp"``.

    Raises
    ------
    ValueError
        If there is no such activation.
    """
    if name is None:
        return "none"
    known = _ACTIVATION_ALIASES.get(name, name) if isinstance(name, str) else name
    if known not in ACTIVATIONS:
        raise ValueError(f"activation is {name!r}, must be None or one of {', '.join(ACTIVATIONS[1:])}")
    return known


def math_name(name: str | None) -> str | None:
    """Return the name of a math mode, or None, which stands for the caller's default.

    Raises
    ------
    ValueError
        If there is no such mode.
    """
    if name is not None and name not in MATH_MODES:
        raise ValueError(f"math is {name!r}, must be None or one of {', '.join(MATH_MODES)}")
    return name


@dataclass(frozen=True)
class Spec:
    """One operation of one convolution. The fields are those of ``jitconv::ConvSpec`` (include/jitconv/spec.h).

    ``input``, ``weight`` and ``output_layout`` are always those of the forward convolution, whatever the operation.
    """

    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    dtype: str = "f32"
    input_layout: str = "nchw"
    output_layout: str = "nchw"
    math: str = "fp32"
    bias: bool = False
    residual: bool = False
    activation: str = "none"
    slope: float = 0.01
    clamp_min: float = 0.0
    clamp_max: float = 6.0
    alignment: int = 16
    operation: str = "forward"
    output_dtype: str = "same"
    dy_activation: str = "none"

    def __str__(self) -> str:
        """Return the line that the library reads."""
        words = []
        for name, value in self.__dict__.items():
            if isinstance(value, bool):
                text = "true" if value else "false"
            elif isinstance(value, tuple):
                text = ",".join(str(int(extent)) for extent in value)
            else:
                text = str(value)
            words.append(f"{name}={text}")
        return " ".join(words)
