"""jitconv beside Inductor's own convolutions in max-autotune, for layers with policy="auto".

Inductor times both on the graph's shapes and takes the faster: jitconv's operator, or what it makes of PyTorch's, which
may be cuDNN or a Triton kernel that it fuses with its neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from jitconv.torch import _aten
from jitconv.torch._convolution import Settings, convolution
from jitconv.torch._ops import to_settings

_numbers = itertools.count()


def enable_inductor_autotuning() -> None:
    """Let ``torch.compile(mode="max-autotune")`` choose between jitconv and its own convolutions.

    It concerns layers and functions with ``policy="auto"`` in graphs that are compiled from then on. Others stay
    jitconv's. Without max-autotune, such a layer is timed at its first call, as in eager mode.

    Raises
    ------
    ImportError
        If this version of PyTorch does not have Inductor's autotuning of custom operators where 2.11 has it.
    """
    from torch._inductor import config  # noqa: PLC0415
    from torch._inductor.kernel.custom_op import autotune_custom_op  # noqa: PLC0415
    from torch._inductor.lowering import (  # noqa: PLC0415
        add_layout_constraint,
        constrain_to_fx_strides,
        fallback_handler,
        lowerings,
    )

    operator = torch.ops.jitconv.convolution.default
    fallback = fallback_handler(operator, add_to_fallback_set=False)

    def lowering(x: Any, w: Any, bias: Any, *arguments: Any) -> Any:
        settings = to_settings(arguments)
        if settings.policy != "auto" or not config.max_autotune:
            return fallback(x, w, bias, *arguments)
        inputs = [x, w] if bias is None else [x, w, bias]
        return autotune_custom_op(
            name=f"jitconv_convolution_{next(_numbers)}",
            decompositions=[_by_jitconv(settings), _by_pytorch(settings)],
            inputs=inputs,
            non_tensor_args=[{}, {}],
            op_overload=None,  # type: ignore[arg-type]
        )

    add_layout_constraint(operator, constrain_to_fx_strides)  # operands become buffers: choices are timed on strides
    lowerings[operator] = lowering


def _by_jitconv(settings: Settings) -> Callable[..., torch.Tensor]:
    always = settings._replace(policy="always")

    def jitconv(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return torch.ops.jitconv.convolution(x, w, bias, *always)  # type: ignore[no-any-return]

    return jitconv


def _by_pytorch(settings: Settings) -> Callable[..., torch.Tensor]:
    c = convolution(settings)

    def pytorch(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return _aten.forward(c, x, w, bias)

    return pytorch
