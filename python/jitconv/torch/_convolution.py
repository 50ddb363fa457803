"""The static part of a convolution and, for each shape that it meets, a plan: kernels and how to call them.

`Convolution` is what stays the same from call to call. `Convolution.forward` and `Convolution.backward` take real
tensors of four dimensions and launch. They know nothing of autograd, autocast and dispatch, which is _ops.py's matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch

from jitconv import Kernel, UnsupportedError, compile
from jitconv.spec import Spec, activation_name, math_name
from jitconv.torch import _activation
from jitconv.torch._config import default_math
from jitconv.torch._shapes import check_operands, dense_strides, is_channels_last, memory_format, output_shape
from jitconv.torch._scratch import scratch
from jitconv.torch._weights import PackedWeights

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
POLICIES = ("always", "auto")

Gradients: TypeAlias = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]

_raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)


@functools.cache
def _device_count() -> int:
    return torch.cuda.device_count()


class ColdKernelError(RuntimeError):
    """A kernel that is not compiled yet was needed while a CUDA graph was being captured."""


class Settings(NamedTuple):
    """The arguments of ``torch.ops.jitconv.convolution`` that are no tensors."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    transposed: bool = False
    output_padding: tuple[int, int] = (0, 0)
    groups: int = 1
    activation: str = "none"
    slope: float = 0.01
    clamp_min: float = 0.0
    clamp_max: float = 6.0
    math: str | None = None
    policy: str = "always"


@dataclass
class Plan:
    """One kernel and what a call of it needs, worked out once."""

    kernel: Kernel
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    memory: torch.memory_format
    x_dense: bool
    w_dense: bool
    launch: Callable[..., None] = field(init=False)
    workspace: int = field(init=False)
    packed_workspace: int = field(init=False)
    packed: int = field(init=False)

    def __post_init__(self) -> None:
        """Copy the kernel's properties, which would cost a call each."""
        self.launch = self.kernel.launch
        self.workspace = self.kernel.workspace_bytes
        self.packed_workspace = self.kernel.workspace_bytes_with_packed_weights
        self.packed = self.kernel.packed_weight_bytes


def alignment_of(pointers: int) -> int:
    """Return the alignment that all addresses have whose bitwise or is given: a power of two, at most 16."""
    return pointers & -pointers if pointers & 15 else 16


def _capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def compile_for(spec: Spec, device: torch.device) -> Kernel:
    """Compile for a tensor's device; for the CPU that is host execution.

    Raises
    ------
    ColdKernelError
        If the current stream is being captured: compiling would load a module, which a capture does not allow.
    """
    if device.type != "cuda":
        return compile(spec, "host")
    with torch.cuda.device(device):
        if _capturing():
            raise ColdKernelError(
                "jitconv met a convolution whose kernel is not compiled yet while a CUDA graph was being captured: "
                f"{spec}. Compile before the capture: run the model once on the same shapes, with backward if the "
                "graph has one, or call jitconv.torch.prepare(model, *example_inputs, backward=True)."
            )
        return compile(spec)


class Convolution:
    """The static part of a convolution, and the plans of the shapes that it has met.

    Use `convolution` to get one: equal settings share plans.
    """

    __slots__ = ("_data_plans", "_forward_plans", "_weight_plans", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._forward_plans: dict[Any, tuple[Plan, PackedWeights]] = {}
        self._data_plans: dict[Any, Plan] = {}
        self._weight_plans: dict[Any, Plan] = {}

    def __reduce__(self) -> tuple[Callable[[Settings], Convolution], tuple[Settings]]:
        """Copy and pickle the settings alone: plans belong to this process."""
        return convolution, (self.settings,)

    def math(self, dtype: torch.dtype) -> str:
        """Return the math mode of a call: that of the settings, or what PyTorch's settings ask for."""
        if self.settings.math is not None:
            return self.settings.math
        return default_math() if dtype == torch.float32 else "fp32"

    def result_shape(self, x: torch.Tensor, w: torch.Tensor) -> tuple[int, int, int, int]:
        """Return the extents of the result."""
        s = self.settings
        return output_shape(x.shape, w.shape, s.stride, s.padding, s.dilation, s.transposed, s.output_padding, s.groups)

    def spec(
        self, x: torch.Tensor, w: torch.Tensor, memory: torch.memory_format, alignment: int, **fields: Any
    ) -> Spec:
        """Return the spec of an operation of this convolution, without an epilogue."""
        if x.dtype not in DTYPES:
            raise UnsupportedError(
                f"jitconv convolves float32, float16 and bfloat16 tensors; this one is {x.dtype}. Convert it, or use "
                "torch.nn.functional for this layer."
            )
        s = self.settings
        shape = self.result_shape(x, w) if s.transposed else tuple(x.shape)
        layout = "nhwc" if memory == torch.channels_last else "nchw"
        return Spec(
            input=shape,
            weight=tuple(w.shape),
            stride=s.stride,
            padding=self._spec_padding(),
            dilation=s.dilation,
            groups=s.groups,
            dtype=DTYPES[x.dtype],
            input_layout=layout,
            output_layout=layout,
            math=self.math(x.dtype),
            slope=s.slope,
            clamp_min=s.clamp_min,
            clamp_max=s.clamp_max,
            alignment=alignment,
            **fields,
        )

    def _spec_padding(self) -> tuple[int, ...]:
        """Return the padding of the convolution whose data gradient a transposed convolution is.

        Rows that output_padding adds beyond a stride are reached by no filter of that convolution, unless it has less
        padding there.
        """
        s = self.settings
        if not s.transposed:
            return s.padding
        padding = list(s.padding)
        for axis in (0, 1):
            padding[2 * axis + 1] -= max(0, s.output_padding[axis] - (s.stride[axis] - 1))
            if padding[2 * axis + 1] < 0:
                raise UnsupportedError(
                    f"output_padding is {s.output_padding}: with stride {s.stride}, jitconv's transposed convolution "
                    f"takes at most stride - 1 + padding, which is {s.stride[axis] - 1 + s.padding[2 * axis + 1]} here"
                )
        return tuple(padding)

    # --- forward ------------------------------------------------------------------------------------------------------

    def forward(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool
    ) -> torch.Tensor:
        """Launch the convolution.

        Parameters
        ----------
        x : N, C, H, W, any strides
        w : K, C/groups, R, S; transposed C, K/groups, R, S
        b : K, or None
        activation
            Whether the settings' activation is applied.
        pack
            Whether w will be used again, so that its packed form is kept.

        Returns
        -------
        torch.Tensor
            N, K, P, Q, in channels_last if x or w is.
        """
        device = x.get_device()
        pointers = x.data_ptr() | w.data_ptr()
        if b is not None:
            pointers |= b.data_ptr()
        math = self.settings.math or (default_math() if x.dtype == torch.float32 else None)
        key = (
            x.shape,
            x.stride(),
            x.dtype,
            device,
            w.shape,
            w.stride(),
            w.dtype,
            w.get_device(),
            None if b is None else (b.shape, b.dtype, b.stride(), b.get_device()),
            activation,
            pointers & 15,
            math,
        )
        found = self._forward_plans.get(key)
        if found is None:
            check_operands(x, w, b, self.settings.transposed, self.settings.groups)
            if x.shape[0] == 0:
                memory = memory_format(x, w)
                shape = self.result_shape(x, w)
                return torch.empty_strided(shape, dense_strides(shape, memory), dtype=x.dtype, device=x.device)
            plan = self._plan_forward(x, w, b, activation, alignment_of(pointers))
            found = (plan, PackedWeights(plan))
            self._forward_plans[key] = found
        if device >= 0 and _device_count() > 1 and torch.cuda.current_device() != device:
            with torch.cuda.device(device):
                return self._launch_forward(*found, x, w, b, device, pack)
        return self._launch_forward(*found, x, w, b, device, pack)

    def _plan_forward(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, alignment: int
    ) -> Plan:
        memory = memory_format(x, w)
        spec = self.spec(
            x,
            w,
            memory,
            alignment,
            operation="data_gradient" if self.settings.transposed else "forward",
            bias=b is not None,
            activation=self.settings.activation if activation else "none",
        )
        shape = self.result_shape(x, w)
        return Plan(
            kernel=compile_for(spec, x.device),
            shape=shape,
            strides=dense_strides(shape, memory),
            memory=memory,
            x_dense=x.is_contiguous(memory_format=memory),
            w_dense=w.is_contiguous(),
        )

    def _launch_forward(
        self,
        plan: Plan,
        packed_weights: PackedWeights,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor | None,
        device: int,
        pack: bool,
    ) -> torch.Tensor:
        if not plan.x_dense:
            x = x.contiguous(memory_format=plan.memory)
        if b is not None and not b.is_contiguous():
            b = b.contiguous()
        y = torch.empty_strided(plan.shape, plan.strides, dtype=x.dtype, device=x.device)
        stream = _raw_stream(device) if device >= 0 else None
        packed = packed_weights.find(w, stream) if pack and packed_weights.useful else None
        if packed is not None and plan.packed > 0:
            workspace_bytes, w_pointer, packed_pointer = plan.packed_workspace, None, packed.data_ptr()
        else:
            if packed is not None:
                w = packed
            elif not plan.w_dense:
                w = w.contiguous()
            workspace_bytes, w_pointer, packed_pointer = plan.workspace, w.data_ptr(), None
        workspace = scratch(workspace_bytes, x.device)
        workspace_pointer = None if workspace is None else workspace.data_ptr()
        bias = None if b is None else b.data_ptr()
        if self.settings.transposed:
            plan.launch(
                stream, None, w_pointer, bias, None, None, workspace_pointer, packed_pointer, x.data_ptr(),
                y.data_ptr(), None, None, None,
            )  # fmt: skip
        else:
            plan.launch(
                stream, x.data_ptr(), w_pointer, bias, None, y.data_ptr(), workspace_pointer, packed_pointer, None,
                None, None, None, None,
            )  # fmt: skip
        return y

    # --- backward -----------------------------------------------------------------------------------------------------

    def backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: tuple[bool, bool, bool],
    ) -> Gradients:
        """Launch the gradients that are asked for.

        Parameters
        ----------
        dy : N, K, P, Q
            The gradient of the result.
        x, w
            The forward convolution's operands.
        saved : N, K, P, Q
            What the activation's derivative is computed from (`_activation.saves_result`); None without an activation.
        mask
            Whether dx, dw and db are wanted.

        Returns
        -------
        tuple
            dx, dw and db; None where the mask says so.
        """
        device = x.get_device()
        if device >= 0 and _device_count() > 1 and torch.cuda.current_device() != device:
            with torch.cuda.device(device):
                return self._backward(dy, x, w, saved, mask)
        return self._backward(dy, x, w, saved, mask)

    def _backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: tuple[bool, bool, bool],
    ) -> Gradients:
        transposed = self.settings.transposed
        # A kernel reads the derivative from `saved` only beside dy of a gradient; elsewhere PyTorch multiplies.
        if saved is not None and (transposed or not (mask[0] or mask[1])):
            dy, saved = _activation.gradient(dy, saved, self.settings), None
        if x.shape[0] == 0:
            return self._empty_gradients(x, w, mask)
        bias_in_kernel = mask[2] and mask[1] and not transposed
        dx = self._data_gradient(dy, x, w, saved) if mask[0] else None
        dw = db = None
        if mask[1]:
            dw, db = self._weight_gradient(dy, x, w, saved, bias_in_kernel)
        if mask[2] and not bias_in_kernel:
            if saved is not None:
                dy = _activation.gradient(dy, saved, self.settings)
            db = dy.sum((0, 2, 3))
        return dx, dw, db

    def _empty_gradients(self, x: torch.Tensor, w: torch.Tensor, mask: tuple[bool, bool, bool]) -> Gradients:
        filters = w.shape[1] * self.settings.groups if self.settings.transposed else w.shape[0]
        return (
            torch.empty_like(x) if mask[0] else None,
            torch.zeros(w.shape, dtype=w.dtype, device=w.device) if mask[1] else None,
            torch.zeros(filters, dtype=w.dtype, device=w.device) if mask[2] else None,
        )

    def _operand_key(
        self, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, saved: torch.Tensor | None
    ) -> tuple[Any, ...]:
        pointers = x.data_ptr() | w.data_ptr() | dy.data_ptr()
        if saved is not None:
            pointers |= saved.data_ptr()
        math = self.settings.math or (default_math() if x.dtype == torch.float32 else None)
        return (x.shape, x.stride(), x.dtype, x.get_device(), w.shape, w.stride(), dy.stride(), dy.dtype,
                saved is None or saved.stride(), pointers & 15, math)  # fmt: skip

    def _data_gradient(
        self, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, saved: torch.Tensor | None
    ) -> torch.Tensor:
        key = self._operand_key(dy, x, w, saved)
        plan = self._data_plans.get(key)
        memory = plan.memory if plan is not None else memory_format(x, w)
        if plan is None:
            self._check_gradient(dy, x, w)
            operation = "forward" if self.settings.transposed else "data_gradient"
            dy_activation = "none" if saved is None else self.settings.activation
            spec = self.spec(x, w, memory, alignment_of(key[-2]), operation=operation, dy_activation=dy_activation)
            shape = tuple(x.shape)
            plan = Plan(compile_for(spec, x.device), shape, dense_strides(shape, memory), memory,
                        dy.is_contiguous(memory_format=memory), w.is_contiguous())  # fmt: skip
            self._data_plans[key] = plan
        if not plan.x_dense:
            dy = dy.contiguous(memory_format=memory)
        if not plan.w_dense:
            w = w.contiguous()
        if saved is not None and not saved.is_contiguous(memory_format=memory):
            saved = saved.contiguous(memory_format=memory)
        dx = torch.empty_strided(plan.shape, plan.strides, dtype=x.dtype, device=x.device)
        workspace = scratch(plan.workspace, x.device)
        workspace_pointer = None if workspace is None else workspace.data_ptr()
        stream = _stream_of(x)
        if self.settings.transposed:
            plan.launch(stream, dy.data_ptr(), w.data_ptr(), None, None, dx.data_ptr(), workspace_pointer, None, None,
                        None, None, None, None)  # fmt: skip
        else:
            plan.launch(stream, None, w.data_ptr(), None, None, None, workspace_pointer, None, dy.data_ptr(),
                        dx.data_ptr(), None, None, None if saved is None else saved.data_ptr())  # fmt: skip
        return dx

    def _weight_gradient(
        self, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, saved: torch.Tensor | None, bias: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        key = (*self._operand_key(dy, x, w, saved), bias)
        plan = self._weight_plans.get(key)
        memory = plan.memory if plan is not None else memory_format(x, w)
        if plan is None:
            self._check_gradient(dy, x, w)
            dy_activation = "none" if saved is None else self.settings.activation
            spec = self.spec(x, w, memory, alignment_of(key[-3]), operation="weight_gradient", bias=bias,
                             dy_activation=dy_activation)  # fmt: skip
            shape = tuple(w.shape)
            plan = Plan(compile_for(spec, x.device), shape, dense_strides(shape, torch.contiguous_format), memory,
                        x.is_contiguous(memory_format=memory), dy.is_contiguous(memory_format=memory))  # fmt: skip
            self._weight_plans[key] = plan
        if not plan.x_dense:
            x = x.contiguous(memory_format=memory)
        if not plan.w_dense:
            dy = dy.contiguous(memory_format=memory)
        if saved is not None and not saved.is_contiguous(memory_format=memory):
            saved = saved.contiguous(memory_format=memory)
        dw = torch.empty(plan.shape, dtype=x.dtype, device=x.device)
        db = torch.empty(w.shape[0], dtype=x.dtype, device=x.device) if bias else None
        workspace = scratch(plan.workspace, x.device)
        workspace_pointer = None if workspace is None else workspace.data_ptr()
        if self.settings.transposed:  # of the convolution whose data gradient this is, dy is the input
            x, dy = dy, x
        plan.launch(_stream_of(x), x.data_ptr(), None, None, None, None, workspace_pointer, None, dy.data_ptr(), None,
                    dw.data_ptr(), None if db is None else db.data_ptr(),
                    None if saved is None else saved.data_ptr())  # fmt: skip
        return dw, db

    def _check_gradient(self, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> None:
        check_operands(x, w, None, self.settings.transposed, self.settings.groups)
        shape = self.result_shape(x, w)
        if tuple(dy.shape) != shape or dy.dtype != x.dtype or dy.device != x.device:
            raise ValueError(
                f"dy is {dy.dtype} of shape {tuple(dy.shape)} on {dy.device}, must be {x.dtype} of shape {shape} on "
                f"{x.device}"
            )


def _stream_of(x: torch.Tensor) -> int | None:
    return _raw_stream(x.get_device()) if x.is_cuda else None


_convolutions: dict[Settings, Convolution] = {}


def convolution(settings: Settings) -> Convolution:
    """Return the one `Convolution` of these settings."""
    found = _convolutions.get(settings)
    if found is None:
        found = _convolutions.setdefault(settings, Convolution(_checked(settings)))
    return found


def _checked(settings: Settings) -> Settings:
    if activation_name(settings.activation) != settings.activation:
        raise ValueError(f"activation is {settings.activation!r}, must be the library's name of it")
    math_name(settings.math)
    if settings.policy not in POLICIES:
        raise ValueError(f"policy is {settings.policy!r}, must be one of {', '.join(POLICIES)}")
    return settings


def is_dense(x: torch.Tensor) -> bool:
    """Say whether a tensor of four dimensions is dense in the memory format that PyTorch takes it for."""
    return x.is_contiguous(memory_format=torch.channels_last if is_channels_last(x) else torch.contiguous_format)
