"""jitconv.conv2d for NumPy's arrays and whatever speaks the same protocols, and importing without PyTorch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import jitconv


def arrays(dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal(s).astype(dtype) for s in ((2, 4, 5, 6), (6, 2, 3, 2), (6,)))  # type: ignore[return-value]


def expected(x: Any, w: Any, b: Any, **arguments: Any) -> Any:
    tensors = (torch.from_numpy(np.ascontiguousarray(a)).double() for a in (x, w, b))
    return torch.nn.functional.conv2d(*tensors, **arguments).numpy()


def test_importing_imports_nothing_else() -> None:
    script = "import jitconv, sys; sys.exit(any(m in sys.modules for m in ('torch', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_numpy(dtype: Any) -> None:
    x, w, b = arrays(dtype)
    y = jitconv.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), groups=2, activation="relu")
    assert isinstance(y, np.ndarray)
    assert y.dtype == dtype
    wanted = expected(x, w, b, stride=(2, 1), padding=(1, 2), groups=2).clip(min=0)
    np.testing.assert_allclose(
        y, wanted, rtol=1e-2 if dtype == np.float16 else 1e-5, atol=1e-2 if dtype == np.float16 else 1e-5
    )


def test_channels_last_and_out() -> None:
    x, w, b = arrays()
    nhwc = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    y = jitconv.conv2d(nhwc, w, b, groups=2, padding=(1, 0, 0, 2))
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)))
    np.testing.assert_allclose(y, expected(padded, w, b, groups=2), rtol=1e-5, atol=1e-5)
    out = np.empty((2, 6, 3, 5), np.float32)
    assert jitconv.conv2d(x, w, b, groups=2, out=out) is out
    np.testing.assert_allclose(out, expected(x, w, b, groups=2), rtol=1e-5, atol=1e-5)


class OnlyDlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.tensor.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def test_dlpack() -> None:
    x, w, b = (torch.from_numpy(a).bfloat16() for a in arrays())
    out = torch.empty(2, 6, 3, 5, dtype=torch.bfloat16)
    jitconv.conv2d(OnlyDlpack(x), OnlyDlpack(w), OnlyDlpack(b), groups=2, out=OnlyDlpack(out))
    wanted = torch.nn.functional.conv2d(x.double(), w.double(), b.double(), groups=2)
    torch.testing.assert_close(out.double(), wanted, rtol=2e-2, atol=2e-2)


def test_strides_of_extents_of_1_may_be_any() -> None:
    x, w, b = (torch.from_numpy(a) for a in arrays())
    channel, filters = x[:1, 1:2], w[:, :1].contiguous()
    row, flat = x.contiguous(memory_format=torch.channels_last)[:1, :, 1:2], w[:, :, :1].repeat(1, 2, 1, 1)
    last = torch.empty(1, 6, 2, 5).contiguous(memory_format=torch.channels_last)
    for operands, out in (
        ((channel, w[:1, :1], b[:1]), torch.empty(1, 2, 3, 5)[:, 1:]),
        ((channel, filters[:1], b[::6]), torch.empty(1, 1, 3, 5)),
        ((channel, filters, b), torch.empty(1, 6, 3, 5)),
        ((channel, filters, b), torch.empty(1, 6, 3, 5).contiguous(memory_format=torch.channels_last)),
        ((row, flat, b), last[:, :, 1:]),
    ):
        jitconv.conv2d(*map(OnlyDlpack, operands), out=OnlyDlpack(out))
        torch.testing.assert_close(out, torch.nn.functional.conv2d(*operands), rtol=1e-5, atol=1e-5)


def test_dlpack_of_arrays_that_cannot_be_written() -> None:
    x, w, b = arrays()
    for array in (x, w, b):
        array.flags.writeable = False
    out = np.empty((2, 6, 3, 5), np.float32)
    jitconv.conv2d(OnlyDlpack(x), OnlyDlpack(w), OnlyDlpack(b), groups=2, out=OnlyDlpack(out))
    np.testing.assert_allclose(out, expected(*arrays(), groups=2), rtol=1e-5, atol=1e-5)


def test_dlpack_of_before_version_1() -> None:
    class Old(OnlyDlpack):
        def __dlpack__(self) -> Any:
            return self.tensor.__dlpack__()

    x, w, b = arrays()
    y = jitconv.conv2d(Old(x), Old(w), Old(b), groups=2, out=np.empty((2, 6, 3, 5), np.float32))
    np.testing.assert_allclose(y, expected(x, w, b, groups=2), rtol=1e-5, atol=1e-5)


def test_nothing_is_written_into_an_array_that_is_read_only() -> None:
    x, w, _ = arrays()
    out = np.zeros((2, 6, 3, 5), np.float32)
    out.flags.writeable = False
    for given in (out, OnlyDlpack(out)):
        with pytest.raises(ValueError, match="out is read-only"):
            jitconv.conv2d(x, w, groups=2, out=given)
    assert not out.any()


@pytest.mark.parametrize("one", [np.int64, np.uint8, torch.tensor])
def test_integers_of_other_libraries(one: Any) -> None:
    x, w, b = arrays()
    y = jitconv.conv2d(x, w, b, stride=one(2), padding=(one(1), 2), dilation=np.array([1, 2]), groups=one(2))
    wanted = expected(x, w, b, stride=2, padding=(1, 2), dilation=(1, 2), groups=2)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_padding_by_name() -> None:
    x, w, b = arrays()
    for padding, dilation in (("same", 1), ("same", (2, 2)), ("valid", 1)):
        y = jitconv.conv2d(x, w, b, padding=padding, dilation=dilation, groups=2)
        wanted = expected(x, w, b, padding=padding, dilation=dilation, groups=2)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_errors() -> None:
    x, w, b = arrays()
    for call, error, words in (
        (lambda: jitconv.conv2d([1.0], w), TypeError, "__dlpack__"),
        (lambda: jitconv.conv2d(x.astype(np.float64), w), TypeError, "<f8"),
        (lambda: jitconv.conv2d(x, w.astype(np.float16)), TypeError, "f16"),
        (lambda: jitconv.conv2d(x[..., ::2], w, groups=2), ValueError, "dense"),
        (lambda: jitconv.conv2d(x, w[0], groups=2), ValueError, "3 dimensions"),
        (lambda: jitconv.conv2d(x, w, b[:3], groups=2), ValueError, "bias"),
        (lambda: jitconv.conv2d(x, w), jitconv.SpecError, "weight"),
        (lambda: jitconv.conv2d(x, w, groups=True), TypeError, "groups is True, must be an integer"),
        (lambda: jitconv.conv2d(x, w, stride=(1, 2.0), groups=2), TypeError, "stride is 2.0, must be an integer"),
        (lambda: jitconv.conv2d(x, w, padding="full", groups=2), ValueError, "'full', must be 'same', 'valid' or"),
        (lambda: jitconv.conv2d(x, w, stride=2, padding="same", groups=2), ValueError, "strided"),
        (
            lambda: jitconv.conv2d(x, w, padding=(1, 2, 3), groups=2),
            ValueError,
            "padding is .* must be one integer or 2",
        ),
        (lambda: jitconv.conv2d(x, w, groups=2, out=np.empty((2, 6, 3, 4), np.float32)), ValueError, "out"),
        (lambda: jitconv.conv2d(OnlyDlpack(torch.from_numpy(x)), w, groups=2), ValueError, "out is needed"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_prepare_reports_progress() -> None:
    specs = [jitconv.Spec((1, 2, 4, 4), (k, 2, 3, 3)) for k in (1, 2)]
    seen: list[tuple[int, int, int, str]] = []
    kernels = jitconv.prepare(specs, "host", progress=lambda *what: seen.append(what))
    assert [done for done, *_ in seen] == [1, 2]
    assert {index for _, _, index, _ in seen} == {0, 1}
    assert all("family" in kernel.explain for kernel in kernels)

    def stop(*_: Any) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        jitconv.prepare(specs, "host", progress=stop)


def test_kernel_properties() -> None:
    kernel = jitconv.compile("input=1,2,4,4 weight=1,2,3,3", "host")
    assert jitconv.output_shape(kernel.spec) == (1, 1, 2, 2)
    assert "__global__" in kernel.source
    assert kernel.image.startswith(b"\x7fELF")
    assert kernel.resources()
    assert len(kernel.cache_key) == 64
    with pytest.raises(jitconv.SpecError, match="x is null") as caught:
        kernel.launch(*(None,) * 13)
    assert (caught.value.code, caught.value.field) == ("invalid_argument", "x")
    with pytest.raises(TypeError, match="13"):
        kernel.launch(None)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        type(kernel)()
