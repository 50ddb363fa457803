"""Types of the extension module; the C++ side is python/native/."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__version__: str
ABI_VERSION: int

class Error(RuntimeError):
    code: str
    field: str
    log: str

class SpecError(Error, ValueError): ...
class UnsupportedError(SpecError): ...
class CompileError(Error): ...
class CudaError(Error): ...
class KernelFault(Error): ...
class InternalError(Error): ...

class Kernel:
    @property
    def spec(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def plan(self) -> str: ...
    @property
    def explain(self) -> str: ...
    @property
    def cache_key(self) -> str: ...
    @property
    def compile_log(self) -> str: ...
    @property
    def image(self) -> bytes: ...
    @property
    def from_cache(self) -> bool: ...
    @property
    def workspace_bytes(self) -> int: ...
    @property
    def workspace_bytes_with_packed_weights(self) -> int: ...
    @property
    def packed_weight_bytes(self) -> int: ...
    def resources(self) -> list[dict[str, int]]: ...
    def pack_weights(self, stream: int | None, w: int | None, packed_w: int | None, /) -> None: ...
    def launch(
        self,
        stream: int | None,
        x: int | None,
        w: int | None,
        bias: int | None,
        residual: int | None,
        y: int | None,
        workspace: int | None,
        packed_w: int | None,
        dy: int | None,
        dx: int | None,
        dw: int | None,
        db: int | None,
        saved: int | None,
        /,
    ) -> None: ...

class ForwardCalls:
    def call(self, x: Tensor, w: Tensor, b: Tensor | None, dimensions: int, /) -> Tensor | None: ...
    def run(
        self, x: Tensor, w: Tensor, b: Tensor | None, activation: bool, pack: bool, casts: bool, /
    ) -> Tensor | None: ...
    def add(
        self,
        x: Tensor,
        w: Tensor,
        b: Tensor | None,
        activation: bool,
        casts: bool,
        kernel: Kernel,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dense_x: Callable[[Tensor], Tensor] | None,
        dense_w: Callable[[Tensor], Tensor] | None,
        dense_b: Callable[[Tensor], Tensor] | None,
        /,
    ) -> None: ...
    def share(
        self, other: ForwardCalls, x: Tensor, w: Tensor, b: Tensor | None, activation: bool, pack: bool, casts: bool, /
    ) -> None: ...
    def leave(
        self,
        function: Callable[[Tensor, Tensor, Tensor | None], Tensor],
        x: Tensor,
        w: Tensor,
        b: Tensor | None,
        activation: bool,
        pack: bool,
        casts: bool,
        /,
    ) -> None: ...
    def forget(self, reference: object, /) -> None: ...
    def forget_weights(self) -> None: ...
    def clear(self) -> None: ...

class GradientCalls:
    def run(
        self, dy: Tensor, x: Tensor, w: Tensor, saved: Tensor | None, mask: Sequence[bool], wide: bool, /
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None] | None: ...
    def add(
        self,
        dy: Tensor,
        x: Tensor,
        w: Tensor,
        saved: Tensor | None,
        mask: Sequence[bool],
        wide: bool,
        data: Kernel | None,
        weight: Kernel | None,
        dx_strides: tuple[int, ...],
        dw_strides: tuple[int, ...],
        db_shape: tuple[int, ...] | None,
        like: Tensor | None,
        dense_dy: Callable[[Tensor], Tensor] | None,
        dense_x: Callable[[Tensor], Tensor] | None,
        dense_w: Callable[[Tensor], Tensor] | None,
        dense_saved: Callable[[Tensor], Tensor] | None,
        bias_gradient: Callable[[Tensor, Tensor | None], Tensor] | None,
    ) -> None: ...
    def choose(
        self,
        other: GradientCalls,
        dy: Tensor,
        x: Tensor,
        w: Tensor,
        saved: Tensor | None,
        mask: Sequence[bool],
        wide: bool,
        part: Sequence[bool],
        by_pytorch: Callable[[Tensor, Tensor, Tensor, Tensor | None], Sequence[Tensor | None]] | None,
        /,
    ) -> None: ...
    def clear(self) -> None: ...

def forward_calls(
    owner: object, transposed: bool, follows_math: bool, is_choice: bool, has_activation: bool, saves_result: bool, /
) -> ForwardCalls: ...
def gradient_calls(transposed: bool, follows_math: bool, is_choice: bool, /) -> GradientCalls: ...
def function_forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor | None, convolution: object, /) -> Tensor: ...
def function_backward(ctx: Any, dy: Tensor, /) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]: ...
def bind_torch(**functions: Any) -> None: ...
def serve_cpu(wanted: bool, /) -> None: ...
def decline_calls(wanted: bool, /) -> None: ...
def compile(spec: str, arch: str | None = None) -> Kernel: ...
def prepare(
    specs: Iterable[str],
    arch: str | None = None,
    threads: int = 0,
    progress: Callable[[int, int, int, str], object] | None = None,
) -> list[Kernel]: ...
def output_shape(spec: str, /) -> tuple[int, int, int, int]: ...
def result_shape(spec: str, /) -> tuple[int, int, int, int]: ...
def canonical(spec: str, /) -> str: ...
def current_arch() -> str: ...
def statistics() -> dict[str, int]: ...
def release_unused_kernels() -> int: ...
