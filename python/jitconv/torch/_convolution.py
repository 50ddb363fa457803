"""The static part of a convolution, and what the extension module has to know to launch it.

`Convolution` is what stays the same from call to call, and compiles for each shape that it meets. Its `forward` and
`backward` take real tensors of four dimensions, or of three, which are images of one row, and launch. They know nothing
of autograd, autocast and dispatch. What they do from the second call of a shape on is python/native/*_calls.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from jitconv import Spec, UnsupportedError, _native
from jitconv.spec import activation_name, math_name
from jitconv.torch import _activation, _gradients
from jitconv.torch._config import default_math
from jitconv.torch._gradients import Mask
from jitconv.torch._plan import alignment_of, compile_for, dtype_name, is_elsewhere
from jitconv.torch._shapes import (
    as_of,
    check_operands,
    densifier,
    images,
    memory_format,
    output_shape,
    own_format,
    strides_beside,
)

POLICIES = ("always", "auto")


def _declined(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, dimensions: int) -> torch.Tensor | None:
    """Stand in for `Convolution.call` where each call is decided by itself."""
    del x, w, b, dimensions
    return None


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


class Convolution:
    """The static part of a convolution, and the launches of the shapes that it has met.

    Use `convolution` to get one: equal settings share launches.

    Attributes
    ----------
    settings : Settings
    calls, gradient_calls
        The launches, which the extension module finds by the tensors' extents.
    call
        The whole of a call in plain eager mode: ``call(x, w, b, dimensions)`` is the result, with its activation and
        recorded by autograd, or None where `_eager.convolve` has to look further.
    """

    __slots__ = ("__weakref__", "call", "calls", "gradient_calls", "settings")

    #: Whether `calls` holds what was measured to be faster than PyTorch (`_policy.Choosing`), and not all there is.
    _is_choice = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        if not torch.compiler.is_dynamo_compiling():  # which knows no extension modules, and needs the settings alone
            follows_math = settings.math is None
            activation = (settings.activation != "none", _activation.saves_result(settings))
            self.calls = _native.forward_calls(self, settings.transposed, follows_math, self._is_choice, *activation)
            self.gradient_calls = _native.gradient_calls(settings.transposed, follows_math, self._is_choice)
            self.call = self.calls.call if settings.policy == "always" else _declined

    def forget(self) -> None:
        """Forget the shapes."""
        self.calls.clear()
        self.gradient_calls.clear()

    def forget_weights(self) -> None:
        """Forget the packed weights of all layers with these settings."""
        self.calls.forget_weights()

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

    def format_read(self, t: torch.Tensor, memory: torch.memory_format) -> torch.memory_format:
        """Return the memory format in which kernels read images beside a result of `memory`, without a copy if dense.

        Of groups, to which depthwise convolutions belong, kernels have one format for all.
        """
        return own_format(t, memory) if self.settings.groups == 1 else memory

    def forward_spec(self, x: torch.Tensor, w: torch.Tensor, alignment: int, *, bias: bool, activation: bool) -> Spec:
        """Return the spec of the convolution; a transposed one is the data gradient of another."""
        memory = memory_format(x, w)
        return self._spec(
            x,
            w,
            (self.format_read(images(x), memory), memory),
            alignment,
            operation="data_gradient" if self.settings.transposed else "forward",
            bias=bias,
            activation=self._activation_of(activation),
        )

    def dx_spec(self, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, alignment: int, *, derivative: bool) -> Spec:
        """Return the spec of dx; ``derivative``: dy is multiplied by that of the activation."""
        memory = memory_format(x, w)
        return self._spec(
            x,
            w,
            (memory, self.format_read(images(dy), memory)),
            alignment,
            operation="forward" if self.settings.transposed else "data_gradient",
            dy_activation=self._activation_of(derivative),
        )

    def dw_spec(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        alignment: int,
        *,
        derivative: bool,
        bias: bool,
        dtype: torch.dtype,
    ) -> Spec:
        """Return the spec of dw, and db where ``bias`` says so, which are of a type of their own."""
        memory = memory_format(x, w)
        return self._spec(
            x,
            w,
            (self.format_read(images(x), memory), self.format_read(images(dy), memory)),
            alignment,
            operation="weight_gradient",
            bias=bias,
            dy_activation=self._activation_of(derivative),
            output_dtype="same" if dtype == x.dtype else "f32",
        )

    def _activation_of(self, applied: bool) -> str:
        return self.settings.activation if applied else "none"

    def _spec(
        self, x: torch.Tensor, w: torch.Tensor, formats: tuple[torch.memory_format, ...], alignment: int, **fields: Any
    ) -> Spec:
        """Return a spec; `formats` are those of x and the result or of their gradients."""
        s = self.settings
        x, w = images(x), images(w)
        layouts = ["nhwc" if f == torch.channels_last else "nchw" for f in formats]
        input_layout, output_layout = reversed(layouts) if s.transposed else layouts
        return Spec(
            input=self.result_shape(x, w) if s.transposed else tuple(x.shape),
            weight=tuple(w.shape),
            stride=s.stride,
            padding=_spec_padding(s),
            dilation=s.dilation,
            groups=s.groups,
            dtype=dtype_name(x.dtype),
            input_layout=input_layout,
            output_layout=output_layout,
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
        return self._run(x, w, b, activation, pack, casts=False)

    def forward_cast(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, pack: bool) -> torch.Tensor:
        """Launch the convolution, with its activation, of w and b in the type of x; ``pack`` keeps them in it."""
        return self._run(x, w, b, True, pack, casts=True)

    def _run(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool, *, casts: bool
    ) -> torch.Tensor:
        """Launch the convolution; compile it first if the extents are new."""
        y = self.calls.run(x, w, b, activation, pack, casts)
        return self._first(x, w, b, activation, pack, casts=casts) if y is None else y

    def _first(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool, *, casts: bool
    ) -> torch.Tensor:
        """Launch the convolution of tensors whose extents are new, or which are on another device."""
        device = x.get_device()
        if is_elsewhere(device):
            with torch.cuda.device(device):
                return self._run(x, w, b, activation, pack, casts=casts)
        if not casts:
            check_operands(images(x), images(w), b, self.settings.transposed, self.settings.groups)
        else:
            cast = None if b is None else b.to(x.dtype)
            check_operands(images(x), images(w.to(x.dtype)), cast, self.settings.transposed, self.settings.groups)
        if x.shape[0] == 0:
            return x.new_empty_strided(*self._result_layout(x, w))
        self._make_known(x, w, b, activation, casts)
        return self._run(x, w, b, activation, pack, casts=casts)  # first again if PyTorch's settings have changed

    def _make_known(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, casts: bool
    ) -> None:
        """Compile for tensors of these extents, and make them known to `calls`."""
        shape, strides = self._result_layout(x, w)
        x4, w4 = images(x), images(w)
        memory = memory_format(x, w)
        spec = self.forward_spec(x, w, alignment_of((x, w, b)), bias=b is not None, activation=activation)
        self.calls.add(
            x, w, b, activation, casts, compile_for(spec, x.device), shape, strides,
            densifier(x4, x.dtype, self.format_read(x4, memory)), densifier(w4, x.dtype), densifier(b, x.dtype),
        )  # fmt: skip

    def _result_layout(self, x: torch.Tensor, w: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the extents and strides of the result."""
        shape = self.result_shape(images(x), images(w))
        return as_of(x, shape), strides_beside(shape, x, w)

    def backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: Mask,
        *,
        dtype: torch.dtype | None = None,
    ) -> _gradients.Results:
        """Launch the gradients that are asked for.

        Parameters
        ----------
        dy : N, K, P, Q or N, K, Q; any strides
            The gradient of the result.
        x, w
            The operands.
        saved : N, K, P, Q
            What the activation's derivative is computed from (`_activation.saves_result`); None without an activation.
        mask
            Whether dx, dw and db are wanted.
        dtype
            The type of dw and db, float32 if it is not that of w.

        Returns
        -------
        tuple
            dx, in channels_last if x or w is; dw, contiguous; db. None where the mask says so.
        """
        wide = dtype is not None and dtype != x.dtype
        found = self.gradient_calls.run(dy, x, w, saved, mask, wide)
        return _gradients.first(self, dy, x, w, saved, mask, wide) if found is None else found


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


def forget_packed_weights() -> None:
    """Forget the packed forms of all weights, so that the next calls pack them again.

    Call it after something has written to weights without PyTorch counting a version of them: ``weight.data``, a kernel
    of your own given ``weight.data_ptr()``, the replay of a CUDA graph of functions. Layers forget theirs when
    `train()` or `eval()` changes their mode, and keep none while there is a process group of `torch.distributed` or
    after their training step was captured into a CUDA graph.
    """
    for c in list(_convolutions.values()):
        c.forget_weights()


def _checked(settings: Settings) -> Settings:
    if activation_name(settings.activation) != settings.activation:
        raise ValueError(f"activation is {settings.activation!r}, must be the library's name of it")
    math_name(settings.math)
    if settings.policy not in POLICIES:
        raise ValueError(f"policy is {settings.policy!r}, must be one of {', '.join(POLICIES)}")
    return settings
