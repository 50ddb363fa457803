"""PyTorch's convolution layers, computed by jitconv.

Each class is a subclass of PyTorch's of the same name: parameters, initialisation, ``state_dict``, hooks and pickling
are inherited. Only ``forward`` differs, and the keyword arguments at the end are new.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn
from torch.compiler import is_compiling

from jitconv.spec import activation_name, math_name
from jitconv.torch._convolution import POLICIES, Convolution
from jitconv.torch.functional import convolution_of, convolve_batched

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
]

_OWN = {"activation": None, "slope": 0.01, "clamp_min": 0.0, "clamp_max": 6.0, "math": None, "policy": "always"}
_SHAPING = frozenset((*_OWN, "stride", "padding", "padding_mode", "dilation", "groups", "kernel_size"))


class _Layer(nn.Module):
    """What the layers share: their own arguments, and the static part of the convolution, found once."""

    _dimensions: int
    _static: Convolution | None
    _is_plain = True
    __signature__: inspect.Signature | None = None

    # Of PyTorch's class.
    stride: tuple[int, ...]
    padding: Any
    padding_mode: str
    dilation: tuple[int, ...]
    groups: int
    kernel_size: tuple[int, ...]
    weight: nn.Parameter
    bias: nn.Parameter | None
    _reversed_padding_repeated_twice: list[int]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        own = {name: keywords.pop(name, default) for name, default in _OWN.items()}
        activation_name(own["activation"])
        math_name(own["math"])
        if own["policy"] not in POLICIES:
            raise ValueError(f"policy is {own['policy']!r}, must be one of {', '.join(POLICIES)}")
        super().__init__(*arguments, **keywords)
        for name, value in own.items():
            setattr(self, name, value)

    @classmethod
    def _signature(cls) -> inspect.Signature:
        """Return the parameters of PyTorch's constructor, and the own ones."""
        _, *theirs = inspect.signature(super().__init__).parameters.values()
        own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in _OWN.items()]
        return inspect.Signature([*theirs, *own], return_annotation=None)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; one that shapes the convolution makes `_static` be found again.

        The library's names for no activation become None, which `repr` and `revert` know.
        """
        if name in _SHAPING:
            self.__dict__.pop("_static", None)
        if name == "activation" and value in ("", "none"):
            value = None
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled layer. One that was PyTorch's gets the defaults of what it lacks."""
        super().__setstate__({**_OWN, **state})  # type: ignore[no-untyped-call]

    def _own(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _OWN)

    def _convolution(self) -> Convolution:
        if is_compiling():
            return self._find_convolution()
        static = self.__dict__.get("_static")
        if static is None:
            static = self.__dict__["_static"] = self._find_convolution()
        return static

    def _find_convolution(self) -> Convolution:
        padding = self.padding if self.padding_mode == "zeros" else 0
        return convolution_of(
            self._dimensions, self.kernel_size, self.stride, padding, self.dilation, self.groups, False, 0, *self._own()
        )

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Note whether a class has a `_conv_forward` of its own, and what its constructor takes."""
        super().__init_subclass__(**keywords)
        cls._is_plain = cls._conv_forward is _Layer._conv_forward
        cls.__signature__ = None  # that of a constructor of its own
        if cls.__init__ is _Layer.__init__ and issubclass(cls, nn.modules.conv._ConvNd):
            cls.__signature__ = cls._signature()

    def _call(self, input: torch.Tensor) -> torch.Tensor | None:
        """Return the result of a call whose shapes are known, with nothing in between; None if there is something."""
        own = self.__dict__
        static = own.get("_static")
        parameters = own["_parameters"]  # not by the search of nn.Module.__getattr__
        if (
            static is None
            or "weight" not in parameters
            or "bias" not in parameters
            or own["padding_mode"] != "zeros"
            or not self._is_plain
            or "_conv_forward" in own
        ):
            return None
        result: torch.Tensor | None = static.call(input, parameters["weight"], parameters["bias"], self._dimensions)
        return result

    def train(self, mode: bool = True) -> Self:
        """Set the mode. Another one makes the packed weights be forgotten: training may count no version of them."""
        static = self.__dict__.get("_static")
        if static is not None and mode != self.training:
            static.forget_weights()
        return super().train(mode)

    def __prepare_scriptable__(self) -> nn.Module:
        """Say to `torch.jit.script` that it cannot compile this layer.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            f"jitconv: torch.jit.script cannot compile {type(self).__name__}. Use torch.jit.trace, torch.export or "
            "torch.compile, or script the model that jitconv.torch.revert(model, inplace=False) returns."
        )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the convolution of an input with or without a batch."""
        if not is_compiling():
            y = self._call(input)
            if y is not None:
                return y
            leaf = _as_leaf(self, input)
            if leaf is not None:
                return leaf
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.padding_mode != "zeros":
            input = nn.functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return convolve_batched(input, weight, bias, self._convolution(), self._dimensions)

    def extra_repr(self) -> str:
        """Return PyTorch's text, and those of the own arguments that are not the default."""
        text: str = super().extra_repr()
        for name, default in _OWN.items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value!r}"
        return text


def _as_leaf(layer: nn.Module, input: Any, *arguments: Any) -> torch.Tensor | None:
    """Return the node of a call that `torch.fx` traces, as it makes them for layers of `torch.nn`.

    None if there is no tracer, if the layer is what is traced, and with hooks, which the tracer has called already. The
    convolution is a function in the graph then.
    """
    if not isinstance(input, fx.Proxy) or not isinstance(input.tracer, fx.Tracer):
        return None
    if layer is input.tracer.root or layer._forward_pre_hooks or layer._forward_hooks:
        return None
    name = input.tracer.path_of_module(layer)
    return input.tracer.create_proxy("call_module", name, (input, *arguments), {})  # type: ignore[no-any-return]


class _TransposedLayer(_Layer):
    output_padding: tuple[int, ...]
    _output_padding: Callable[..., list[int]]

    def _transposed(self, input: torch.Tensor, output_size: list[int] | None) -> torch.Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        if not is_compiling():
            y = self._call(input) if output_size is None else None
            if y is not None:
                return y
            leaf = _as_leaf(self, input, output_size)
            if leaf is not None:
                return leaf
        if output_size is None:
            c = self._convolution()
        else:
            c = self._find_transposed(
                self._output_padding(
                    input, output_size, self.stride, self.padding, self.kernel_size, self._dimensions, self.dilation
                )
            )
        return convolve_batched(input, self.weight, self.bias, c, self._dimensions)

    def _find_convolution(self) -> Convolution:
        return self._find_transposed(self.output_padding)

    def _find_transposed(self, output_padding: Any) -> Convolution:
        return convolution_of(
            self._dimensions, self.kernel_size, self.stride, self.padding, self.dilation, self.groups, True,
            tuple(output_padding), *self._own(),
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "output_padding":
            self.__dict__.pop("_static", None)
        super().__setattr__(name, value)


class Conv2d(_Layer, nn.Conv2d):  # type: ignore[misc]
    """`torch.nn.Conv2d`, with the activation in the same kernel.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        As of `torch.nn.Conv2d`.
    activation, slope, clamp_min, clamp_max, math, policy
        As of `jitconv.torch.functional.conv2d`.

    Attributes
    ----------
    weight : torch.nn.Parameter
        (K, C/groups, R, S).
    bias : torch.nn.Parameter or None
        (K,).

    Examples
    --------
    >>> layer = Conv2d(3, 8, 3, padding=1, activation="relu")
    >>> layer(torch.zeros(1, 3, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    _dimensions = 2


class Conv1d(_Layer, nn.Conv1d):  # type: ignore[misc]
    """`torch.nn.Conv1d`, with the activation in the same kernel. The other arguments are those of `Conv2d`."""

    _dimensions = 1


class ConvTranspose2d(_TransposedLayer, nn.ConvTranspose2d):  # type: ignore[misc]
    """`torch.nn.ConvTranspose2d`, with the activation in the same kernel. The other arguments are those of `Conv2d`."""

    _dimensions = 2

    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        """Return the transposed convolution of (N, C, H, W) or (C, H, W), of the size asked for."""
        return self._transposed(input, output_size)


class ConvTranspose1d(_TransposedLayer, nn.ConvTranspose1d):  # type: ignore[misc]
    """`torch.nn.ConvTranspose1d`, with the activation in the same kernel. The other arguments are those of `Conv2d`."""

    _dimensions = 1

    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        """Return the transposed convolution of (N, C, L) or (C, L), of the size asked for."""
        return self._transposed(input, output_size)


class LazyConv2d(_Layer, nn.LazyConv2d):  # type: ignore[misc]
    """`Conv2d` that takes ``in_channels`` from its first input."""

    cls_to_become = Conv2d
    _dimensions = 2


class LazyConv1d(_Layer, nn.LazyConv1d):  # type: ignore[misc]
    """`Conv1d` that takes ``in_channels`` from its first input."""

    cls_to_become = Conv1d
    _dimensions = 1


class LazyConvTranspose2d(_TransposedLayer, nn.LazyConvTranspose2d):  # type: ignore[misc]
    """`ConvTranspose2d` that takes ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d
    _dimensions = 2
    forward = ConvTranspose2d.forward


class LazyConvTranspose1d(_TransposedLayer, nn.LazyConvTranspose1d):  # type: ignore[misc]
    """`ConvTranspose1d` that takes ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose1d
    _dimensions = 1
    forward = ConvTranspose1d.forward
