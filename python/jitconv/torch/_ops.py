"""The operators ``torch.ops.jitconv.convolution`` and ``convolution_backward``, and their eager short cut.

They are registered by ``define`` and ``impl``, which costs a call less than ``custom_op``. `convolve` is what the
functions and modules call: in plain eager mode it goes to the kernels without the dispatcher, which costs a call of a
Python operator several microseconds; wherever something would see the operator (a transform, a mode, a trace, a
profiler), it calls the operator.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from jitconv.torch import _activation, _config
from jitconv.torch._convolution import Convolution, Settings, convolution
from jitconv.torch._shapes import check_operands, dense_strides, memory_format

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


def _settings(arguments: Sequence[Any]) -> Settings:
    """Return the operators' arguments behind the tensors as Settings; lists become tuples."""
    named = Settings(*arguments)
    return named._replace(
        stride=tuple(named.stride),
        padding=tuple(named.padding),
        dilation=tuple(named.dilation),
        output_padding=tuple(named.output_padding),
    )


def aten_convolution(
    c: Convolution, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None
) -> torch.Tensor:
    """Return the convolution with its activation, by PyTorch, with the strides that jitconv's result has."""
    s = c.settings
    check_operands(x, w, b, s.transposed, s.groups)
    y = _activation.apply(_aten_linear(s, x, w, b), s)
    strides = dense_strides(y.shape, memory_format(x, w))
    if y.stride() == strides:
        return y
    return torch.empty_strided(y.shape, strides, dtype=y.dtype, device=y.device).copy_(y)


def _aten_linear(s: Settings, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    x, padding = _symmetric(s, x)
    return torch.ops.aten.convolution(
        x, w, b, s.stride, padding, s.dilation, s.transposed, s.output_padding, s.groups
    )  # type: ignore[no-any-return]


def _symmetric(s: Settings, x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
    """Return x and the padding for PyTorch's convolution, which has one for both sides: what is more is padded now."""
    top, bottom, left, right = s.padding
    if top == bottom and left == right:
        return x, (top, left)
    if s.transposed:
        raise ValueError(f"padding is {s.padding}: a transposed convolution has the same on both sides")
    return torch.nn.functional.pad(x, (left, right, top, bottom)), (0, 0)


def aten_convolution_backward(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return dx, dw and db by PyTorch."""
    s = c.settings
    if saved is not None:
        dy = _activation.gradient(dy, saved, s)
    padded, padding = _symmetric(s, x)
    filters = w.shape[1] * s.groups if s.transposed else w.shape[0]
    dx, dw, db = torch.ops.aten.convolution_backward(
        dy, padded, w, [filters], s.stride, padding, s.dilation, s.transposed, s.output_padding, s.groups, mask
    )
    if mask[0]:
        dx = _without_padding(s, dx, x)
        strides = dense_strides(x.shape, memory_format(x, w))
        if dx.stride() != strides:
            dx = torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(dx)
    return dx if mask[0] else None, dw.contiguous() if mask[1] else None, db if mask[2] else None


def _without_padding(s: Settings, padded: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    if padded.shape == x.shape:
        return padded
    top, left = s.padding[0], s.padding[2]
    return padded[:, :, top : top + x.shape[2], left : left + x.shape[3]]


def uses_kernels(x: torch.Tensor) -> bool:
    """Say whether convolutions of this tensor are jitconv's, rather than PyTorch's for CPU tensors."""
    return x.is_cuda or _config.get_cpu_policy() == "host"


def _grad_is_off(*tensors: torch.Tensor | None) -> bool:
    return not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in tensors)


# --- kernels of the operators -----------------------------------------------------------------------------------------


def _convolution_kernel(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any
) -> torch.Tensor:
    c = convolution(_settings(arguments))
    if not uses_kernels(x):
        return aten_convolution(c, x, w, bias)
    return c.forward(x, w, bias, activation=True, pack=not torch.is_grad_enabled())


def _convolution_backward_kernel(
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    *arguments: Any,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor, ...]:
    c = convolution(_settings(arguments))
    if uses_kernels(x):
        gradients: tuple[torch.Tensor | None, ...] = c.backward(dy, x, w, saved, tuple(output_mask))  # type: ignore[arg-type]
    else:
        gradients = aten_convolution_backward(c, dy, x, w, saved, output_mask)
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _convolution_fake(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any
) -> torch.Tensor:
    s = _settings(arguments)
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
    s = _settings(arguments)
    filters = w.shape[1] * s.groups if s.transposed else w.shape[0]
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


# --- autograd ---------------------------------------------------------------------------------------------------------


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, w, bias, *arguments = inputs
    ctx.arguments = arguments
    ctx.bias = bias is not None
    s = _settings(arguments)
    if s.activation == "none":
        ctx.save_for_backward(x, w)
    elif _activation.saves_result(s.activation):
        ctx.save_for_backward(x, w, output)
    else:  # z is computed again; `convolve` keeps it instead
        ctx.save_for_backward(x, w, *(() if bias is None else (bias,)))


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, w, *rest = ctx.saved_tensors
    s = _settings(ctx.arguments)
    if s.activation == "none":
        saved = None
    elif _activation.saves_result(s.activation):
        saved = rest[0]
    else:
        with torch.no_grad():
            linear = s._replace(activation="none")
            saved = torch.ops.jitconv.convolution(x, w, rest[0] if rest else None, *linear)
    mask = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.bias and ctx.needs_input_grad[2]]
    gradients = torch.ops.jitconv.convolution_backward(dy, x, w, saved, *ctx.arguments, output_mask=mask)
    wanted = [gradient if asked else None for gradient, asked in zip(gradients, mask, strict=True)]
    return (*wanted, *(None for _ in ctx.arguments))


torch.library.register_autograd("jitconv::convolution", _backward, setup_context=_setup_context, lib=library)


def _setup_double_context(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
    dy, x, w, saved, *arguments = inputs
    ctx.fused = saved is not None
    ctx.arguments = arguments
    ctx.mask = keyword_only_inputs["output_mask"]
    ctx.save_for_backward(dy, x, w)


def _double_backward(ctx: Any, *incoming: torch.Tensor | None) -> tuple[Any, ...]:
    """Return gradients of dy, x and w, made of the same operators, so that they can be differentiated again.

    A convolution is linear in x and in w, so <dx, ggx> = <dy, conv(ggx, w)> and <dw, ggw> = <dy, conv(x, ggw)>.
    """
    if ctx.fused:
        raise NotImplementedError(
            "jitconv: a convolution with a fused activation cannot be differentiated twice. Use activation=None and "
            "PyTorch's activation behind the layer."
        )
    dy, x, w = ctx.saved_tensors
    arguments = ctx.arguments
    ggx, ggw, ggb = (gradient if asked else None for gradient, asked in zip(incoming, ctx.mask, strict=True))
    convolve, gradients = torch.ops.jitconv.convolution, torch.ops.jitconv.convolution_backward
    g_dy = g_x = g_w = None
    if ctx.needs_input_grad[0]:
        terms = []
        if ggx is not None:
            terms.append(convolve(ggx, w, None, *arguments))
        if ggw is not None:
            terms.append(convolve(x, ggw, None, *arguments))
        if ggb is not None:
            terms.append(ggb.view(1, -1, 1, 1).expand_as(dy))
        g_dy = functools.reduce(torch.add, terms) if terms else None
    if ctx.needs_input_grad[1] and ggw is not None:
        g_x = gradients(dy, x, ggw, None, *arguments, output_mask=[True, False, False])[0]
    if ctx.needs_input_grad[2] and ggx is not None:
        g_w = gradients(dy, ggx, w, None, *arguments, output_mask=[False, True, False])[1]
    return (g_dy, g_x, g_w, None, *(None for _ in arguments))


torch.library.register_autograd(
    "jitconv::convolution_backward", _double_backward, setup_context=_setup_double_context, lib=library
)


# --- autocast and vmap ------------------------------------------------------------------------------------------------


def autocast(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return a convolution's operands in autocast's type; float64 stays, as in PyTorch."""
    dtype = torch.get_autocast_dtype(x.device.type)

    def cast(t: torch.Tensor) -> torch.Tensor:
        return t.to(dtype) if t.is_floating_point() and t.dtype != torch.float64 else t

    return cast(x), cast(w), None if b is None else cast(b)


def _autocast_kernel(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    device = x.device.type
    x, w, bias = autocast(x, w, bias)
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
        torch.ops.jitconv.convolution(
            _part(x, x_dim, i), _part(w, w_dim, i), _part(bias, bias_dim, i), *arguments
        )
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


# --- the short cut of eager mode --------------------------------------------------------------------------------------


class _Eager(torch.autograd.Function):
    """The convolution with gradients, without the dispatcher."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution
    ) -> torch.Tensor:
        ctx.convolution = c
        activation = c.settings.activation
        if activation == "none":
            y = c.forward(x, w, b, activation=False, pack=False)
            ctx.save_for_backward(x, w)
        elif _activation.saves_result(activation):
            y = c.forward(x, w, b, activation=True, pack=False)
            ctx.save_for_backward(x, w, y)
        else:
            z = c.forward(x, w, b, activation=False, pack=False)
            y = _activation.apply(z, c.settings)
            ctx.save_for_backward(x, w, z)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        x, w, *rest = ctx.saved_tensors
        c: Convolution = ctx.convolution
        saved = rest[0] if rest else None
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():  # create_graph=True
            mask = list(needs[:3])
            gradients = torch.ops.jitconv.convolution_backward(dy, x, w, saved, *c.settings, output_mask=mask)
            return (*(g if asked else None for g, asked in zip(gradients, mask, strict=True)), None)
        return (*c.backward(dy, x, w, saved, needs[:3]), None)


_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_traced = torch._C._get_tracing_state
_profiled = torch.autograd._profiler_enabled
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_plain(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> bool:
    """Say whether nothing would see the operator if it were called."""
    return (
        type(x) in _PLAIN
        and type(w) in _PLAIN
        and (b is None or type(b) in _PLAIN)
        and _dispatch_modes() == 0
        and _function_modes() == 0
        and _transforms() is None
        and forward_ad._current_level < 0
        and _traced() is None
        and not _profiled()
    )


def convolve(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution) -> torch.Tensor:
    """Return a convolution of tensors of four dimensions.

    Parameters
    ----------
    x : N, C, H, W
    w : K, C/groups, R, S; transposed C, K/groups, R, S
    b : K, or None
    """
    settings = c.settings
    if torch.compiler.is_compiling() or not _is_plain(x, w, b) or settings.policy != "always" or not uses_kernels(x):
        if settings.activation == "none" or _activation.saves_result(settings.activation) or _grad_is_off(x, w, b):
            return torch.ops.jitconv.convolution(x, w, b, *settings)  # type: ignore[no-any-return]
        linear = settings._replace(activation="none")
        return _activation.apply(torch.ops.jitconv.convolution(x, w, b, *linear), settings)
    if torch.is_autocast_enabled(x.device.type):
        x, w, b = autocast(x, w, b)
    if torch.is_grad_enabled() and (x.requires_grad or w.requires_grad or (b is not None and b.requires_grad)):
        return _Eager.apply(x, w, b, c)  # type: ignore[no-any-return, no-untyped-call]
    return c.forward(x, w, b, activation=True, pack=not torch.is_grad_enabled())
