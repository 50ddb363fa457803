"""jitconv-dump --emit=torch-extension: the file is Python, describes every launch, and NVRTC takes its sources.

Needs the program: JITCONV_DUMP names it, else a build folder of this repository. What runs on a GPU is the file's own
main program.
"""

from __future__ import annotations

import ast
import os
import pathlib
import runpy
import shutil
import subprocess
from typing import Any

import pytest
import torch

BUILT = pathlib.Path(__file__).parents[2] / "build" / "release" / "tools" / "jitconv-dump"
PROGRAM = os.environ.get("JITCONV_DUMP") or (str(BUILT) if BUILT.exists() else shutil.which("jitconv-dump"))
SPECS = {
    "tensor maps": "input=2,32,32,32 weight=64,32,3,3 padding=1 bias math=tf32",
    "a walk": "input=2,32,32,32 weight=64,32,3,3 padding=1 math=tf32 input_layout=nhwc output_layout=nhwc",
    "saved y": "input=2,8,12,12 weight=8,1,3,3 groups=8 bias activation=relu",
    "left to PyTorch": "input=2,8,12,12 weight=8,8,1,1 bias activation=silu dtype=bf16",
}

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="jitconv-dump is neither in JITCONV_DUMP nor built")


@pytest.fixture(params=SPECS)
def extension(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    """Write the file of one spec."""
    path = tmp_path / "extension.py"
    assert PROGRAM is not None
    subprocess.run([PROGRAM, f"--spec={SPECS[request.param]}", "--emit=torch-extension", "-o", path], check=True)
    return path


def values(path: pathlib.Path) -> dict[str, Any]:
    """Return what the file defines when it is imported."""
    return runpy.run_path(str(path))


def test_launches_name_only_what_there_is(extension: pathlib.Path) -> None:
    ast.parse(extension.read_text())
    file = values(extension)
    given = {
        "forward": {"x", "w", "bias", "y"},
        "data_gradient": {"dy", "w", "dx", "saved"},
        "weight_gradient": {"x", "dy", "dw", "db", "saved"},
    }
    for operation, entries in file["LAUNCHES"].items():
        scratch = {f"scratch{i}" for i in range(len(file["SCRATCH"][operation]))}
        for entry in entries:
            assert f"{entry['name']}(" in file["SOURCES"][operation]
            for argument in entry["arguments"]:
                name = argument if isinstance(argument, str) else argument["tensor"]
                assert name in given[operation] | scratch
                if not isinstance(argument, str):
                    assert len(argument["stride_bytes"]) == len(argument["extents"]) - 1
                    assert all(stride % 16 == 0 for stride in argument["stride_bytes"])


def test_the_module_is_a_conv2d(extension: pathlib.Path) -> None:
    file = values(extension)
    model = file["ModelNew"]()
    assert isinstance(model, torch.nn.Conv2d)
    assert tuple(model.weight.shape) == file["WEIGHT_SHAPE"]
    x = torch.zeros(file["INPUT_SHAPE"], dtype=file["DTYPE"])
    assert tuple(torch.nn.Conv2d.forward(model, x).shape) == file["OUTPUT_SHAPE"]
    with pytest.raises(ValueError, match="this file computes"):
        file["ModelNew"](stride=3)
    with pytest.raises(ValueError, match="on CUDA, not"):
        model(x)


def test_nvrtc_compiles_every_source(extension: pathlib.Path) -> None:
    file = values(extension)
    try:
        file["_nvrtc"]()
    except RuntimeError as error:
        pytest.skip(str(error))
    for operation in file["SOURCES"]:
        assert file["cubin"](operation)[:4] == b"\x7fELF"
