"""How many products the operators compute, for `torch.utils.flop_counter`: as many as PyTorch counts for its own.

That module imports Triton, which takes longer than all of this package. So the formulas are registered when somebody
else imports it, and before its first `FlopCounterMode`, which copies the registry.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from jitconv.torch._ops import library

_COUNTER = "torch.utils.flop_counter"


def _register(counter: ModuleType) -> None:
    """Register the formulas with `torch.utils.flop_counter`."""
    torchs_forward: Any = counter.conv_flop
    torchs_backward: Any = counter.conv_backward_flop

    def forward(x: torch.Tensor, w: torch.Tensor, bias: Any, *settings: Any, out_val: torch.Tensor) -> int:
        count: int = torchs_forward(x, w, bias, *settings[:4], out_val=out_val)
        return count

    def backward(
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: Any,
        *settings: Any,
        output_mask: Sequence[bool],
        out_val: Sequence[torch.Tensor],
    ) -> int:
        count: int = torchs_backward(dy, x, w, saved, *settings[:6], output_mask, out_val=out_val)
        return count

    for operator, formula in (("convolution", forward), ("convolution_backward", backward)):
        target = getattr(getattr(torch.ops, library.ns), operator)
        counter.register_flop_formula(target, get_raw=True)(formula)


class _Finder(MetaPathFinder):
    """Registers the formulas behind the first import of `torch.utils.flop_counter`, and goes."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec that the other finders have, with a loader that registers the formulas as well."""
        if name != _COUNTER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if _COUNTER in sys.modules:
    _register(sys.modules[_COUNTER])
else:
    sys.meta_path.insert(0, _Finder())
