"""The kernel of one operation on tensors of one shape, and what of PyTorch's state it depends on."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence

import torch

from jitconv import Kernel, Spec, UnsupportedError, compile
from jitconv.torch import _background, _stats

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}

_raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)
_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: 0)


class ColdKernelError(RuntimeError):
    """A kernel that is not compiled yet was needed while a CUDA graph was being captured."""


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


def alignment_of(tensors: Sequence[torch.Tensor | None]) -> int:
    """Return the alignment that the addresses of all tensors have: a power of two, at most 16."""
    return common_alignment(tensor.data_ptr() for tensor in tensors if tensor is not None)


def common_alignment(addresses: Iterable[int]) -> int:
    """Return the alignment that all addresses have: a power of two, at most 16."""
    bits = functools.reduce(operator.or_, addresses, 16)
    return bits & -bits


@_background.allowed
@_stats.watched
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
        if torch.cuda.is_current_stream_capturing():
            raise ColdKernelError(
                "jitconv met a convolution whose kernel is not compiled yet while a CUDA graph was being captured: "
                f"{spec}. Compile before the capture: run the model once on the same shapes, with backward if the "
                "graph has one, or call jitconv.torch.prepare(model, *example_inputs, backward=True)."
            )
        return compile(spec)


def on_default_stream(device: int) -> bool:
    """Say whether the current stream of a GPU, given by its number, is the default one; for the CPU it is."""
    return device < 0 or _raw_stream(device) == 0


@functools.cache
def device_count() -> int:
    """Return the number of GPUs."""
    return torch.cuda.device_count()


def is_elsewhere(device: int) -> bool:
    """Say whether a GPU, given by its number, is not the current one."""
    return device >= 0 and device_count() > 1 and _current_device() != device
