"""The static part of a convolution, and the forward launch.

`Convolution` is what stays the same from call to call, and keeps a plan for each shape that it meets. Its `forward` and
`backward` take real tensors of four dimensions, or of three, which are images of one row, and launch. They know nothing
of autograd, autocast and dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from jitconv import Spec, UnsupportedError
from jitconv.spec import activation_name, math_name
from jitconv.torch import _gradients
from jitconv.torch._config import default_math
from jitconv.torch._plan import Plan, alignment_of, compile_for, dtype_name, is_elsewhere, stream_of
from jitconv.torch._scratch import scratch
from jitconv.torch._shapes import as_of, check_operands, images, memory_format, output_shape, strides_beside
from jitconv.torch._weights import PackedWeights

POLICIES = ("always", "auto")


class Settings(NamedTuple):
    """The arguments of ``torch.ops.jitconv.convolution`` that are no tensors; padding is top, bottom, left, right."""

    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    transposed: bool = False
    output_padding: tuple[int, ...] = (0, 0)
    groups: int = 1
    activation: str = "none"
    slope: float = 0.01
    clamp_min: float = 0.0
    clamp_max: float = 6.0
    math: str | None = None
    policy: str = "always"


@dataclass
class _Forward:
    """What a call of `Convolution.forward` needs to know of tensors of one shape."""

    plan: Plan
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    memory: torch.memory_format
    x_dense: bool
    w_dense: bool
    weights: PackedWeights


class Convolution:
    """The static part of a convolution, and the plans of the shapes that it has met.

    Use `convolution` to get one: equal settings share plans.
    """

    __slots__ = ("_forward", "gradients", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._forward: dict[Any, _Forward] = {}
        self.gradients: dict[Any, _gradients.Gradients] = {}

    def __reduce__(self) -> tuple[Callable[[Settings], Convolution], tuple[Settings]]:
        """Copy and pickle the settings alone: plans belong to this process."""
        return convolution, (self.settings,)

    def math(self, dtype: torch.dtype) -> str:
        """Return the math mode of a call: that of the settings, or what PyTorch's settings ask for."""
        return self.settings.math or (default_math() if dtype == torch.float32 else "fp32")

    def result_shape(self, x: torch.Tensor, w: torch.Tensor) -> tuple[int, int, int, int]:
        """Return the extents of the result."""
        s = self.settings
        return output_shape(x.shape, w.shape, s.stride, s.padding, s.dilation, s.transposed, s.output_padding, s.groups)

    def forward_spec(self, x: torch.Tensor, w: torch.Tensor, alignment: int, *, bias: bool, activation: bool) -> Spec:
        """Return the spec of the convolution; a transposed one is the data gradient of another."""
        return self._spec(
            x,
            w,
            alignment,
            operation="data_gradient" if self.settings.transposed else "forward",
            bias=bias,
            activation=self._activation_of(activation),
        )

    def dx_spec(self, x: torch.Tensor, w: torch.Tensor, alignment: int, *, derivative: bool) -> Spec:
        """Return the spec of dx; ``derivative``: dy is multiplied by that of the activation."""
        operation = "forward" if self.settings.transposed else "data_gradient"
        return self._spec(x, w, alignment, operation=operation, dy_activation=self._activation_of(derivative))

    def dw_spec(
        self, x: torch.Tensor, w: torch.Tensor, alignment: int, *, derivative: bool, bias: bool, dtype: torch.dtype
    ) -> Spec:
        """Return the spec of dw, and db where ``bias`` says so, which are of a type of their own."""
        return self._spec(
            x,
            w,
            alignment,
            operation="weight_gradient",
            bias=bias,
            dy_activation=self._activation_of(derivative),
            output_dtype="same" if dtype == x.dtype else "f32",
        )

    def _activation_of(self, applied: bool) -> str:
        return self.settings.activation if applied else "none"

    def _spec(self, x: torch.Tensor, w: torch.Tensor, alignment: int, **fields: Any) -> Spec:
        s = self.settings
        layout = "nhwc" if memory_format(x, w) == torch.channels_last else "nchw"
        return Spec(
            input=self.result_shape(x, w) if s.transposed else tuple(x.shape),
            weight=tuple(w.shape),
            stride=s.stride,
            padding=_spec_padding(s),
            dilation=s.dilation,
            groups=s.groups,
            dtype=dtype_name(x.dtype),
            input_layout=layout,
            output_layout=layout,
            math=self.math(x.dtype),
            slope=s.slope,
            clamp_min=s.clamp_min,
            clamp_max=s.clamp_max,
            alignment=alignment,
            **fields,
        )

    def forward(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool
    ) -> torch.Tensor:
        """Launch the convolution.

        Parameters
        ----------
        x : N, C, H, W or N, C, L; any strides
        w : K, C/groups, R, S; transposed C, K/groups, R, S; without R for an x without H
        b : K, or None
        activation
            Whether the settings' activation is applied.
        pack
            Whether w will be used again, so that its packed form is kept.

        Returns
        -------
        torch.Tensor
            N, K, P, Q or N, K, Q, in channels_last if x or w is.
        """
        device = x.get_device()
        if is_elsewhere(device):
            with torch.cuda.device(device):
                return self.forward(x, w, b, activation, pack)
        pointers = x.data_ptr() | w.data_ptr()
        bias = None
        if b is not None:
            pointers |= b.data_ptr()
            bias = (b.shape, b.stride(), b.dtype, b.get_device())
        key = (
            x.shape,
            x.stride(),
            x.dtype,
            device,
            w.shape,
            w.stride(),
            w.dtype,
            w.get_device(),
            bias,
            activation,
            pointers & 15,
            self.math(x.dtype),
        )
        found = self._forward.get(key)
        if found is None:
            check_operands(images(x), images(w), b, self.settings.transposed, self.settings.groups)
            if x.shape[0] == 0:
                return x.new_empty_strided(*self._result_layout(x, w))
            found = self._forward[key] = self._find(x, w, b, activation, alignment_of(pointers))
        return self._launch(found, x, w, b, stream_of(device), pack)

    def _find(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, alignment: int
    ) -> _Forward:
        shape, strides = self._result_layout(x, w)
        x, w = images(x), images(w)
        memory = memory_format(x, w)
        plan = compile_for(self.forward_spec(x, w, alignment, bias=b is not None, activation=activation), x.device)
        return _Forward(
            plan=plan,
            shape=shape,
            strides=strides,
            memory=memory,
            x_dense=x.is_contiguous(memory_format=memory),
            w_dense=w.is_contiguous(),
            weights=PackedWeights(plan, w.is_contiguous()),
        )

    def _result_layout(self, x: torch.Tensor, w: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the extents and strides of the result."""
        shape = self.result_shape(images(x), images(w))
        return as_of(x, shape), strides_beside(shape, x, w)

    def _launch(
        self,
        f: _Forward,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor | None,
        stream: int | None,
        pack: bool,
    ) -> torch.Tensor:
        plan = f.plan
        if not f.x_dense:
            x = images(x).contiguous(memory_format=f.memory)
        y = x.new_empty_strided(f.shape, f.strides)
        kept = f.weights.find(w, stream) if pack and f.weights.useful else None
        packed = None
        size = plan.workspace
        if kept is None:
            if not f.w_dense:
                w = w.contiguous()
        elif plan.packed > 0:
            packed, size = kept.data_ptr(), plan.packed_workspace
        else:
            w = kept
        if b is not None and not b.is_contiguous():
            b = b.contiguous()
        workspace = scratch(size, x) if size > 0 else None
        w_pointer = w.data_ptr() if packed is None else None
        b_pointer = None if b is None else b.data_ptr()
        workspace_pointer = None if workspace is None else workspace.data_ptr()
        if self.settings.transposed:
            plan.launch(stream, None, w_pointer, b_pointer, None, None, workspace_pointer, packed, x.data_ptr(),
                        y.data_ptr(), None, None, None)  # fmt: skip
        else:
            plan.launch(stream, x.data_ptr(), w_pointer, b_pointer, None, y.data_ptr(), workspace_pointer, packed,
                        None, None, None, None, None)  # fmt: skip
        return y

    def backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: tuple[bool, bool, bool],
        *,
        dtype: torch.dtype | None = None,
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Launch the gradients that are asked for (`_gradients.backward`)."""
        return _gradients.backward(self, dy, x, w, saved, mask, dtype or w.dtype)


def _spec_padding(s: Settings) -> tuple[int, ...]:
    """Return the padding of the convolution whose data gradient a transposed convolution is.

    Rows that output_padding adds beyond a stride are reached by no filter of that convolution, unless it has less
    padding there.
    """
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


_convolutions: dict[Settings, Convolution] = {}


def convolution(settings: Settings) -> Convolution:
    """Return the one `Convolution` of these settings.

    Raises
    ------
    ValueError
        If one of the settings' names is unknown.
    """
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
