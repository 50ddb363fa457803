"""Scratch memory for launches, from PyTorch's allocator of the current stream."""

from __future__ import annotations

import torch

_ALIGNMENT = 256  # of workspaces and packed weights; PyTorch's CUDA allocator gives 512


def scratch(size: int, like: torch.Tensor) -> torch.Tensor | None:
    """Return uninitialised memory on a tensor's device whose address is a multiple of 256; None for no bytes.

    It has the tensor's type on a GPU, because PyTorch takes twice as long to make a tensor of another one.
    """
    if size == 0:
        return None
    if like.is_cuda:
        return like.new_empty_strided((-(-size // like.itemsize),), (1,))
    padded = like.new_empty(size + _ALIGNMENT, dtype=torch.uint8)
    return padded[-padded.data_ptr() % _ALIGNMENT :][:size]
