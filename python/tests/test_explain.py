"""explain(): its rows, its three forms, and the floor. Nothing is timed here: the tests have no GPU."""

from __future__ import annotations

import json
import pathlib

import torch
from torch import nn

import jitconv.torch as jt
from jitconv.spec import Spec
from jitconv.torch import _explain
from jitconv.torch._explain import Explanation, Row
from jitconv.torch._explain_page import page


def test_every_layer_and_direction_has_a_row(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(jt.Conv2d(1, 2, 2, activation="relu"), jt.Conv2d(2, 2, 1, groups=2, bias=False))
    with jt.cpu_policy("host"):
        explanation = jt.explain(model, torch.ones(1, 1, 3, 3))
    assert [(row.layer, row.direction) for row in explanation.rows] == [
        ("0", "forward"), ("1", "forward"), ("1", "dx"), ("1", "dw"), ("0", "dw"),
    ]  # fmt: skip
    assert all(row.family and row.why and row.jitconv_ms is None for row in explanation.rows)
    explanation.save(tmp_path / "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert rows[4]["spec"] == explanation.rows[4].spec
    explanation.save(tmp_path / "table.txt")
    assert (tmp_path / "table.txt").read_text() == str(explanation)


def test_without_layers_of_jitconv_it_says_what_to_do(tmp_path: pathlib.Path) -> None:
    model, x = nn.Conv2d(1, 2, 2), torch.ones(1, 1, 3, 3)
    explanation = jt.explain(model, x)
    assert explanation.rows == ()
    assert explanation.device.startswith("PyTorch on the CPU, ")
    for text in (str(explanation), explanation.to_html(), explanation.to_json()):
        assert "no jitconv layers: convert the model first" in text
    with jt.cpu_policy("host"):
        assert jt.explain(model, x).device.startswith("host execution on the CPU, ")
    text = str(jt.explain(jt.convert(model), x))
    assert "PyTorch on the CPU" in text
    assert "jitconv computes no CPU tensors" in text


def test_families_of_tensor_cores_are_those_of_the_table() -> None:
    families = pathlib.Path(__file__).parents[2] / "codegen"
    rows = {path.parent.name: path.read_text() for path in families.glob("*/family.cpp")}
    assert set(_explain._TENSOR_CORE_FAMILIES) == {name for name, row in rows.items() if "uses_tensor_cores" in row}


def test_a_table_names_what_is_slower() -> None:
    rows = (
        Row("a", "forward", "wgmma", "why", 0.1, 0.2, 0.3, 0.6, ""),
        Row("b", "dw", "wgrad", "why", None, None, 0.4, 0.2, ""),
    )
    text = str(Explanation(rows, "A GPU"))
    assert "2.00x" in text
    assert "all: jitconv 0.700 ms, PyTorch 0.800 ms, the faster of both each time 0.500 ms" in text
    assert "slower than PyTorch: b dw" in text


def test_the_page_stands_alone_and_quotes_its_text() -> None:
    bars = [("a <b>", "wgmma", 'say "why"', 0.1, 0.2, 0.4), ("c", "direct", "", None, None, None)]
    text = page("A <GPU>", bars, ["x & y"])
    assert "<script" not in text
    assert "src=" not in text
    assert "a &lt;b&gt;" in text
    assert "say &quot;why&quot;" in text
    assert "x &amp; y" in text
    assert "width:85.00%" in text
    assert "width:42.50%" in text


def test_work_counts_each_tensor_and_product_once() -> None:
    spec = Spec(input=(2, 4, 8, 8), weight=(6, 2, 3, 3), groups=2, dtype="bf16")
    flop, moved = _explain.work(spec)
    assert flop == 2 * (2 * 6 * 6 * 6) * (2 * 3 * 3)
    assert moved == 2 * (2 * 4 * 8 * 8 + 6 * 2 * 3 * 3 + 2 * 6 * 6 * 6)


def test_expected_times_are_read_from_the_reasons() -> None:
    class Kernel:
        explain = (
            "family: wgmma\ndirect: modelled at 10.6 ms, wgmma at 1.25 ms\nmath: tf32 is used\nwgrad: not possible: x\n"
        )

    x = torch.zeros(1, 1, 1, 1)
    spec, settings = Spec((1, 1, 1, 1), (1, 1, 1, 1)), jt._convolution.Settings()
    operation = jt._record.Operation("a", "forward", spec, settings, x, x, bias=False, activation=False)
    row = _explain._row(operation, Kernel(), {})  # type: ignore[arg-type]
    assert row.family == "wgmma"
    assert row.expected_ms == 1.25
    assert row.why == "direct modelled at 10.6 ms, wgmma at 1.25 ms; math: tf32 is used"
