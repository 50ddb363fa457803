"""How fast an H200 is at best, measured, and the least time that bytes and FLOPs take at these rates.

Used by bench/compare_pytorch.py and bench/performance_table.py; tools/roofline.cpp says the same to jitconv-run.
"""

COPY = 4.23e12  # bytes/s of a copy
FMA = 66.9e12  # FLOP/s, fp32, peak at 1.98 GHz
MATRIX = {"tf32": 389e12, "bf16": 776e12, "f16": 776e12}  # FLOP/s of a matrix product of 8192 x 8192 x 8192
ORIGIN = ("copy measured at 4.23 TB/s, matrix products at 389 TFLOP/s in TF32 and 776 in bf16; fp32 FMA peak 66.9 "
          "TFLOP/s at 1.98 GHz")


def flop_rate(family, dtype):
    """Of what a kernel family computes with on tensors of this type."""
    if family not in ("tensor", "pointwise"):
        return FMA
    return MATRIX["tf32" if dtype == "f32" else dtype]


def floor_ms(one, family, dtype):
    """The larger of one's bytes and FLOPs over their rates."""
    return max(one["bytes"] / COPY, one["flop"] / flop_rate(family, dtype)) * 1e3
