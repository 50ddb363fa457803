"""policy="auto": what is measured, remembered and taken. Times are made up: the tests have no GPU."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
from collections.abc import Callable, Iterator

import pytest
import torch

import jitconv
import jitconv.torch as jt
from jitconv.torch import _choices, _convolution, _policy, _stats
from jitconv.torch._choices import Choice, Choices


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Give each test a cache of its own."""
    monkeypatch.setenv("JITCONV_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("JITCONV_CACHE", raising=False)
    return tmp_path / "torch-choices-1"


@pytest.fixture
def measured(host: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], dict[str, float]]]:
    """Note what was timed; a test sets the times of jitconv's and PyTorch's runs."""
    seen: list[str] = []
    times = {"jitconv": 1.0, "pytorch": 2.0}

    def choice_of(
        self: object, what: tuple[object, ...], tensors: tuple[torch.Tensor, ...], mine: Callable[[], object],
        theirs: Callable[[], object],
    ) -> Choice:  # fmt: skip
        key = repr((what, *(tuple(t.shape) for t in tensors)))
        found = _policy.choices.get(key)
        if found is None:
            seen.append(str(what[0]) if what[0] == "forward" else f"backward {what[3:]}")
            found = Choice(times["jitconv"], times["pytorch"])
            _policy.choices.put(key, found)
        return found

    monkeypatch.setattr(_policy.Choosing, "_choice", choice_of)
    _policy.forget()
    yield seen, times
    _policy.forget()


def step(policy: str) -> list[torch.Tensor]:
    """Return a layer's result and gradients."""
    torch.manual_seed(0)
    layer = jt.Conv2d(1, 2, 2, activation="relu", policy=policy)
    x = torch.randn(1, 1, 4, 3, requires_grad=True)
    y = layer(x)
    return [y, *torch.autograd.grad(y.sum(), (x, layer.weight, layer.bias))]


@pytest.mark.parametrize("faster", ["jitconv", "pytorch"])
def test_each_direction_is_measured_once(faster: str, measured: tuple[list[str], dict[str, float]]) -> None:
    seen, times = measured
    times[faster] = 0.5
    for found, expected in zip(step("auto"), step("always"), strict=True):
        torch.testing.assert_close(found, expected)
    step("auto")
    assert seen == ["forward", "backward (True, False, False)", "backward (False, True, True)"]


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that names each call of a choice's Python code from now on."""
    asked: list[str] = []
    for name in ("_run", "backward"):
        inner = getattr(_policy.Choosing, name)

        def counted(self, *arguments, name=name, inner=inner, **keywords):  # type: ignore[no-untyped-def]
            asked.append(name)
            return inner(self, *arguments, **keywords)

        monkeypatch.setattr(_policy.Choosing, name, counted)
    return asked


@pytest.mark.parametrize("faster", ["jitconv", "pytorch"])
def test_known_choices_are_not_made_again(
    faster: str, measured: tuple[list[str], dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured[1][faster] = 0.5
    step("auto")
    asked = counting(monkeypatch)
    for found, expected in zip(step("auto"), step("always"), strict=True):
        torch.testing.assert_close(found, expected)
    assert asked == []
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        step("auto")  # another choice
    assert asked == ["_run", "backward"]
    _policy.forget()
    step("auto")
    assert asked == ["_run", "backward"] * 2


@pytest.mark.parametrize("faster", ["jitconv", "pytorch"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", [jt.Conv2d, jt.Conv1d, jt.ConvTranspose2d, jt.ConvTranspose1d])
def test_known_choices_under_autocast(
    kind: type[jt.Conv2d],
    grad: bool,
    faster: str,
    measured: tuple[list[str], dict[str, float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Weights of another type than autocast's: they are cast in the call, in inference once."""
    measured[1][faster] = 0.5
    asked = counting(monkeypatch)
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(8,) * (kind(1, 1, 1).weight.dim() - 2))
    transposed = kind in (jt.ConvTranspose1d, jt.ConvTranspose2d)  # whose activation Python applies to dy
    activation = "none" if transposed else "relu"
    layers = {policy: kind(3, 5, 3, activation=activation, policy=policy) for policy in ("always", "auto")}
    layers["auto"].load_state_dict(layers["always"].state_dict())
    for layer in layers.values():
        layer.weight.data.mul_(8).round_()  # exact in bfloat16, so that both libraries' results differ by a rounding
        layer.bias.data.zero_()

    def run(policy: str) -> list[torch.Tensor]:
        layer = layers[policy]
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        assert y.dtype == torch.bfloat16
        return [y, *(torch.autograd.grad(y.float().sum(), (layer.weight, layer.bias)) if grad else ())]

    with torch.set_grad_enabled(grad):
        for times in range(3):
            for found, expected in zip(run("auto"), run("always"), strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
            assert asked == (["_run", "backward"] if grad else ["_run"]), times
        with torch.no_grad():
            for layer in layers.values():
                layer.weight.neg_()  # counts a version, so that what was kept of the weights is made again
        for found, expected in zip(run("auto"), run("always"), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


def test_known_choices_may_differ_by_direction(
    measured: tuple[list[str], dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = _policy.Choosing._choice

    def mixed(self, what, *arguments):  # type: ignore[no-untyped-def]
        inner(self, what, *arguments)
        return Choice(1.0, 2.0 if what[3:4] == (True,) else 0.5)

    monkeypatch.setattr(_policy.Choosing, "_choice", mixed)
    step("auto")
    asked = counting(monkeypatch)
    for found, expected in zip(step("auto"), step("always"), strict=True):
        torch.testing.assert_close(found, expected)
    assert asked == []


def test_a_choice_outlives_the_process(folder: pathlib.Path) -> None:
    Choices().put("a key", Choice(1.5, 3.0, "why"))
    assert Choices().get("a key") == Choice(1.5, 3.0, "why")
    assert Choices().get("another") is None
    (file,) = folder.iterdir()
    assert json.loads(file.read_text())["key"] == "a key"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"key": "a key"}', '{"key": "other", "jitconv_ms": 1.0, "pytorch_ms": 2.0}',
     '{"key": "a key", "jitconv_ms": -1, "pytorch_ms": 2}', '{"key": "a key", "jitconv_ms": "x", "pytorch_ms": 2}',
     '{"key": "a key", "jitconv_ms": null, "pytorch_ms": null}', '{"key": "a key", "more": 1}', "\x00\xff"],
)  # fmt: skip
def test_trouble_with_a_file_is_a_miss(folder: pathlib.Path, content: str) -> None:
    Choices().put("a key", Choice(1.0, 2.0))
    (file,) = folder.iterdir()
    file.write_text(content, encoding="latin-1")
    assert Choices().get("a key") is None
    Choices().put("a key", Choice(1.0, 2.0))
    assert Choices().get("a key") is not None


def test_the_cache_may_be_off_read_only_or_impossible(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITCONV_CACHE", "ro")
    Choices().put("a", Choice(1.0, 2.0))
    assert not folder.exists()
    monkeypatch.setenv("JITCONV_CACHE", "rw")
    Choices().put("a", Choice(1.0, 2.0))
    monkeypatch.setenv("JITCONV_CACHE", "off")
    assert Choices().get("a") is None
    monkeypatch.delenv("JITCONV_CACHE")
    for place in ("relative", "/dev/null/cache"):
        monkeypatch.setenv("JITCONV_CACHE_DIR", place)
        Choices().put("a", Choice(1.0, 2.0))
        assert Choices().get("a") is None


def _write_often(folder: str) -> None:
    os.environ["JITCONV_CACHE_DIR"] = folder
    for i in range(50):
        _choices._write("shared", Choice(float(i + 1), 2.0))


def test_writers_do_not_disturb_readers(tmp_path: pathlib.Path) -> None:
    context = multiprocessing.get_context("fork")
    _choices._write("shared", Choice(1.0, 2.0))
    writers = [context.Process(target=_write_often, args=(str(tmp_path),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert _choices._read("shared") is not None
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert not list(tmp_path.glob("*/tmp-*"))


def test_the_faster_is_taken() -> None:
    assert Choice(1.0, 2.0).takes_jitconv
    assert not Choice(2.0, 1.0).takes_jitconv
    assert not Choice(None, 1.0).takes_jitconv
    assert Choice(1.0, None).takes_jitconv


def test_cpu_tensors_are_not_measured() -> None:
    _stats.stats(reset=True)
    _policy.forget()
    with jt.cpu_policy("host"):
        step("auto")
    assert _policy.choices.items() == []
    assert jt.stats().served_by_pytorch == {}


def test_a_key_names_what_a_time_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        name = "A GPU"

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties())
    c = jt.functional.convolution_of(2, (3, 3), 1, 0, 1, 1)
    x = torch.zeros(1, 2, 3, 4)
    keys = {
        _policy._key(c, ("forward",), (tensor,), math)
        for tensor in (x, x.half(), x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3))
        for math in ("fp32", "tf32")
    }
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        keys.add(_policy._key(c, ("forward",), (x,), "fp32"))
    assert len(keys) == 9
    assert all(f"jitconv {jitconv.__version__}" in key and "A GPU" in key for key in keys)


class OnGpu(torch.Tensor):
    """A CPU tensor that says it is a GPU's."""

    is_cuda = True


class Noted:
    """What knows no call, and notes what it is asked."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.calls.append(name)


@pytest.mark.parametrize("takes_jitconv", [False, True])
def test_a_capture_takes_what_was_measured_with_packed_weights(
    takes_jitconv: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators keep packed weights before a capture, and none in it."""
    capturing = False
    choice = Choice(1.0, 2.0) if takes_jitconv else Choice(2.0, 1.0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    monkeypatch.setattr(_policy, "_key", lambda *_: "key")
    monkeypatch.setattr(_policy.choices, "get", lambda _: choice)
    settings = jt.functional.convolution_of(2, (2, 2), 1, 0, 1, 1).settings
    c = _policy.Choosing(_convolution.convolution(settings._replace(policy="auto")))
    tensors = torch.randn(1, 1, 4, 3).as_subclass(OnGpu), torch.randn(2, 1, 2, 2).as_subclass(OnGpu)
    run = lambda: None  # noqa: E731

    def chosen(kind: str, last: bool) -> Choice:
        return c._choice((kind, False, True, last), tensors, run, run)

    assert chosen("forward", last=True) is choice
    assert chosen("backward", last=True) is choice
    capturing = True
    assert chosen("forward", last=False) is choice
    assert chosen("backward", last=False) is _policy._ALWAYS
    calls: list[str] = []
    monkeypatch.setattr(c, "calls", Noted(calls))
    monkeypatch.setattr(_policy, "_compute", lambda choice, mine, theirs: choice)
    assert c._run(*tensors, None, True, False, casts=False) is choice  # type: ignore[comparison-overlap]
    assert calls == ["run"]
