"""Times of GPU work on the current stream, for the choice between two libraries and for explain()."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

import torch

# The host enqueues everything while the GPU spins this many cycles, so that kernels are timed and not Python's calls.
_SPIN_CYCLES = 400_000


def median_ms(
    runs: Mapping[str, Callable[[], object]], *, device: torch.device, repetitions: int = 7, warm_up: int = 2
) -> dict[str, float]:
    """Time several ways to compute one thing, in alternation, so that clocks and temperature treat all alike.

    Parameters
    ----------
    runs
        What is timed, by name. Each enqueues its work on the current stream of `device`.
    device
        A CUDA device.
    repetitions
        How often each is timed; the median counts.
    warm_up
        How often each runs before. cuDNN's search, if ``torch.backends.cudnn.benchmark`` asks for it, is in these.

    Returns
    -------
    dict
        Milliseconds by name.
    """
    for run in runs.values():
        for _ in range(warm_up):
            run()
    stream = torch.cuda.current_stream(device)
    marks: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []
    for _ in range(repetitions):
        for name, run in runs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(_SPIN_CYCLES)
            begin.record(stream)
            run()
            end.record(stream)
            marks.append((name, begin, end))
    stream.synchronize()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name, begin, end in marks:
        times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}
