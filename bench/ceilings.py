"""How fast a GPU is at best, and the least time that bytes and FLOPs take at these rates.

Used by bench/compare_pytorch.py and bench/performance_table.py; tools/roofline.cpp says the same to jitconv-run.
"""

# Bytes/s of a copy; FLOP/s of fp32 FMA (peak) and of matrix products of 8192 x 8192 x 8192: measured.
H200 = {"copy": 4.23e12, "fma": 66.9e12, "tf32": 389e12, "half": 776e12}


def of(properties):
    """Rates of a device, None if they are not known, and where they are from."""
    if "H200" in properties.name and properties.multi_processor_count == 132:
        return H200, ("H200: copy measured at 4.23 TB/s, matrix products at 389 TFLOP/s in TF32 and 776 in bf16; fp32 FMA "
                      "peak 66.9 TFLOP/s at 1.98 GHz")
    clock = getattr(properties, "clock_rate", 0) * 1e3
    memory_clock = getattr(properties, "memory_clock_rate", 0) * 1e3
    width = getattr(properties, "memory_bus_width", 0)
    if not (clock and memory_clock and width):
        return None, "unknown: this PyTorch does not report clocks"
    lanes = 64 if (properties.major, properties.minor) in ((7, 5), (8, 0)) else 128
    clocks = properties.multi_processor_count * clock
    rates = {"copy": 2 * memory_clock * width / 8, "fma": 2 * lanes * clocks, "tf32": 2048 * clocks, "half": 4096 * clocks}
    return rates, (f"{properties.name}: from its clocks, {rates['copy'] / 1e12:.2f} TB/s and "
                   f"{rates['fma'] / 1e12:.1f} TFLOP/s")


def floor_ms(one, family, dtype, rates=H200):
    """The larger of one's bytes and FLOPs over the rates of what a kernel family computes with on such tensors."""
    unit = "fma" if family not in ("wgmma", "tensor", "pointwise") else "tf32" if dtype == "f32" else "half"
    return max(one["bytes"] / rates["copy"], one["flop"] / rates[unit]) * 1e3
