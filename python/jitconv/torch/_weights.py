"""Weights as kernels read them, kept as long as the weights do not change."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from jitconv.torch._scratch import scratch

if TYPE_CHECKING:
    from jitconv.torch._plan import Plan


_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False)


class _Entry(NamedTuple):
    weight: weakref.ref[torch.Tensor]
    pointer: int
    version: int
    packed: torch.Tensor


class PackedWeights:
    """The packed (or, of channels_last weights, contiguous) form of each weight that one plan has met.

    An entry is valid while the weight (of a view, its base) lives, its version counter stands still, and its memory is
    the same. There is one for each stream, so that no stream reads what another may still be writing.
    """

    __slots__ = ("_dense", "_entries", "_plan", "useful")

    def __init__(self, plan: Plan, dense: bool) -> None:
        self._plan = plan
        self._dense = dense
        self._entries: dict[tuple[int, int, int | None], _Entry] = {}
        self.useful = plan.packed > 0 or not dense

    def find(self, w: torch.Tensor, stream: int | None) -> torch.Tensor | None:
        """Return the packed form of w, made now if need be; None if it must not be kept.

        It must not where nobody could notice a change: of inference tensors, which have no version counter, and in a
        CUDA graph, whose replays run no Python.
        """
        if (stream is not None and _capturing()) or w.is_inference():
            return None
        base = w._base
        owner, offset = (w, 0) if base is None else (base, int(w.storage_offset()))
        key = (id(owner), offset, stream)
        entry = self._entries.get(key)
        if (
            entry is not None
            and entry.weight() is owner
            and entry.version == w._version
            and entry.pointer == w.data_ptr()
        ):
            return entry.packed
        entries = self._entries
        packed = self._pack(w, stream)
        forget = weakref.ref(owner, lambda _: entries.pop(key, None))
        entries[key] = _Entry(forget, w.data_ptr(), w._version, packed)
        return packed

    def _pack(self, w: torch.Tensor, stream: int | None) -> torch.Tensor:
        dense = w if self._dense else w.contiguous()
        packed = scratch(self._plan.packed, w)
        if packed is None:
            return dense
        self._plan.kernel.pack_weights(stream, dense.data_ptr(), packed.data_ptr())
        return packed
