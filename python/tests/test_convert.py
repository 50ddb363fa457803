"""convert() and revert(): what changes, what stays, and that results are those of the model before."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import fx, nn
from torch.nn import functional
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

import jitconv.torch as jt


class Block(nn.Module):
    """Two convolutions that share one ReLU, as torchvision's ResNet does, and a function behind the third."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.third = nn.ConvTranspose2d(8, 4, 2, 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm(self.first(x)))
        return functional.silu(self.third(self.relu(self.second(y)) + y))


class Branches(nn.Module):
    """A forward() that torch.fx cannot trace, around a Sequential."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Conv2d(8, 4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) if x.sum() > -1e9 else x


def trained_statistics(model: nn.Module) -> nn.Module:
    """Give BatchNorms statistics and parameters that matter."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -1, 1)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    return model.eval()


def test_in_place_everything_but_the_class_stays() -> None:
    model = Block()
    layers, parameters = list(model.modules()), list(model.parameters())
    state, calls = list(model.state_dict()), []
    model.first.register_forward_hook(lambda *_: calls.append("hook"))
    x = torch.randn(2, 3, 6, 6)
    expected = model.eval()(x)
    assert jt.convert(model) is model
    assert type(model.first) is jt.Conv2d
    assert type(model.third) is jt.ConvTranspose2d
    assert all(a is b for a, b in zip(model.modules(), layers, strict=True))
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert list(model.state_dict()) == state
    assert not model.first.training
    torch.testing.assert_close(model(x), expected)
    assert calls == ["hook"] * 2
    assert jt.revert(model) is model
    assert type(model.first) is nn.Conv2d
    assert "policy" not in model.first.__dict__
    torch.testing.assert_close(model(x), expected)


def test_a_copy_leaves_the_model_alone() -> None:
    model = Block()
    result = jt.convert(model, inplace=False, math="tf32", policy="auto")
    assert type(model.first) is nn.Conv2d
    assert type(result.first) is jt.Conv2d
    assert (result.first.math, result.first.policy) == ("tf32", "auto")
    assert result.first.weight is not model.first.weight
    assert type(pickle.loads(pickle.dumps(result)).first) is jt.Conv2d


def test_a_layer_converts_by_itself() -> None:
    layer = jt.convert(nn.Conv1d(4, 6, 3, padding="same", padding_mode="reflect"))
    assert type(layer) is jt.Conv1d
    assert layer(torch.randn(2, 4, 9)).shape == (2, 6, 9)


def test_parametrized_layers() -> None:
    """Parametrizations put a class of their own over a layer's, and compute its weight anew at each call."""

    def make() -> nn.Sequential:
        torch.manual_seed(0)
        layers = weight_norm(nn.Conv2d(3, 4, 3)), nn.BatchNorm2d(4), spectral_norm(nn.ConvTranspose2d(4, 2, 3))
        return trained_statistics(nn.Sequential(*layers, nn.ReLU())).eval()

    model, x = make(), torch.randn(2, 3, 6, 5)
    expected = model(x)
    kinds = [type(layer) for layer in model]
    jt.convert(model, fuse_batchnorm=True, fuse_activation=True)
    assert [row["computed by"] for row in jt.conversion(model).as_dicts()] == ["jitconv", "jitconv", "the layer before"]
    assert isinstance(model[0], jt.Conv2d)
    assert type(model[0]).__name__ == kinds[0].__name__
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    model(x).sum().backward()
    assert model[0].parametrizations.weight.original0.grad.any()
    assert model.state_dict().keys() == make().state_dict().keys()
    jt.revert(model)
    assert [type(layer).__bases__ for layer in model] == [kind.__bases__ for kind in kinds]
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    jt.convert(model)
    remove_parametrizations(model[0], "weight")
    assert type(model[0]) is jt.Conv2d


def test_weights_that_a_hook_computes_are_not_scaled() -> None:
    model = nn.Sequential(prune.l1_unstructured(nn.Conv2d(3, 4, 3), "weight", 0.5), nn.BatchNorm2d(4)).eval()
    x = torch.randn(2, 3, 6, 5)
    expected = model(x)
    jt.convert(model, fuse_batchnorm=True)
    assert type(model[1]) is nn.BatchNorm2d
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


def test_what_stays_and_why() -> None:
    class Mine(nn.Conv2d):
        pass

    model = nn.Sequential(
        Mine(3, 3, 1), nn.Conv3d(3, 3, 1), nn.Conv2d(3, 3, 1).double(), nn.LazyConv2d(3, 1), nn.Conv2d(3, 3, 1)
    )
    before = [type(layer) for layer in model][:-1]
    jt.convert(model)
    assert [type(layer) for layer in model] == [*before, jt.Conv2d]
    remarks = [row["remark"] for row in jt.conversion(model).as_dicts()]
    assert remarks == ["a subclass, which may compute more", "3-D", "float64 tensors",
                       "lazy: convert it after its first call", ""]  # fmt: skip
    assert "1 convolution layers by jitconv, 4 by PyTorch" in str(jt.conversion(model))


def test_subclasses_of_jitconvs_layers_are_jitconvs() -> None:
    class Mine(jt.Conv2d):
        pass

    model = nn.Sequential(Mine(3, 3, 1), weight_norm(jt.Conv2d(3, 3, 1)), jt.LazyConv2d(3, 1))
    kinds = [type(layer) for layer in model]
    jt.convert(model, math="fp32", policy="auto")
    assert [type(layer) for layer in model] == kinds
    assert [row["computed by"] for row in jt.conversion(model).as_dicts()] == ["jitconv"] * 3
    assert [(layer.math, layer.policy) for layer in model] == [("fp32", "auto")] * 3


@pytest.mark.parametrize("traceable", [True, False])
def test_fusions_of_neighbours(traceable: bool) -> None:
    model = trained_statistics(Branches())
    if traceable:
        model = model.layers
    x = torch.randn(2, 3, 6, 6)
    expected, convolution = model(x), (model if traceable else model.layers)[0]
    weight, state = convolution.weight, {name: t.clone() for name, t in model.state_dict().items()}
    jt.convert(model, fuse_batchnorm=True, fuse_activation=True)
    assert (convolution.activation, convolution.slope) == ("leaky_relu", 0.2)
    assert convolution.bias is not None
    assert not any(type(module) in (nn.BatchNorm2d, nn.LeakyReLU) for module in model.modules())
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    assert "BatchNorm folded into the weights, activation leaky_relu" in str(jt.conversion(model))
    copied = copy.deepcopy(model)
    jt.revert(model)
    assert convolution.weight is weight
    assert {name: t.tolist() for name, t in model.state_dict().items()} == {n: t.tolist() for n, t in state.items()}
    torch.testing.assert_close(model(x), expected)
    torch.testing.assert_close(jt.revert(copied)(x), expected)


@pytest.mark.parametrize("first", ["fuse_batchnorm", "fuse_activation"])
def test_fusions_one_by_one_are_undone_together(first: str) -> None:
    order = ("fuse_batchnorm", "fuse_activation")
    model = trained_statistics(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    x = torch.randn(1, 3, 6, 6)
    expected, weight = model(x), model[0].weight
    for option in order if first == order[0] else reversed(order):
        jt.convert(model, **{option: True})
    jt.convert(model, fuse_activation=True)
    assert model[0].activation == "relu"
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    jt.revert(model)
    assert model[0].weight is weight
    assert torch.equal(model(x), expected)


def test_two_batchnorms_fold_and_the_first_weights_come_back() -> None:
    model = trained_statistics(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.BatchNorm2d(4)))
    x = torch.randn(1, 3, 6, 6)
    expected, weight = model(x), model[0].weight
    for _ in range(2):
        jt.convert(model, fuse_batchnorm=True)
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    jt.revert(model)
    assert model[0].weight is weight
    assert torch.equal(model(x), expected)


def test_what_was_fused_comes_back_where_its_layer_is() -> None:
    model = nn.Sequential(
        nn.Linear(3, 3, device="meta"),
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.Conv2d(4, 4, 1).half(),
        nn.BatchNorm2d(4),
    ).eval()

    def places() -> list[tuple[torch.device, torch.dtype]]:
        return [(t.device, t.dtype) for t in model.state_dict().values()]

    before = places()
    jt.convert(model, fuse_batchnorm=True)
    assert len(places()) < len(before)
    jt.revert(model)
    assert places() == before
    jt.convert(model, fuse_batchnorm=True)
    model[1:].to(torch.bfloat16)
    jt.revert(model)
    kinds = {t.dtype for t in model[1:].state_dict().values() if t.is_floating_point()}
    assert kinds == {torch.bfloat16}


def test_what_was_fused_has_the_mode_of_the_model() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    jt.convert(model, fuse_batchnorm=True, fuse_activation=True)
    assert not any(module.training for module in model.modules())
    model.train()
    jt.revert(model)
    assert all(module.training for module in model.modules())


def test_a_fusion_of_a_graph_stays_one_that_cannot_be_undone() -> None:
    model = trained_statistics(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    graph = jt.convert(model, inplace=False, fuse_batchnorm=True, graph=True)
    jt.convert(graph, fuse_activation=True)
    with pytest.raises(ValueError, match=r"graph=True, which cannot be undone"):
        jt.revert(graph)


def test_what_a_second_call_leaves_open_stays() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1))
    jt.convert(model, fuse_activation=True, policy="auto", math="tf32")
    jt.convert(model)
    assert [(model[i].policy, model[i].math) for i in (0, 2)] == [("auto", "tf32")] * 2
    jt.convert(model, math="fp32")
    assert [(model[i].policy, model[i].math) for i in (0, 2)] == [("auto", "fp32")] * 2
    plain = jt.convert(nn.Conv2d(3, 4, 3))
    assert (plain.policy, plain.math) == ("always", None)
    jt.convert(plain, policy="auto", math="tf32")
    assert (plain.policy, plain.math) == ("auto", "tf32")


def test_training_batchnorm_is_not_folded() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
    jt.convert(model, fuse_batchnorm=True, fuse_activation=True)
    assert type(model[1]) is nn.BatchNorm2d
    assert model[0].activation is None


def test_an_activation_in_training_has_its_gradient() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardtanh(-0.3, 0.4), nn.Conv2d(4, 4, 1), nn.GELU(approximate="tanh"))
    x = torch.randn(2, 3, 5, 5, requires_grad=True)
    expected = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
    jt.convert(model, fuse_activation=True)
    assert (model[0].activation, model[0].clamp_min, model[0].clamp_max) == ("clamp", pytest.approx(-0.3), 0.4)
    assert model[2].activation == "gelu_tanh"
    found = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_shared_and_functional_activations_need_a_graph() -> None:
    model = trained_statistics(Block())
    x = torch.randn(2, 3, 6, 6)
    expected = model(x)
    plain = jt.convert(model, inplace=False, fuse_batchnorm=True, fuse_activation=True)
    assert [plain.first.activation, plain.second.activation, plain.third.activation] == [None, None, None]
    torch.testing.assert_close(plain(x), expected, rtol=1e-4, atol=1e-5)
    graph = jt.convert(model, inplace=False, fuse_batchnorm=True, fuse_activation=True, graph=True)
    assert isinstance(graph, fx.GraphModule)
    assert [graph.first.activation, graph.second.activation, graph.third.activation] == ["relu", "relu", "silu"]
    assert not any(isinstance(module, nn.BatchNorm2d | nn.ReLU) for module in graph.modules())
    torch.testing.assert_close(graph(x), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"graph=True, which cannot be undone"):
        jt.revert(graph)


def test_what_somebody_observes_is_not_fused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.ReLU())
    model[0].register_forward_hook(lambda *_: None)
    model[3].register_forward_hook(lambda *_: None)
    jt.convert(model, fuse_activation=True)
    assert (model[0].activation, model[2].activation) == (None, None)


def test_a_layer_that_is_called_twice_is_not_fused() -> None:
    convolution = nn.Conv2d(4, 4, 1)
    model = nn.Sequential(convolution, nn.ReLU(), convolution)
    jt.convert(model, fuse_activation=True)
    assert type(model[0]) is jt.Conv2d
    assert model[0].activation is None


class Head(nn.Module):
    """Convolutions with and without their activation, as what is asked for decides."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.relu = nn.Conv2d(3, 3, 1), nn.ReLU()
        self.loss, self.sigmoid = nn.Conv2d(3, 3, 1), nn.Sigmoid()
        self.extra, self.tanh = nn.Conv2d(3, 3, 1), nn.Tanh()
        self.last, self.gelu = nn.Conv2d(3, 3, 1), nn.GELU()

    def forward(self, x: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        x = self.loss(self.relu(self.always(x)))
        if target is not None:
            return (self.sigmoid(x) - self.tanh(self.extra(target))).square()
        x = self.last(x)
        return x if self.training else self.gelu(x)


@pytest.mark.parametrize("training", [False, True])
def test_what_holds_only_sometimes_is_not_fused(training: bool) -> None:
    model, x, target = Head().train(training), torch.randn(1, 3, 4, 4), torch.randn(1, 3, 4, 4)

    def results() -> list[torch.Tensor]:
        return [model.train(mode)(*given) for mode in (False, True) for given in ((x,), (x, target))]

    expected = results()
    jt.convert(model.train(training), fuse_activation=True)
    assert all(module.training is training for module in model.modules())
    assert [layer.activation for layer in (model.always, model.loss, model.extra, model.last)] == [
        "relu", None, "tanh", None
    ]  # fmt: skip
    for mine, theirs in zip(results(), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_leaky_relu_without_an_inverse_is_not_fused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.LeakyReLU(-0.1))
    jt.convert(model, fuse_activation=True)
    assert model[0].activation is None


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="pass inplace=False"):
        jt.convert(Block(), graph=True)
    with pytest.raises(ValueError, match=r"torch\.fx cannot trace Branches"):
        jt.convert(Branches(), inplace=False, graph=True)
    for wrong in ({"math": "tf23"}, {"policy": "never"}):
        model = Block()
        with pytest.raises(ValueError, match="must be"):
            jt.convert(model, **wrong)
        assert type(model.first) is nn.Conv2d
    with pytest.raises(ValueError, match=r"0 has activation='relu'"):
        jt.revert(nn.Sequential(jt.Conv2d(3, 3, 1, activation="relu")))


def test_verbose_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    jt.convert(Block(), verbose=True)
    assert "3 convolution layers by jitconv, 0 by PyTorch" in capsys.readouterr().out
