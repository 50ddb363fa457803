"""Derivatives of the operators: for autograd and torch.func's transforms; a shortcut where nobody asks for one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from jitconv.torch import _activation
from jitconv.torch._convolution import Settings
from jitconv.torch._ops import (
    _convolution_backward_kernel,
    _convolution_kernel,
    library,
    refuse_tangents,
    to_settings,
)

#: Sets of dispatch keys, without autograd's and those before, of calls that go on with the kernel of a device.
_DEVICES = {torch._C.DispatchKeySet(key).raw_repr() for key in (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)}


class _Shortcut:
    """What `torch.library.register_autograd` registers with in the place of `library`.

    A kernel of the key Autograd calls the dispatcher again, which converts all arguments twice and takes longer than
    all else in a call. Where there is nothing to differentiate, and the dispatcher would go on with the kernel of a
    device, that is called at once. Compiled graphs consist of such calls.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel = kernel

    def impl(self, name: str, generated: Callable[..., Any], key: str, **options: Any) -> None:
        """Register the shortcut, and `generated`, which takes the set of dispatch keys first, behind it."""
        kernel, behind_autograd = self._kernel, torch._C._after_ADInplaceOrView_keyset

        def autograd(keyset: Any, *arguments: Any, **keywords: Any) -> Any:
            differentiates = torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)
            if not differentiates and (keyset & behind_autograd).raw_repr() in _DEVICES:
                return kernel(*arguments, **keywords)
            return generated(keyset, *arguments, **keywords)

        library.impl(name, autograd, key, **options)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, w, bias, *arguments = inputs
    ctx.arguments = arguments
    ctx.bias = bias is not None
    s = to_settings(arguments)
    if s.activation == "none":
        ctx.save_for_backward(x, w)
    elif _activation.saves_result(s):
        ctx.save_for_backward(x, w, output)
    else:  # z is computed again; `convolve` keeps it instead
        ctx.save_for_backward(x, w, *(() if bias is None else (bias,)))


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, w, *rest = ctx.saved_tensors
    s = to_settings(ctx.arguments)
    if s.activation == "none":
        saved = None
    elif _activation.saves_result(s):
        saved = rest[0]
    else:
        with torch.no_grad():
            linear = s._replace(activation="none")
            saved = forward_operator(x, w, rest[0] if rest else None, linear)
    mask = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.bias and ctx.needs_input_grad[2]]
    gradients = backward_operator(dy, x, w, saved, s, mask)
    wanted = [gradient if asked else None for gradient, asked in zip(gradients, mask, strict=True)]
    return (*wanted, *(None for _ in ctx.arguments))


torch.library.register_autograd(
    "jitconv::convolution", _backward, setup_context=_setup_context, lib=_Shortcut(_convolution_kernel)
)


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
    s = to_settings(ctx.arguments)
    ggx, ggw, ggb = (gradient if asked else None for gradient, asked in zip(incoming, ctx.mask, strict=True))
    g_dy = g_x = g_w = None
    if ctx.needs_input_grad[0]:
        terms = []
        if ggx is not None:
            terms.append(forward_operator(ggx, w, None, s))
        if ggw is not None:
            terms.append(forward_operator(x, ggw, None, s))
        if ggb is not None:
            terms.append(ggb.view(1, -1, 1, 1).expand_as(dy))
        g_dy = functools.reduce(torch.add, terms) if terms else None
    if ctx.needs_input_grad[1] and ggw is not None:
        g_x = backward_operator(dy, x, ggw, None, s, [True, False, False])[0]
    if ctx.needs_input_grad[2] and ggx is not None:
        g_w = backward_operator(dy, ggx, w, None, s, [False, True, False])[1]
    return (g_dy, g_x, g_w, None, *(None for _ in ctx.arguments))


torch.library.register_autograd(
    "jitconv::convolution_backward",
    _double_backward,
    setup_context=_setup_double_context,
    lib=_Shortcut(_convolution_backward_kernel),
)


# --- torch.func -------------------------------------------------------------------------------------------------------


class _Transformed(torch.autograd.Function):
    """The operator inside torch.func's transforms, for which `torch.library`'s autograd is too simple."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, settings: Settings) -> torch.Tensor:
        return torch.ops.jitconv.convolution(x, w, b, *settings)  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, w, b, settings = inputs
        _setup_context(ctx, (x, w, b, *settings), output)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        return (*_backward(ctx, dy)[:3], None)


class _TransformedBackward(torch.autograd.Function):
    """The gradients inside torch.func's transforms."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        settings: Settings,
        mask: tuple[bool, ...],
    ) -> tuple[torch.Tensor, ...]:
        gradients = torch.ops.jitconv.convolution_backward(dy, x, w, saved, *settings, output_mask=list(mask))
        return tuple(gradients)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        dy, x, w, saved, settings, mask = inputs
        _setup_double_context(ctx, (dy, x, w, saved, *settings), {"output_mask": mask}, output)

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor) -> tuple[Any, ...]:
        return (*_double_backward(ctx, *incoming)[:3], None, None, None)


def _is_transformed() -> bool:
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None


def forward_operator(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, s: Settings) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        refuse_tangents(x, w, b)
    if _is_transformed():
        return _Transformed.apply(x, w, b, s)  # type: ignore[no-any-return, no-untyped-call]
    return torch.ops.jitconv.convolution(x, w, b, *s)  # type: ignore[no-any-return]


def backward_operator(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, saved: torch.Tensor | None, s: Settings, mask: Sequence[bool]
) -> tuple[torch.Tensor, ...]:
    if _is_transformed():
        return _TransformedBackward.apply(dy, x, w, saved, s, tuple(mask))  # type: ignore[no-any-return, no-untyped-call]
    gradients = torch.ops.jitconv.convolution_backward(dy, x, w, saved, *s, output_mask=list(mask))
    return tuple(gradients)
