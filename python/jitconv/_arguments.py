"""The numbers among a convolution's arguments, as PyTorch's functions take them, for code with and without PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex]


def integer(value: Any, name: str) -> int:
    """Return an integer of any library as Python's.

    Raises
    ------
    TypeError
        If it is none. Like PyTorch, bool is refused.
    """
    if not isinstance(value, bool):
        if isinstance(value, int):
            return value
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} is {value!r}, must be an integer")


def number(value: Any, name: str) -> float:
    """Return a number of any library as Python's.

    Raises
    ------
    TypeError
        If it is none.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, must be a number") from None


def integers(value: Ints, count: int, name: str) -> tuple[int, ...]:
    """Return one integer for each dimension; one that is given stands for all.

    Raises
    ------
    TypeError, ValueError
        If what is given is no integer, or their number is neither 1 nor `count`.
    """
    if isinstance(value, int):
        return (integer(value, name),) * count
    if isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, must be one integer or {count}")
    try:
        items: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    except TypeError:  # no sequence, or an array without dimensions
        return (integer(value, name),) * count
    values = tuple(integer(item, name) for item in items)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise ValueError(f"{name} is {values}, must be one integer or {count}")
    return values


def padded_sides(
    padding: Ints | str, stride: tuple[int, ...], dilation: tuple[int, ...], kernel: Sequence[int]
) -> tuple[int, ...]:
    """Return before and after of each dimension, as PyTorch understands ``padding``.

    Parameters
    ----------
    padding
        One integer, one for each dimension, ``"valid"`` or ``"same"``.
    stride, dilation
        One integer for each dimension.
    kernel
        The filter's extents; only ``"same"`` reads them.

    Raises
    ------
    TypeError, ValueError
        If ``padding`` is none of these, or ``"same"`` with a stride.
    """
    count = len(stride)
    if not isinstance(padding, str):
        return tuple(side for p in integers(padding, count, "padding") for side in (p, p))
    if padding == "valid":
        return (0, 0) * count
    if padding != "same":
        raise ValueError(f"padding is {padding!r}, must be 'same', 'valid' or integers")
    if any(s != 1 for s in stride):
        raise ValueError(f"padding='same' is not supported for strided convolutions; stride is {stride}")
    sides: list[int] = []
    for d, k in zip(dilation, kernel, strict=True):
        total = d * (k - 1)
        sides += [total // 2, total - total // 2]
    return tuple(sides)
