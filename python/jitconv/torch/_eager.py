"""What functions and layers call: the kernels in plain eager mode, the operators everywhere else.

A call of a Python operator costs several microseconds in the dispatcher. So `convolve` calls the operator only where
something would see it: a transform, a mode, a trace, a profiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling
from torch.multiprocessing.reductions import StorageWeakRef

from jitconv import _native
from jitconv.torch import _activation, _policy, _record
from jitconv.torch._autograd import backward_operator, forward_operator
from jitconv.torch._convolution import Convolution, Settings
from jitconv.torch._gradients import Mask
from jitconv.torch._ops import autocast, uses_kernels
from jitconv.torch._plan import DTYPES, device_count
from jitconv.torch._shapes import check_operands, images


class _Eager(torch.autograd.Function):
    """The convolution with gradients, without the dispatcher.

    Under autocast w and b are cast in here, which spares autograd two nodes each way, and their gradients come in their
    own type without having been rounded to the cast one.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution) -> torch.Tensor:
        ctx.convolution = c
        used = _cast(w, x.dtype)
        bias = None if b is None else _cast(b, x.dtype)
        activation = c.settings.activation
        applied = activation != "none" and _activation.saves_result(c.settings)
        y = c.forward(x, used, bias, applied, False)
        saved = None if activation == "none" else y
        if saved is not None and not applied:
            y = _activation.apply(y, c.settings)
        # What FunctionCtx.save_for_backward does.
        if used is w:
            ctx.to_save = (x, w) if saved is None else (x, w, saved)
        else:
            ctx.to_save = (x, w, saved, used)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        return _backward(ctx, dy, ctx.saved_tensors)


def _backward(ctx: Any, dy: torch.Tensor, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    """Return what autograd asks of `_Eager`, from the tensors that it has saved, which may be unpacked only once."""
    x, w, *rest = tensors
    saved = rest[0] if rest else None
    c: Convolution = ctx.convolution
    mask = ctx.needs_input_grad[:3]
    # With create_graph=True, by compiled autograd, under vmap, and where a hook of autograd has put something else in
    # the place of an operand.
    if torch.is_grad_enabled() or is_dynamo_compiling() or (_record.active is None and not _is_plain(dy, x, w, saved)):
        return _by_backward_operator(c, dy, x, w, saved, mask)
    if len(rest) < 2:
        return (*c.backward(dy, x, w, saved, mask), None)
    return (*c.backward(dy, x, rest[1], saved, mask, dtype=torch.float32), None)  # autograd casts to another type


def _cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return an operand in the type of x, which is autocast's. As there, float64 stays, which is an error later."""
    return t.to(dtype) if t.is_floating_point() and t.dtype != torch.float64 else t


def _by_backward_operator(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
) -> tuple[Any, ...]:
    """Return what `_backward` does, by the operator, which autograd and transforms see."""
    x4 = images(x if x.dim() == 4 else x.contiguous())
    operands = (images(dy), x4, images(w.to(x.dtype)), None if saved is None else images(saved))
    gradients = backward_operator(*operands, c.settings, mask)
    dx, dw, db = (g if asked else None for g, asked in zip(gradients, mask, strict=True))
    return (
        None if dx is None else dx.view_as(x),
        None if dw is None else dw.view_as(w).to(w.dtype),
        None if db is None else db.to(w.dtype),
        None,
    )


class _Known(_Eager):
    """`_Eager` of shapes that the extension module knows, without Python; what it does not know is `_Eager`'s."""

    forward: Any = staticmethod(_native.function_forward)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        if is_dynamo_compiling():  # compiled autograd, which cannot look into the extension module
            return _Eager.backward(ctx, dy)
        return _native.function_backward(ctx, dy)


# What Function.apply ends in. It looks for transforms before, as _is_plain does.
_apply = super(torch.autograd.Function, _Eager).apply

# Of these, each returns something true where it would notice an operator.
_NOTICING: tuple[Callable[[], Any], ...] = (
    torch._C._len_torch_dispatch_stack,
    torch._C._len_torch_function_stack,
    torch._C._functorch.peek_interpreter_stack,
    torch._C._get_tracing_state,
    torch._C._autograd._profiler_enabled,
)
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_distributed() -> bool:
    """Say whether there is a process group: collectives, those of FSDP too, count no version of what they write."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    return c10d is not None and c10d.is_initialized()


def bind(exchange_api: object) -> None:
    """Hand the extension module what its calls need of PyTorch; without DLPack's interface it reads attributes."""
    _native.bind_torch(
        exchange_api=exchange_api,
        tensor=torch.Tensor,
        parameter=torch.nn.Parameter,
        dtypes=tuple(DTYPES),
        noticing=_NOTICING,
        forward_ad=forward_ad,
        any_autocast=torch._C._is_any_autocast_enabled,
        autocast_enabled=torch.is_autocast_enabled,
        autocast_dtype=torch.get_autocast_dtype,
        grad_enabled=torch.is_grad_enabled,
        is_capturing=getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False),
        device_count=device_count,
        current_device=getattr(torch._C, "_cuda_getDevice", lambda: 0),
        current_stream=getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0),
        fp32_precision=torch._C._get_fp32_precision_getter,
        benchmarks=torch._C._get_cudnn_benchmark,
        is_deterministic=torch._C._get_deterministic_algorithms,
        new_empty_strided=torch.Tensor.new_empty_strided,
        is_neg=torch.Tensor.is_neg,
        is_inference=torch.Tensor.is_inference,
        storage=torch.Tensor.untyped_storage,
        weak_storage=StorageWeakRef,
        is_distributed=_is_distributed,
        apply=super(torch.autograd.Function, _Known).apply,
        forward=_Eager.forward,
        backward=_backward,
    )


bind(getattr(torch.Tensor, "__dlpack_c_exchange_api__", None))


def _is_plain(*tensors: torch.Tensor | None) -> bool:
    """Say whether nothing would see the operator if it were called, and the tensors' memory holds their values."""
    return (
        all(type(t) in _PLAIN and not t.is_neg() and _has_memory(t) for t in tensors if t is not None)
        and not any(noticing() for noticing in _NOTICING)
        and forward_ad._current_level < 0
    )


def _has_memory(t: torch.Tensor) -> bool:
    """Say whether a tensor has memory of its own, other than sparse ones, zeros to be made, and those of transforms."""
    try:
        return t.data_ptr() != 0 or t.numel() == 0
    except RuntimeError:
        return False


def _by_operator(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, settings: Settings) -> torch.Tensor:
    if x.dim() == 3:
        return _by_operator(images(x.contiguous()), images(w), b, settings).squeeze(2)  # as PyTorch does
    if settings.activation == "none" or _activation.saves_result(settings) or _grad_is_off(x, w, b):
        return forward_operator(x, w, b, settings)
    # z is kept for the gradient, which the operator would have to compute again.
    return _activation.apply(forward_operator(x, w, b, settings._replace(activation="none")), settings)


def convolve(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution) -> torch.Tensor:
    """Return a convolution of images or sequences.

    Parameters
    ----------
    x : N, C, H, W or N, C, L
    w : K, C/groups, R, S; transposed C, K/groups, R, S; without R for sequences
    b : K, or None
    """
    settings = c.settings
    recorder = _record.active
    if recorder is not None and not torch.compiler.is_compiling():
        c = recorder.convolution(settings)
    elif torch.compiler.is_compiling() or not _is_plain(x, w, b) or not uses_kernels(x):
        return _by_operator(x, w, b, settings)
    elif _policy.decides(settings.policy):
        c = _policy.choosing(c)
    device = x.device.type
    recorded = not _grad_is_off(x, w, b)
    if torch.is_autocast_enabled(device):
        x = autocast(x, device)
        if not recorded or x.dtype == torch.float64:
            if recorder is None and all(t is None or t.dtype in DTYPES for t in (x, w, b)):
                return c.forward_cast(x, w, b, pack=not torch.is_grad_enabled())
            w, b = autocast(w, device), None if b is None else autocast(b, device)
    elif w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
        check_operands(images(x), images(w), b, settings.transposed, settings.groups)  # raises
    if recorded:
        apply = _apply if recorder is None else _Eager.apply
        return apply(x, w, b, c)  # type: ignore[no-any-return, no-untyped-call]
    return c.forward(x, w, b, activation=True, pack=not torch.is_grad_enabled())


def _grad_is_off(*tensors: torch.Tensor | None) -> bool:
    return not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in tensors)
