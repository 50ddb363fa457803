"""Scratch memory for launches, from PyTorch's allocator of the current stream."""

from __future__ import annotations

import torch

_ALIGNMENT = 256  # of workspaces and packed weights; PyTorch's CUDA allocator gives 512


def scratch(size: int, device: torch.device) -> torch.Tensor | None:
    """Return uninitialised bytes whose address is a multiple of 256; None for no bytes."""
    if size == 0:
        return None
    if device.type == "cuda":
        return torch.empty(size, dtype=torch.uint8, device=device)
    padded = torch.empty(size + _ALIGNMENT, dtype=torch.uint8, device=device)
    return padded[-padded.data_ptr() % _ALIGNMENT :][:size]
