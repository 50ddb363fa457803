"""The operators ``torch.ops.jitconv.convolution`` and ``convolution_backward``: schemas, kernels, fakes, transforms.

They are registered by ``define`` and ``impl``, which costs a call less than ``custom_op``. _autograd.py has their
derivatives, and _eager.py a way around the dispatcher.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from jitconv.torch import _aten, _config, _policy
from jitconv.torch._convolution import Convolution, Settings, convolution
from jitconv.torch._plan import on_default_stream
from jitconv.torch._shapes import check_operands, memory_format, output_channels

_SETTINGS = (
    "int[2] stride, int[4] padding, int[2] dilation, bool transposed, int[2] output_padding, int groups, "
    "str activation='none', float slope=0.01, float clamp_min=0.0, float clamp_max=6.0, str? math=None, "
    "str policy='always'"
)

library = torch.library.Library("jitconv", "DEF")
library.define(f"convolution(Tensor x, Tensor w, Tensor? bias, {_SETTINGS}) -> Tensor")
library.define(
    f"convolution_backward(Tensor dy, Tensor x, Tensor w, Tensor? saved, {_SETTINGS}, *, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)"
)


def to_settings(arguments: Sequence[Any]) -> Settings:
    """Return the operators' arguments behind the tensors as Settings; lists become tuples."""
    stride, padding, dilation, transposed, output_padding, *rest = arguments
    return Settings(tuple(stride), tuple(padding), tuple(dilation), transposed, tuple(output_padding), *rest)


def uses_kernels(x: torch.Tensor) -> bool:
    """Say whether convolutions of this tensor are jitconv's, rather than PyTorch's for CPU tensors."""
    return x.is_cuda or (x.is_cpu and _config.get_cpu_policy() == "host")


def refuse_tangents(*tensors: torch.Tensor | None) -> None:
    """Raise if a tensor has a tangent, which the result would silently lack.

    Raises
    ------
    NotImplementedError
        In forward-mode differentiation, which the operators do not have.
    """
    if forward_ad._current_level < 0:
        return
    if any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise NotImplementedError(
            "jitconv: convolutions have no forward-mode derivative (torch.func.jvp, jacfwd, hessian, linearize). Use "
            "reverse mode (torch.func.vjp, jacrev), or torch.nn.functional for this layer."
        )


# --- kernels of the operators -----------------------------------------------------------------------------------------


def _convolution_kernel(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    refuse_tangents(x, w, bias)
    c = convolution(to_settings(arguments))
    if not uses_kernels(x):
        return _aten.forward(c, x, w, bias)
    if _policy.decides(c.settings.policy):
        c = _policy.choosing(c)
    # Packed weights are kept of parameters: what else a compiled graph has may be made anew in each call, as autocast's
    # weights are. Where torch.compile warms up for a CUDA graph, on a stream of its own, memory comes from the graph's
    # pool, and keeping any is an error.
    pack = isinstance(w, torch.nn.Parameter) and not torch.is_grad_enabled() and on_default_stream(x.get_device())
    return c.forward(x, w, bias, activation=True, pack=pack)


def _convolution_backward_kernel(
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    *arguments: Any,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor, ...]:
    refuse_tangents(dy, x, w)
    c = convolution(to_settings(arguments))
    gradients: tuple[torch.Tensor | None, ...]
    if uses_kernels(x):
        if _policy.decides(c.settings.policy):
            c = _policy.choosing(c)
        gradients = c.backward(dy, x, w, saved, tuple(output_mask))  # type: ignore[arg-type]
    else:
        gradients = _aten.backward(c, dy, x, w, saved, output_mask)
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _convolution_fake(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    s = to_settings(arguments)
    check_operands(x, w, bias, s.transposed, s.groups)
    shape = Convolution(s).result_shape(x, w)
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=memory_format(x, w))


def _convolution_backward_fake(
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    *arguments: Any,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor, ...]:
    s = to_settings(arguments)
    filters = output_channels(w.shape, s.transposed, s.groups)
    return (
        torch.empty(x.shape, dtype=x.dtype, device=x.device, memory_format=memory_format(x, w))
        if output_mask[0]
        else x.new_empty(0),
        torch.empty(w.shape, dtype=w.dtype, device=w.device) if output_mask[1] else x.new_empty(0),
        torch.empty(filters, dtype=w.dtype, device=w.device) if output_mask[2] else x.new_empty(0),
    )


for _key in ("CPU", "CUDA"):
    library.impl("convolution", _convolution_kernel, _key)
    library.impl("convolution_backward", _convolution_backward_kernel, _key)
torch.library.register_fake("jitconv::convolution", _convolution_fake, lib=library)
torch.library.register_fake("jitconv::convolution_backward", _convolution_backward_fake, lib=library)


# --- autocast and vmap ------------------------------------------------------------------------------------------------


def autocast(t: torch.Tensor, device: str) -> torch.Tensor:
    """Return an operand in autocast's type; float64 stays, as in PyTorch."""
    if t.is_floating_point() and t.dtype != torch.float64:
        return t.to(torch.get_autocast_dtype(device))
    return t


def _autocast_kernel(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    device = x.device.type
    x, w, bias = autocast(x, device), autocast(w, device), None if bias is None else autocast(bias, device)
    with torch.autocast(device, enabled=False):
        return torch.ops.jitconv.convolution(x, w, bias, *arguments)  # type: ignore[no-any-return]


for _key in ("AutocastCPU", "AutocastCUDA"):
    library.impl("convolution", _autocast_kernel, _key)


def _vmap(info: Any, in_dims: tuple[Any, ...], x: Any, w: Any, bias: Any, *arguments: Any) -> tuple[torch.Tensor, int]:
    """Fold a batch of inputs into N; loop where weights are batched."""
    x_dim, w_dim, bias_dim = in_dims[:3]
    if w_dim is None and bias_dim is None:
        folded = x.movedim(x_dim, 0)
        y = torch.ops.jitconv.convolution(folded.flatten(0, 1), w, bias, *arguments)
        return y.unflatten(0, folded.shape[:2]), 0
    results = [
        torch.ops.jitconv.convolution(_part(x, x_dim, i), _part(w, w_dim, i), _part(bias, bias_dim, i), *arguments)
        for i in range(info.batch_size)
    ]
    return torch.stack(results), 0


def _part(tensor: Any, dimension: int | None, index: int) -> Any:
    return tensor if dimension is None or tensor is None else tensor.select(dimension, index)


def _vmap_backward(
    info: Any, in_dims: tuple[Any, ...], *arguments: Any, **keywords: Any
) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
    results = [
        torch.ops.jitconv.convolution_backward(
            *(_part(t, d, i) for t, d in zip(arguments[:4], in_dims[:4], strict=True)), *arguments[4:], **keywords
        )
        for i in range(info.batch_size)
    ]
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True)), (0, 0, 0)


torch.library.register_vmap("jitconv::convolution", _vmap, lib=library)
torch.library.register_vmap("jitconv::convolution_backward", _vmap_backward, lib=library)
