"""Who computes a convolution where its layer leaves it open: policy="auto", and async_compile() for missing kernels.

_eager.py and _ops.py ask `decides` on each call, and where it is true call `choosing(c)` in the place of `c`. Each
direction of each shape is decided by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import jitconv
from jitconv.torch import _aten, _background, _stats
from jitconv.torch._choices import Choice, Choices
from jitconv.torch._convolution import Convolution, convolution
from jitconv.torch._gradients import Mask, Results
from jitconv.torch._original import original
from jitconv.torch._plan import DTYPES, ColdKernelError
from jitconv.torch._shapes import images, is_channels_last
from jitconv.torch._timing import median_ms

Run = Callable[[], Any]

#: What was measured, by a text that names all that a time depends on.
choices = Choices()


def decides(policy: str) -> bool:
    """Say whether a call is decided here, rather than jitconv's without question."""
    return policy != "always" or _background.enabled


class Choosing(Convolution):
    """A convolution each of whose operations is computed by jitconv or PyTorch."""

    __slots__ = ("_jitconv", "_known", "_linear")

    _is_choice = True

    def __init__(self, mine: Convolution) -> None:
        super().__init__(mine.settings)
        self._jitconv = mine
        self._linear = convolution(mine.settings._replace(activation="none"))
        self._known: dict[tuple[Any, ...], Choice] = {}

    def forget(self) -> None:
        """Forget what was chosen."""
        super().forget()
        self._known.clear()

    def _run(
        self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, activation: bool, pack: bool, *, casts: bool
    ) -> torch.Tensor:
        """Return the convolution; the arguments are those of `Convolution._run`.

        Under autocast PyTorch casts w and b itself, and keeps them as long as the autocast context lasts.
        """
        y = self.calls.run(x, w, b, activation, pack, casts)
        if y is not None:
            return y
        mine = partial(self._jitconv._run, x, w, b, activation, pack, casts=casts)
        by_pytorch = partial(_forward_by_pytorch, self._jitconv if activation else self._linear)
        what = ("forward", b is not None, activation, pack)
        choice = self._choice(what, (x, w), mine, partial(by_pytorch, x, w, b))
        result: torch.Tensor = _compute(choice, mine, partial(by_pytorch, x, w, b))
        if x.is_cuda and torch.cuda.is_current_stream_capturing():
            return result  # what was measured for other calls is not remembered as theirs
        if choice.takes_jitconv and choice is not _ALWAYS:
            self.calls.share(self._jitconv.calls, x, w, b, activation, pack, casts)
        elif not choice.takes_jitconv and not choice.reason:  # what jitconv cannot compute is counted at each call
            self.calls.leave(by_pytorch, x, w, b, activation, pack, casts)
        return result

    def backward(
        self,
        dy: torch.Tensor,
        x: torch.Tensor,
        w: torch.Tensor,
        saved: torch.Tensor | None,
        mask: Mask,
        *,
        dtype: torch.dtype | None = None,
    ) -> Results:
        """Return dx, dw and db, each by jitconv or PyTorch; db goes with dw."""
        wide = dtype is not None and dtype != x.dtype
        known = self.gradient_calls.run(dy, x, w, saved, mask, wide)
        if known is not None:
            return known
        mine = partial(self._jitconv.backward, dy, x, w, saved, dtype=dtype)
        by_pytorch = partial(_gradients_by_pytorch, self._jitconv, dtype or w.dtype)
        theirs = partial(by_pytorch, dy=dy, x=x, w=w, saved=saved)
        parts = [part for part in ((mask[0], False, False), (False, mask[1], mask[2])) if any(part)]
        what = ("backward", saved is not None, dtype)
        chosen = [
            (part, self._choice((*what, *part), (x, w, dy), partial(mine, part), partial(theirs, part)))
            for part in parts
        ]
        # One call shares what both parts need; a part whose kernel may be missing is served by itself.
        if not _background.enabled:
            chosen = _joined(chosen)
        gradients: list[torch.Tensor | None] = [None, None, None]
        for part, choice in chosen:
            results = _compute(choice, partial(mine, part), partial(theirs, part))
            gradients = [new if new is not None else old for new, old in zip(results, gradients, strict=True)]
        if not _background.enabled and all(choice is not _ALWAYS and not choice.reason for _, choice in chosen):
            of = {choice.takes_jitconv: part for part, choice in chosen}
            rest = partial(by_pytorch, of[False]) if False in of else None
            self.gradient_calls.choose(
                self._jitconv.gradient_calls, dy, x, w, saved, mask, wide, of.get(True, (False,) * 3), rest
            )
        return gradients[0], gradients[1], gradients[2]

    def _choice(self, what: tuple[Any, ...], tensors: tuple[torch.Tensor, ...], mine: Run, theirs: Run) -> Choice:
        """Return who computes: what is remembered, or else what is measured now on these tensors."""
        x = tensors[0]
        if self.settings.policy != "auto" or not x.is_cuda:
            return _ALWAYS
        math = self.math(x.dtype) if x.dtype in DTYPES else ""
        call = (
            what,
            math,
            torch.backends.cudnn.benchmark,
            torch.are_deterministic_algorithms_enabled(),
            x.get_device(),
            *((t.shape, t.stride(), t.dtype) for t in tensors),
        )
        choice = self._known.get(call)
        if choice is None:
            if torch.cuda.is_current_stream_capturing():
                # Nothing can be measured, and a kernel that is missing is an error that says so. Operators keep no
                # packed weights in a capture: what was measured with packed ones holds.
                packed = ((*what[:-1], True), *call[1:])
                return self._known.get(packed, _ALWAYS) if what[0] == "forward" else _ALWAYS
            key = _key(self, what, tensors, math)
            choice = choices.get(key)
            if choice is None:
                choice = measure(mine, theirs, x.device)
                choices.put(key, choice)
                _stats.log.info("policy='auto' takes %s: %s", "jitconv" if choice.takes_jitconv else "PyTorch", key)
            self._known[call] = choice
        return choice


def _joined(chosen: list[tuple[Mask, Choice]]) -> list[tuple[Mask, Choice]]:
    """Return the parts with those of one library made one."""
    of: dict[bool, tuple[Mask, Choice]] = {}
    for part, choice in chosen:
        (dx, dw, db), before = of.get(choice.takes_jitconv, ((False, False, False), choice))
        joined = (part[0] or dx, part[1] or dw, part[2] or db)
        of[choice.takes_jitconv] = joined, before if before.reason else choice
    return list(of.values())


def _forward_by_pytorch(c: Convolution, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    """Return the convolution by PyTorch."""
    with original():
        return _aten.forward_of_checked(c, x, w, b)


def _gradients_by_pytorch(
    c: Convolution,
    dtype: torch.dtype,
    mask: Mask,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
) -> Results:
    """Return the gradients by PyTorch, those of weights and bias in the type that is asked for."""
    with original():
        dx, dw, db = _aten.backward(c, dy, x, w, saved, mask)
        return dx, None if dw is None else dw.to(dtype), None if db is None else db.to(dtype)


_choosing: dict[Convolution, Choosing] = {}


def choosing(c: Convolution) -> Choosing:
    """Return what stands in the place of a convolution where somebody has to decide."""
    found = _choosing.get(c)
    if found is None:
        found = _choosing.setdefault(c, Choosing(c))
        if c.settings.policy == "auto":
            c.call = found.calls.call  # which knows the shapes where jitconv is the faster
    return found


def forget() -> None:
    """Forget the choices in memory; those on disk stay."""
    choices.clear()
    for c in _choosing.values():
        c.forget()


_ALWAYS = Choice(jitconv_ms=0.0, pytorch_ms=None, reason="policy='always'")


def measure(mine: Run, theirs: Run, device: torch.device) -> Choice:
    """Time both on the current stream. What one of them cannot compute is the other's."""
    with torch.cuda.device(device), _stats.asked_by("policy='auto'"), original(), _background.async_compile(False):
        runs, reason = {"pytorch": theirs, "jitconv": mine}, ""
        try:
            mine()
        except jitconv.UnsupportedError as error:
            del runs["jitconv"]
            reason = str(error)
        times = median_ms(runs, device=device)
    return Choice(times.get("jitconv"), times["pytorch"], reason)


def _key(c: Convolution, what: tuple[Any, ...], tensors: tuple[torch.Tensor, ...], math: str) -> str:
    """Name what a choice depends on: the operation, the machine and the libraries."""
    properties = torch.cuda.get_device_properties(tensors[0].device)
    shapes = [f"{'x'.join(map(str, t.shape))} {str(t.dtype).removeprefix('torch.')} {_order(t)}" for t in tensors]
    return "; ".join(
        (
            repr(what),
            *shapes,
            repr(c.settings._replace(policy="auto")),
            f"math {math}",
            f"benchmark {torch.backends.cudnn.benchmark}",
            f"deterministic {torch.are_deterministic_algorithms_enabled()}",
            properties.name,
            f"PyTorch {torch.__version__}",
            f"cuDNN {torch.backends.cudnn.version()}",
            f"jitconv {jitconv.__version__}",
        )
    )


def _order(t: torch.Tensor) -> str:
    if t.is_contiguous():
        return "contiguous"
    t = images(t)
    last = is_channels_last(t) and t.is_contiguous(memory_format=torch.channels_last)
    return "channels_last" if last else f"strides {t.stride()}"


def _compute(choice: Choice, mine: Run, theirs: Run) -> Any:
    if choice.takes_jitconv:
        try:
            return mine()
        except _background.StillCompilingError:
            _stats.count_served_by_pytorch("the kernel is being compiled")
        except ColdKernelError:
            if choice is not _ALWAYS or not _background.enabled:
                raise
            _stats.count_served_by_pytorch("a CUDA graph is being captured and the kernel is missing")
    elif choice.reason:
        _stats.count_served_by_pytorch(choice.reason)
    return theirs()
