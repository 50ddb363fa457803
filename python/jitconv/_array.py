"""``jitconv.conv2d``: convolutions of arrays of any library, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

from jitconv._arguments import Ints, integer, integers, padded_sides
from jitconv._library import Kernel, SpecError, compile, output_shape
from jitconv._memory import Memory, memory_of
from jitconv.spec import Spec, activation_name, math_name

_WORKSPACE_ALIGNMENT = 256


def _four_sides(padding: Ints | str, stride: tuple[int, ...], dilation: tuple[int, ...], w: Memory) -> tuple[int, ...]:
    """Return top, bottom, left and right, which may also be given themselves."""
    if not isinstance(padding, str) and isinstance(padding, Sized) and len(padding) == 4:
        return integers(padding, 4, "padding")
    return padded_sides(padding, stride, dilation, w.shape[2:])


def conv2d(
    x: Any,
    w: Any,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str = "fp32",
    out: Any = None,
    workspace: Any = None,
    cuda_stream: int | None = None,
) -> Any:
    """Convolve arrays of NumPy, CuPy, Numba, JAX or any library that speaks the same protocols.

    NumPy's arrays are computed by host execution, which checks every memory access and is slow. Those on a GPU are
    computed there, on the current device.

    Parameters
    ----------
    x : (N, C, H, W)
        float32, float16, or (by DLPack) bfloat16. Dense, or dense with the channels last in memory.
    w : (K, C/groups, R, S)
        Dense, of x's type.
    bias : (K,) or None
        Of x's type.
    stride, dilation
        One integer, or vertical and horizontal.
    padding
        One integer, two, or four: top, bottom, left, right; or ``"same"`` or ``"valid"``, as in PyTorch.
    groups
        Divides C and K.
    activation, slope, clamp_min, clamp_max
        As of ``jitconv.torch.functional.conv2d``.
    math
        For float32: ``"fp32"``, ``"tf32"``, ``"ieee"`` or ``"fp16x3"`` (docs/accuracy.md). The last is ``"fp32"``,
        faster on Hopper, but for an error of 2^-38 of the largest magnitudes of both operands for each product.
    out : (N, K, P, Q)
        Where the result goes, dense in x's order. Optional for NumPy and for libraries with ``__array_namespace__``
        and arrays that can be written, such as CuPy.
    workspace
        An array of bytes on the GPU, where the kernel needs one and x's library has no ``__array_namespace__``.
    cuda_stream
        The stream to launch on, as an integer; by default the one that x's interface names, else the default stream.

    Returns
    -------
    object
        ``out``, or a new array of x's library.

    Raises
    ------
    TypeError, ValueError, jitconv.SpecError
        If the arguments do not fit together.
    """
    given = {name: memory_of(name, array, cuda_stream) for name, array in (("x", x), ("w", w))}
    if bias is not None:
        given["bias"] = memory_of("bias", bias, cuda_stream)
    _check(given)
    result = None if out is None else memory_of("out", out, cuda_stream)
    layout = _layout(given["x"], result)
    strides, dilations = integers(stride, 2, "stride"), integers(dilation, 2, "dilation")
    spec = Spec(
        input=given["x"].shape,
        weight=given["w"].shape,
        stride=strides,
        padding=_four_sides(padding, strides, dilations, given["w"]),
        dilation=dilations,
        groups=integer(groups, "groups"),
        dtype=given["x"].dtype,
        input_layout=layout,
        output_layout=layout,
        math=math_name(math) or "fp32",
        bias=bias is not None,
        activation=activation_name(activation),
        slope=slope,
        clamp_min=clamp_min,
        clamp_max=clamp_max,
    )
    shape = output_shape(str(spec))
    if result is None:
        out = _empty(x, shape, layout)
        result = memory_of("out", out, cuda_stream)
    if result.read_only:
        raise ValueError("out is read-only, must be an array that can be written")
    if result.shape != shape or result.dtype != spec.dtype or result.on_gpu != given["x"].on_gpu:
        raise ValueError(f"out has shape {result.shape} and type {result.dtype}, must have {shape} and {spec.dtype}")
    if not result.is_dense(layout):
        raise ValueError(f"out is not dense in the order of x, {layout}")
    memories = [*given.values(), result]
    spec = _with_alignment(spec, memories)
    kernel = compile(spec, None if result.on_gpu else "host")
    stream = _stream(memories, cuda_stream) if result.on_gpu else None
    scratch, scratch_owner = _workspace(kernel, x, workspace, result.on_gpu)
    b = given.get("bias")
    kernel.launch(
        stream,
        given["x"].address,
        given["w"].address,
        None if b is None else b.address,
        None,
        result.address,
        scratch,
        *(None,) * 6,
    )
    del scratch_owner
    return out


def _dense_extent(shape: Sequence[int]) -> int:
    extent = 1
    for one in shape:
        extent *= one
    return extent


def _check(given: dict[str, Memory]) -> None:
    x = given["x"]
    for name, dimensions in (("x", 4), ("w", 4), ("bias", 1)):
        memory = given.get(name)
        if memory is None:
            continue
        if len(memory.shape) != dimensions:
            raise ValueError(f"{name} has {len(memory.shape)} dimensions, must have {dimensions}")
        if memory.dtype != x.dtype:
            raise TypeError(f"{name} has type {memory.dtype}, must have x's, {x.dtype}")
        if memory.on_gpu != x.on_gpu:
            raise ValueError(f"{name} and x are not both on the GPU, or both in ordinary memory")
        if name != "x" and not memory.is_dense():
            raise ValueError(f"{name} is not dense; its strides are {memory.strides}")
    if "bias" in given and given["bias"].shape != given["w"].shape[:1]:
        raise ValueError(f"bias has shape {given['bias'].shape}, must have {given['w'].shape[:1]}")


def _layout(x: Memory, out: Memory | None) -> str:
    """Return x's layout; where x is dense in both orders, one in which ``out`` is dense, too."""
    if not x.layouts:
        raise ValueError(f"x is dense neither as NCHW nor as NHWC; its strides are {x.strides}")
    fit = (layout for layout in x.layouts if out is None or len(out.shape) != 4 or out.is_dense(layout))
    return next(fit, x.layouts[0])


def _with_alignment(spec: Spec, memories: Sequence[Memory]) -> Spec:
    addresses = 0
    for memory in memories:
        addresses |= memory.address
    alignment = addresses & -addresses if addresses & 15 else 16
    return spec if alignment == 16 else Spec(**{**spec.__dict__, "alignment": alignment})


def _empty(x: Any, shape: tuple[int, ...], layout: str) -> Any:
    namespace = getattr(x, "__array_namespace__", None)
    if namespace is None:
        raise ValueError(f"out is needed: {type(x).__name__} has no __array_namespace__ to make an array with")
    extents = shape if layout == "nchw" else (shape[0], shape[2], shape[3], shape[1])
    empty = namespace().empty(extents, dtype=x.dtype, device=getattr(x, "device", None))
    return empty if layout == "nchw" else namespace().permute_dims(empty, (0, 3, 1, 2))


def _stream(memories: Sequence[Memory], wanted: int | None) -> int | None:
    if wanted is not None:
        return wanted
    streams = {memory.stream for memory in memories if memory.stream is not None}
    if len(streams) > 1:
        raise SpecError(f"the arrays belong to different streams, {sorted(streams)}: synchronise and pass cuda_stream")
    return streams.pop() if streams else None


def _workspace(kernel: Kernel, x: Any, given: Any, on_gpu: bool) -> tuple[int | None, object]:
    """Return the address of a workspace, and what keeps it alive until the launch."""
    size = kernel.workspace_bytes
    if size == 0:
        return None, None
    if not on_gpu:
        buffer = bytearray(size + _WORKSPACE_ALIGNMENT)
        import ctypes  # noqa: PLC0415

        start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        return start + -start % _WORKSPACE_ALIGNMENT, buffer
    if given is None:
        namespace = getattr(x, "__array_namespace__", None)
        if namespace is None:
            raise ValueError(f"workspace is needed: an array of {size + _WORKSPACE_ALIGNMENT} bytes on the GPU")
        given = namespace().empty(size + _WORKSPACE_ALIGNMENT, dtype=namespace().uint8)
    interface = given.__cuda_array_interface__
    if interface["data"][1]:
        raise ValueError("workspace is read-only, must be an array that can be written")
    start, bytes_given = interface["data"][0], _dense_extent(interface["shape"]) * int(interface["typestr"][2:])
    if bytes_given < size + -start % _WORKSPACE_ALIGNMENT:
        raise ValueError(f"workspace has {bytes_given} bytes, must have {size + _WORKSPACE_ALIGNMENT}")
    return start + -start % _WORKSPACE_ALIGNMENT, given
