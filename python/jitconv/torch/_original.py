"""PyTorch's own convolution, also while enable() has put jitconv in its place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Depth(threading.local):
    value = 0


_depth = _Depth()


@contextmanager
def original() -> Iterator[None]:
    """Leave ``aten::convolution`` and its backward to PyTorch inside a ``with`` block, in this thread."""
    _depth.value += 1
    try:
        yield
    finally:
        _depth.value -= 1


def is_wanted() -> bool:
    """Say whether this thread is inside `original`."""
    return _depth.value > 0
