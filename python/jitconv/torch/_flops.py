"""How many products the operators compute, for `torch.utils.flop_counter`: as many as PyTorch counts for its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import flop_counter

from jitconv.torch._ops import library

_torchs_forward: Any = flop_counter.conv_flop
_torchs_backward: Any = flop_counter.conv_backward_flop


def _forward(x: torch.Tensor, w: torch.Tensor, bias: Any, *settings: Any, out_val: torch.Tensor) -> int:
    count: int = _torchs_forward(x, w, bias, *settings[:4], out_val=out_val)
    return count


def _backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: Any,
    *settings: Any,
    output_mask: Sequence[bool],
    out_val: Sequence[torch.Tensor],
) -> int:
    count: int = _torchs_backward(dy, x, w, saved, *settings[:6], output_mask, out_val=out_val)
    return count


for _operator, _formula in (("convolution", _forward), ("convolution_backward", _backward)):
    _target = getattr(getattr(torch.ops, library.ns), _operator)
    flop_counter.register_flop_formula(_target, get_raw=True)(_formula)
