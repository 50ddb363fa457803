"""Settings of this process: where CPU tensors go, and the math mode that PyTorch asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import torch

from jitconv import _native

CpuPolicy: TypeAlias = Literal["torch", "host"]


def _checked(policy: str) -> CpuPolicy:
    if policy == "torch":
        return "torch"
    if policy == "host":
        return "host"
    raise ValueError(f"the policy for CPU tensors is {policy!r}, must be 'torch' or 'host'")


_cpu_policy: CpuPolicy = _checked(os.environ.get("JITCONV_CPU_POLICY") or "torch")
_native.serve_cpu(_cpu_policy == "host")


def get_cpu_policy() -> CpuPolicy:
    """Return where convolutions of CPU tensors are computed: ``"torch"`` or ``"host"``."""
    return _cpu_policy


def set_cpu_policy(policy: CpuPolicy) -> None:
    """Set where convolutions of CPU tensors are computed, for the whole process.

    Parameters
    ----------
    policy
        ``"torch"``: by PyTorch's own convolution. ``"host"``: by jitconv's host execution, which compiles the CUDA
        source for the CPU and checks every memory access. It is for tests, and some thousand times slower than a GPU.
        The environment variable ``JITCONV_CPU_POLICY`` sets the value at the start.
    """
    global _cpu_policy  # noqa: PLW0603
    _cpu_policy = _checked(policy)
    _native.serve_cpu(policy == "host")


@contextmanager
def cpu_policy(policy: CpuPolicy) -> Iterator[None]:
    """Set where convolutions of CPU tensors are computed inside a ``with`` block (see `set_cpu_policy`)."""
    before = _cpu_policy
    set_cpu_policy(policy)
    try:
        yield
    finally:
        set_cpu_policy(before)


def default_math() -> str:
    """Return the math mode for float32 tensors that PyTorch's settings ask for.

    ``torch.backends.cudnn.conv.fp32_precision``, which ``torch.backends.cudnn.allow_tf32`` sets as well: ``"tf32"`` is
    jitconv's ``"tf32"``, everything else is ``"fp32"``. ``"ieee"`` and ``"fp16x3"`` have to be asked for by ``math=``.
    """
    precision: str = torch._C._get_fp32_precision_getter("cuda", "conv")
    return "tf32" if precision == "tf32" else "fp32"
