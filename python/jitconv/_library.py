"""The extension module, checked, and with NVRTC pointed at the CUDA wheels of this Python."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from pathlib import Path

try:
    from jitconv import _native
except ImportError as error:
    raise ImportError(
        "jitconv's extension module, jitconv/_native.abi3.so, is missing or cannot be loaded. It is part of the wheel "
        "for Linux with glibc: install that (`pip install --force-reinstall jitconv`), or build it from the "
        "repository with `pip install ./python`. Do not import from the source folder itself. "
        f"({error})"
    ) from error

_ABI_VERSION = 1

if _native.ABI_VERSION != _ABI_VERSION:
    raise ImportError(
        f"jitconv's Python files are written for version {_ABI_VERSION} of the library's interface, and "
        f"{_native.__file__} has version {_native.ABI_VERSION}: two installations are mixed. Remove both "
        "(`pip uninstall jitconv`, until it says that there is none) and install one."
    )

__version__ = _native.__version__
Kernel = _native.Kernel
Error = _native.Error
SpecError = _native.SpecError
UnsupportedError = _native.UnsupportedError
CompileError = _native.CompileError
CudaError = _native.CudaError
KernelFault = _native.KernelFault
InternalError = _native.InternalError
output_shape = _native.output_shape
current_arch = _native.current_arch
release_unused_kernels = _native.release_unused_kernels
statistics = _native.statistics


def _nvrtc_of_wheels() -> str | None:
    """Return the folder of NVRTC in the CUDA wheels that this interpreter imports, the newest version's first."""
    spec = importlib.util.find_spec("nvidia")
    for root in sorted(spec.submodule_search_locations or [] if spec else []):
        for folder in ("cu13/lib", "cuda_nvrtc/lib"):
            if any(Path(root, folder).glob("libnvrtc.so.1[23]")):
                return str(Path(root, folder))
    return None


_nvrtc_is_known = False


def _point_to_nvrtc() -> None:
    """Let the library find NVRTC in the wheels of this interpreter's path, which it cannot see by itself.

    It searches beside the interpreter's file and in activated environments, so it misses an environment that was not
    activated and folders in PYTHONPATH.
    """
    global _nvrtc_is_known  # noqa: PLW0603
    if _nvrtc_is_known:
        return
    _nvrtc_is_known = True
    if not os.environ.get("JITCONV_NVRTC_PATH"):
        folder = _nvrtc_of_wheels()
        if folder is not None:
            os.environ["JITCONV_NVRTC_PATH"] = folder


def compile(spec: object, arch: str | None = None) -> Kernel:
    """Compile one operation, or find it in memory or in the disk cache.

    Parameters
    ----------
    spec
        A `Spec`, or its line of text.
    arch
        ``None`` for the current GPU, ``"sm_90a"`` or another architecture, or ``"host"`` for this machine's CPU.

    Raises
    ------
    SpecError, CompileError, CudaError
        What include/jitconv/kernel.h says of ``jitconv::compile()``.
    """
    _point_to_nvrtc()
    return _native.compile(str(spec), arch)


def prepare(
    specs: Iterable[object],
    arch: str | None = None,
    threads: int = 0,
    progress: Callable[[int, int, int, str], object] | None = None,
) -> list[Kernel]:
    """Compile many operations in parallel.

    Parameters
    ----------
    specs
        A `Spec` or its line of text, for each operation.
    arch
        As of `compile`.
    threads
        How many are compiled at a time; 0 for as many as there are cores.
    progress
        Called as ``progress(done, total, index, origin)`` each time one is finished; ``origin`` is ``"memory"``,
        ``"disk"``, ``"compiler"`` or ``"failed"``.
    """
    _point_to_nvrtc()
    return _native.prepare([str(spec) for spec in specs], arch, threads, progress)
