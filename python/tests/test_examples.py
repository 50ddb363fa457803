"""examples/kernelbench and bench/networks: every model builds and has the shapes of torch.nn's, on fake tensors.

check.py and compare.py themselves need a GPU.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import subprocess
import sys
from types import ModuleType

import pytest
import torch
from torch._subclasses import FakeTensorMode

import jitconv.torch as jt

ROOT = pathlib.Path(__file__).parents[2]
KERNELBENCH = ROOT / "examples" / "kernelbench"
NETWORKS = ROOT / "bench" / "networks"

pytestmark = pytest.mark.skipif(not KERNELBENCH.exists(), reason="not in the repository: no examples")


def load(path: pathlib.Path) -> ModuleType:
    """Import a file by its path."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_level_1_has_all_problems_of_one_and_two_dimensions() -> None:
    numbers = sorted(int(path.stem.split("_")[0]) for path in (KERNELBENCH / "level1").glob("*.py"))
    assert numbers == [50, 55, 56, 57, 62, 63, 64, 65, 67, 69, 71, 74, 75, 76, *range(78, 88)]


PROBLEMS = sorted((KERNELBENCH / "level1").glob("*.py"))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem.split("_")[0])
def test_a_problem_has_the_shapes_of_torchs_layers(path: pathlib.Path) -> None:
    module = load(path)
    with FakeTensorMode():
        model = module.ModelNew(*module.get_init_inputs())
        assert any(type(layer).__module__ == "jitconv.torch.modules" for layer in model.modules())
        inputs = module.get_inputs()
        assert model(*inputs).shape == jt.revert(model)(*inputs).shape


def test_the_models_line_and_its_shape() -> None:
    module = load(KERNELBENCH / "model.py")
    assert "y.sum().backward()" in (module.__doc__ or "")
    with FakeTensorMode():
        x = torch.randn(8, 32, 512, 512, requires_grad=True)
        y = module.ModelNew()(x)
        assert tuple(y.shape) == (8, 64, 508, 496)
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.shape == x.shape


def test_the_model_is_exact_on_the_cpu() -> None:
    model = load(KERNELBENCH / "model.py").ModelNew()
    x = torch.randint(-2, 3, (1, 32, 6, 18)).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape))
        expected = jt.revert(model, inplace=False)(x)
        with jt.cpu_policy("host"):
            assert torch.equal(model(x), expected)


@pytest.mark.parametrize("name", ["ResNet50", "ConvNeXtT", "EfficientNetB0", "UNet", "DeepLabV3", "EDSR", "Speech"])
def test_a_network_converts_and_is_recorded_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(NETWORKS))
    vision, dense = importlib.import_module("vision"), importlib.import_module("dense")
    shapes = {"UNet": (1, 4, 32, 32), "Speech": (1, 80, 8), "EDSR": (1, 3, 24, 24)}
    shape = shapes.get(name, (2, 3, 64, 64))
    with FakeTensorMode():
        model = getattr(vision, name, None) or getattr(dense, name)
        model = jt.convert(model())
        layers = sum(row["computed by"] == "jitconv" for row in jt.conversion(model).as_dicts())
        x = torch.randn(shape)
        found = jt._record.record(model, (x,), {}, backward=True)
    forward = [operation for operation in found if operation.direction == "forward"]
    assert len(forward) == layers
    assert len(found) == 3 * layers - 1  # but for dx of the first


@pytest.mark.parametrize("script", [KERNELBENCH / "check.py", NETWORKS / "compare.py"])
def test_scripts_say_that_they_need_a_gpu(script: pathlib.Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 5
    assert result.stderr == f"{script.name}: needs a GPU\n"


def test_the_filter_bank_writes_a_picture(tmp_path: pathlib.Path) -> None:
    image = pytest.importorskip("PIL.Image")
    script = ROOT / "examples" / "filter_bank" / "filter_bank.py"
    output = tmp_path / "picture.jpg"
    command = [sys.executable, str(script), "--device=cpu", "--scale=0.06", "--filter=5", f"--output={output}"]
    subprocess.run(command, check=True, capture_output=True)
    with image.open(output) as picture:
        assert picture.size[0] == 27
        assert max(high - low for low, high in picture.convert("RGB").getextrema()) > 100
