"""Arrays of other libraries as addresses: ``__cuda_array_interface__``, ``__array_interface__`` and DLPack.

Reads the protocols; imports no library that speaks them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_CPU, _CUDA, _CUDA_MANAGED = 1, 2, 13  # DLDeviceType
_DLPACK_TYPES = {(2, 32): "f32", (2, 16): "f16", (4, 16): "bf16"}  # (DLDataTypeCode, bits)
_TYPESTRS = {"<f4": "f32", "<f2": "f16"}
_LEGACY_STREAM = 1  # how both protocols write the default stream
_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
_ORDERS = {"nchw": (0, 1, 2, 3), "nhwc": (0, 2, 3, 1)}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor, the first member of DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _VersionedTensor(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_DLPACK_VERSION = (1, 0)  # the first that says what may be written
_READ_ONLY = 1  # of the flags

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True)
class Memory:
    """An array's memory.

    Attributes
    ----------
    address : int
    shape, strides : tuple of int
        In elements.
    dtype : str
        ``"f32"``, ``"f16"`` or ``"bf16"``.
    on_gpu : bool
    stream : int or None
        The stream on which the array's contents become ready, where the protocol says so.
    owner : object
        Keeps the memory alive.
    read_only : bool
        Whether the protocol forbids to write it.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    on_gpu: bool
    stream: int | None
    owner: object
    read_only: bool

    @property
    def layouts(self) -> tuple[str, ...]:
        """Those of ``"nchw"`` and ``"nhwc"`` in whose order the array is dense; first that of its very strides."""
        dense = (layout for layout in _ORDERS if self.is_dense(layout))
        return tuple(sorted(dense, key=lambda layout: self.strides != _dense(self.shape, _ORDERS[layout])))

    def is_dense(self, layout: str = "") -> bool:
        """Say whether the array is dense in an order, by default that of its dimensions.

        Strides of extents of 1 lead nowhere, and a slice leaves any there.
        """
        dense = _dense(self.shape, _ORDERS.get(layout, range(len(self.shape))))
        return 0 in self.shape or all(
            extent == 1 or stride == wanted
            for extent, stride, wanted in zip(self.shape, self.strides, dense, strict=True)
        )


def _dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dimension in reversed(order):
        strides[dimension] = step
        step *= shape[dimension]
    return tuple(strides)


def memory_of(name: str, array: Any, stream: int | None) -> Memory:
    """Return the memory of an array.

    Parameters
    ----------
    name
        What errors call it.
    array
        An object with ``__cuda_array_interface__``, ``__array_interface__`` or ``__dlpack__``.
    stream
        The stream that will use it, for DLPack's producer; None for the default stream.

    Raises
    ------
    TypeError
        If it has none of these protocols, or elements of another type.
    """
    for protocol in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(array, protocol, None)
        if interface is not None:
            return _of_interface(name, array, interface, protocol == "__cuda_array_interface__")
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(name, array, stream)
    raise TypeError(
        f"{name} is a {type(array).__name__}, which has neither __cuda_array_interface__ nor __array_interface__ nor "
        "__dlpack__"
    )


def _of_interface(name: str, array: Any, interface: dict[str, Any], on_gpu: bool) -> Memory:
    dtype = _TYPESTRS.get(interface["typestr"])
    if dtype is None:
        raise TypeError(f"{name} has elements of type {interface['typestr']}, must have float32 or float16")
    shape = tuple(int(extent) for extent in interface["shape"])
    in_bytes = interface.get("strides")
    size = _BYTES[dtype]
    strides = _dense(shape, range(len(shape))) if in_bytes is None else tuple(s // size for s in in_bytes)
    address, read_only = interface["data"]
    return Memory(address or 0, shape, strides, dtype, on_gpu, interface.get("stream"), array, bool(read_only))


def _of_dlpack(name: str, array: Any, stream: int | None) -> Memory:
    on_gpu = array.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)
    wanted = {"stream": stream or _LEGACY_STREAM} if on_gpu else {}
    try:
        capsule = array.__dlpack__(**wanted, max_version=_DLPACK_VERSION)
    except TypeError:  # a producer from before there were versions
        capsule = array.__dlpack__(**wanted)
    tensor, read_only = _tensor_of(name, capsule)
    if tensor.device.type not in (_CPU, _CUDA, _CUDA_MANAGED):
        raise TypeError(f"{name} is on a device that is neither the CPU nor a CUDA GPU (DLPack's {tensor.device.type})")
    dtype = _DLPACK_TYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if dtype is None or tensor.dtype.lanes != 1:
        raise TypeError(f"{name} has elements that are not float32, float16 or bfloat16")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = _dense(shape, range(len(shape)))
    # The capsule frees what it owns when it is collected, unless someone consumes it. Nobody does.
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, shape, strides, dtype, on_gpu, None, (array, capsule), read_only)


def _tensor_of(name: str, capsule: object) -> tuple[_Tensor, bool]:
    """Return what a capsule of either form holds, and whether it is read-only, which the older form does not say."""
    if not _is_valid(capsule, b"dltensor_versioned"):
        return _Tensor.from_address(_get_pointer(capsule, b"dltensor")), False
    managed = _VersionedTensor.from_address(_get_pointer(capsule, b"dltensor_versioned"))
    if managed.major != _DLPACK_VERSION[0]:
        raise TypeError(f"{name} speaks version {managed.major} of DLPack, must speak {_DLPACK_VERSION[0]}")
    return managed.tensor, bool(managed.flags & _READ_ONLY)
