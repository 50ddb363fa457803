"""jitconv: 2-D convolutions compiled at run time for their exact shape.

``jitconv.torch`` has PyTorch's layers and functions; this module has what needs no PyTorch. Importing it imports
neither PyTorch nor NumPy, opens no driver and touches no GPU.
"""

from jitconv._array import conv2d
from jitconv._library import (
    CompileError,
    CudaError,
    Error,
    InternalError,
    Kernel,
    KernelFault,
    SpecError,
    UnsupportedError,
    __version__,
    compile,
    current_arch,
    output_shape,
    prepare,
    release_unused_kernels,
    statistics,
)
from jitconv.spec import Spec

__all__ = [
    "CompileError",
    "CudaError",
    "Error",
    "InternalError",
    "Kernel",
    "KernelFault",
    "Spec",
    "SpecError",
    "UnsupportedError",
    "__version__",
    "compile",
    "conv2d",
    "current_arch",
    "output_shape",
    "prepare",
    "release_unused_kernels",
    "statistics",
]
