"""How fast a GPU is at best, measured in the run that needs it, and the least time that bytes and FLOPs take then.

Used by bench/compare_pytorch.py, bench/compare_gradients.py and, from their JSON, bench/performance_table.py.
tools/roofline.cpp has the rates that jitconv-run reports, which has no matrix product to measure them with.
"""

import subprocess
from pathlib import Path

# Kernel families that multiply on tensor cores, by their rows of the table; all others use FMA.
TENSOR_CORES = {path.parent.name for path in (Path(__file__).parents[1] / "codegen").glob("*/family.cpp")
                if ".uses_tensor_cores = true" in path.read_text(encoding="utf-8")}
MATRIX = 8192


def median_seconds(torch, run, launches=7):
    """Of `run`, on the current stream, after two launches that are not counted."""
    run(), run()
    seconds = []
    for _ in range(launches):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3)
    return sorted(seconds)[launches // 2]


def fma_peak(torch):
    """FLOP/s of fp32 FMA at the highest clock that nvidia-smi reports, or None."""
    properties = torch.cuda.get_device_properties(0)
    lanes = 64 if (properties.major, properties.minor) in ((7, 5), (8, 0)) else 128
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    try:
        clock = float(subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]) * 1e6
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return None
    return 2 * lanes * properties.multi_processor_count * clock


def measure(torch):
    """Rates of the current device: "copy" in bytes/s (read and written) of 1 GiB, "tf32" and "half" in FLOP/s of square
    matrix products of random numbers, and "fma", which is not measured but the peak at the highest clock."""
    source = torch.randint(0, 255, (1 << 30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    rates = {"copy": 2 * source.numel() / median_seconds(torch, lambda: target.copy_(source)), "fma": fma_peak(torch)}
    del source, target
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    for name, dtype in (("tf32", torch.float32), ("half", torch.bfloat16)):
        a, b = ((torch.rand(MATRIX, MATRIX, device="cuda") * 2 - 1).to(dtype) for _ in range(2))
        c = torch.empty_like(a)
        rates[name] = 2 * MATRIX**3 / median_seconds(torch, lambda: torch.matmul(a, b, out=c))
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.cuda.empty_cache()
    return rates


def describe(rates):
    """In words: "copy 2.9 TB/s, matrix products 400 TFLOP/s in TF32 ..."."""
    fma = f"{rates['fma'] / 1e12:.1f} TFLOP/s" if rates["fma"] else "unknown"
    return (f"a copy at {rates['copy'] / 1e12:.2f} TB/s, matrix products at {rates['tf32'] / 1e12:.0f} TFLOP/s in TF32 "
            f"and {rates['half'] / 1e12:.0f} in bf16 (measured in this run), fp32 FMA peak {fma}")


def floor_ms(one, family, dtype, rates):
    """The larger of one's bytes and FLOPs over the rates of what a kernel family computes with on such tensors."""
    unit = "fma" if family not in TENSOR_CORES else "tf32" if dtype == "f32" else "half"
    arithmetic = one["flop"] / rates[unit] if rates[unit] else 0
    return max(one["bytes"] / rates["copy"], arithmetic) * 1e3
