"""PyTorch's own convolution, also while enable() has put jitconv in its place."""

from __future__ import annotations

import threading


class _Depth(threading.local):
    value = 0


_depth = _Depth()


class _Original:
    """A context, without the generator that contextlib would make in each call."""

    def __enter__(self) -> None:
        _depth.value += 1

    def __exit__(self, *exception: object) -> None:
        _depth.value -= 1


_ORIGINAL = _Original()


def original() -> _Original:
    """Leave ``aten::convolution`` and its backward to PyTorch inside a ``with`` block, in this thread."""
    return _ORIGINAL


def is_wanted() -> bool:
    """Say whether this thread is inside `original`."""
    return _depth.value > 0
