"""A plan: the kernel of one operation on tensors of one shape, and what a call of it needs, worked out once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from jitconv import Kernel, Spec, UnsupportedError, compile
from jitconv.torch import _background, _stats

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}

_raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)
_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: 0)


class ColdKernelError(RuntimeError):
    """A kernel that is not compiled yet was needed while a CUDA graph was being captured."""


@dataclass
class Plan:
    """A kernel and its properties, each of which would cost a call to ask for."""

    kernel: Kernel
    launch: Callable[..., None] = field(init=False)
    workspace: int = field(init=False)
    packed_workspace: int = field(init=False)
    packed: int = field(init=False)

    def __post_init__(self) -> None:
        """Ask the kernel once."""
        self.launch = self.kernel.launch
        self.workspace = self.kernel.workspace_bytes
        self.packed_workspace = self.kernel.workspace_bytes_with_packed_weights
        self.packed = self.kernel.packed_weight_bytes


def dtype_name(dtype: torch.dtype) -> str:
    """Return the library's name of a type.

    Raises
    ------
    jitconv.UnsupportedError
        If there are no kernels for it.
    """
    if dtype not in DTYPES:
        raise UnsupportedError(
            f"jitconv convolves float32, float16 and bfloat16 tensors; this one is {dtype}. Convert it, or use "
            "torch.nn.functional for this layer."
        )
    return DTYPES[dtype]


def alignment_of(pointers: int) -> int:
    """Return the alignment that all addresses have whose bitwise or is given: a power of two, at most 16."""
    return pointers & -pointers if pointers & 15 else 16


@_background.allowed
@_stats.watched
def compile_for(spec: Spec, device: torch.device) -> Plan:
    """Compile for a tensor's device; for the CPU that is host execution.

    Raises
    ------
    ColdKernelError
        If the current stream is being captured: compiling would load a module, which a capture does not allow.
    """
    if device.type != "cuda":
        return Plan(compile(spec, "host"))
    with torch.cuda.device(device):
        if torch.cuda.is_current_stream_capturing():
            raise ColdKernelError(
                "jitconv met a convolution whose kernel is not compiled yet while a CUDA graph was being captured: "
                f"{spec}. Compile before the capture: run the model once on the same shapes, with backward if the "
                "graph has one, or call jitconv.torch.prepare(model, *example_inputs, backward=True)."
            )
        return Plan(compile(spec))


def stream_of(device: int) -> int | None:
    """Return PyTorch's current stream of a GPU, given by its number; None for the CPU, whose number is -1."""
    return _raw_stream(device) if device >= 0 else None


def on_default_stream(device: int) -> bool:
    """Say whether the current stream of a GPU, given by its number, is the default one; for the CPU it is."""
    return not stream_of(device)


@functools.cache
def device_count() -> int:
    """Return the number of GPUs."""
    return torch.cuda.device_count()


def is_elsewhere(device: int) -> bool:
    """Say whether a GPU, given by its number, is not the current one."""
    return device >= 0 and device_count() > 1 and _current_device() != device
