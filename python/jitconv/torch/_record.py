"""The operations that a model asks jitconv for, found by running it on fake tensors: no memory, no GPU, no kernel.

`Convolution` notes its calls here in place of launching, below the same autograd function, so what is noted is what
the real tensors will ask for. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from jitconv import output_shape
from jitconv.spec import Spec
from jitconv.torch._convolution import Convolution, Settings
from jitconv.torch._gradients import Mask, Results, reads_saved, zeros
from jitconv.torch._plan import common_alignment
from jitconv.torch._shapes import check_operands, images


@dataclass(frozen=True)
class Operation:
    """One operation of one layer, with fake tensors that stand for its operands."""

    layer: str
    direction: str
    """``"forward"``, ``"dx"`` or ``"dw"``, also of a transposed layer, whose forward is another operation."""
    spec: Spec
    settings: Settings
    x: torch.Tensor
    w: torch.Tensor
    bias: bool
    """Whether forward adds a bias, or dw has db beside it."""
    activation: bool
    """Whether forward applies the activation, or a gradient multiplies by its derivative."""


class RecordingConvolution(Convolution):
    """A convolution that notes what it is asked for and returns empty fake tensors."""

    __slots__ = ("_layer", "_note")

    def __init__(self, settings: Settings, layer: str, note: Callable[[Operation], None]) -> None:
        super().__init__(settings)
        self._layer, self._note = layer, note

    def forward(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool
    ) -> torch.Tensor:
        """Note a call of `Convolution.forward`, whose spec is that of its plan."""
        del pack
        check_operands(images(x), images(w), b, self.settings.transposed, self.settings.groups)
        layout = self._result_layout(x, w)
        spec = self.forward_spec(x, w, _alignment((x, w, b)), bias=b is not None, activation=activation)
        self._add("forward", spec, x, w, activation=spec.activation != "none")
        return x.new_empty_strided(*layout)

    def backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: Mask,
        *,
        dtype: torch.dtype | None = None,
    ) -> Results:
        """Note a call of `Convolution.backward`, whose specs are those of its plans."""
        dtype = dtype or w.dtype
        transposed = self.settings.transposed
        if not reads_saved(self.settings, mask):
            saved = None
        results = zeros(self, x, w, mask, dtype)
        alignment, derivative = _alignment((dy, x, w, saved)), saved is not None
        if mask[0]:
            self._add("dx", self.dx_spec(dy, x, w, alignment, derivative=derivative), x, w, activation=derivative)
        if mask[1]:
            bias = mask[2] and not transposed
            spec = self.dw_spec(dy, x, w, alignment, derivative=derivative, bias=bias, dtype=dtype)
            self._add("dw", spec, x, w, activation=derivative)
        return results

    def _add(self, direction: str, spec: Spec, x: torch.Tensor, w: torch.Tensor, *, activation: bool) -> None:
        if x.shape[0] != 0:
            output_shape(str(spec))  # raises what a call would; fake tensors know only negative extents
            self._note(Operation(self._layer, direction, spec, self.settings, x, w, spec.bias, activation))


def _alignment(tensors: Sequence[torch.Tensor | None]) -> int:
    """Return the alignment of tensors in storages that the allocator aligns."""
    return common_alignment(int(t.storage_offset()) * t.element_size() for t in tensors if t is not None)


class Recorder:
    """What a run has asked for so far, and the layer that runs."""

    def __init__(self) -> None:
        self.layer = ""
        self.found: list[Operation] = []

    def convolution(self, settings: Settings) -> RecordingConvolution:
        """Return what notes the calls of the layer that runs."""
        return RecordingConvolution(settings, self.layer, self.found.append)


#: The recorder that `_eager.convolve` asks, which is the one of the thread that called `record`.
active: Recorder | None = None


def record(model: nn.Module, inputs: Sequence[Any], keywords: Mapping[str, Any], *, backward: bool) -> list[Operation]:
    """Run a model on fake tensors and return the operations that it asked jitconv for, in order.

    Parameters
    ----------
    model : torch.nn.Module
        Stays as it is: parameters, buffers and attributes.
    inputs, keywords
        What it is called with. Tensors may be real or fake.
    backward
        Whether to run the backward pass of the sum of all results as well.

    Raises
    ------
    ValueError
        If the model's code depends on the values of tensors, or a lazy layer does not have its parameters yet.
    """
    global active  # noqa: PLW0603
    _parameters_are_there(model)
    fake = _fake_mode_of(inputs) or FakeTensorMode(allow_non_fake_inputs=True)

    def faked(value: Any) -> Any:
        is_real = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
        return fake.from_tensor(value) if is_real else value

    recorder = Recorder()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    state = {name: faked(tensor) for name, tensor in tensors.items()}
    arguments, options = pytree.tree_map(faked, (tuple(inputs), dict(keywords)))
    with _attributes_kept(model), _layers_named(model, recorder), fake, torch.set_grad_enabled(backward):
        active = recorder
        try:
            result = torch.func.functional_call(model, state, arguments, options)
            if backward:
                _run_backward(result)
        except (DataDependentOutputException, DynamicOutputShapeException, RuntimeError) as error:
            if not _reads_values(error):
                raise
            raise ValueError(
                f"{type(model).__name__} cannot run on fake tensors, because its code depends on the values of tensors "
                f"({error}): run one real step instead"
            ) from error
        finally:
            active = None
            torch.clear_autocast_cache()  # it may hold fake copies of weights
    return recorder.found


def _reads_values(error: Exception) -> bool:
    """Say whether an error of a run on fake tensors means that code asked for their values."""
    if isinstance(error, DataDependentOutputException | DynamicOutputShapeException):
        return True
    return "numpy() is not supported for tensor subclasses" in str(error)  # Tensor.numpy()'s own error


def _parameters_are_there(model: nn.Module) -> None:
    lazy = [name for name, parameter in model.named_parameters() if is_lazy(parameter)]
    lazy += [name for name, buffer in model.named_buffers() if is_lazy(buffer)]
    if lazy:
        raise ValueError(
            f"{type(model).__name__} has lazy layers, whose parameters are not there yet ({', '.join(lazy)}): call it "
            "once on a real input before"
        )


def _fake_mode_of(inputs: Sequence[Any]) -> FakeTensorMode | None:
    leaves = pytree.tree_leaves(inputs)
    return next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None)


def _run_backward(result: Any) -> None:
    parts = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if parts:
        torch.autograd.backward(parts, [torch.ones_like(part) for part in parts])


@contextmanager
def _attributes_kept(model: nn.Module) -> Iterator[None]:
    """Undo what forward() assigns to the attributes of modules: it would be fake tensors."""
    before = {module: dict(module.__dict__) for module in model.modules()}
    try:
        yield
    finally:
        for module, attributes in before.items():
            module.__dict__.clear()
            module.__dict__.update(attributes)


@contextmanager
def _layers_named(model: nn.Module, recorder: Recorder) -> Iterator[None]:
    """Let the recorder know which layer runs."""
    names = {module: name or type(module).__name__ for name, module in model.named_modules()}

    def enter(module: nn.Module, arguments: Any) -> None:
        del arguments
        recorder.layer = names[module]

    leaves = [module for module in names if next(module.children(), None) is None]
    handles = [module.register_forward_pre_hook(enter) for module in leaves]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
