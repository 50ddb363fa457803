"""PyTorch's convolutions, computed by jitconv: layers, functions and operators.

>>> from jitconv.torch import Conv2d
>>> layer = Conv2d(64, 128, 3, padding=1, activation="relu")

Importing this module registers ``torch.ops.jitconv.convolution`` and ``torch.ops.jitconv.convolution_backward``.
"""

try:
    import torch
except ImportError as error:
    raise ImportError("jitconv.torch needs PyTorch 2.9 or later: pip install 'jitconv[torch]'") from error

if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 9):
    raise ImportError(
        f"jitconv.torch needs PyTorch 2.9 or later, and this is {torch.__version__}: pip install --upgrade torch"
    )

from jitconv.torch import _flops as _flops
from jitconv.torch import functional
from jitconv.torch._background import async_compile, set_async_compile
from jitconv.torch._config import cpu_policy, get_cpu_policy, set_cpu_policy
from jitconv.torch._convert import conversion, convert, revert
from jitconv.torch._convolution import forget_packed_weights
from jitconv.torch._enable import disable, enable
from jitconv.torch._explain import explain
from jitconv.torch._inductor import enable_inductor_autotuning
from jitconv.torch._plan import ColdKernelError
from jitconv.torch._prepare import prepare
from jitconv.torch._stats import stats
from jitconv.torch.modules import (
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    LazyConv1d,
    LazyConv2d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
)

__all__ = [
    "ColdKernelError",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "async_compile",
    "conversion",
    "convert",
    "cpu_policy",
    "disable",
    "enable",
    "enable_inductor_autotuning",
    "explain",
    "forget_packed_weights",
    "functional",
    "get_cpu_policy",
    "prepare",
    "revert",
    "set_async_compile",
    "set_cpu_policy",
    "stats",
]
