"""What every first-order optimiser must do: agree with torch, resume to the bit, take any parameter."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch import optim as peers

from lemmata.optim import Adagrad, Adam, AdamW, FirstOrder, GradientDescent, HeavyBall, Nesterov, RMSprop

DECAY = {"weight_decay": 0.1}
# Ours, torch's, and the options of both.
PAIRS = {
    "gd": (GradientDescent, peers.SGD, {"lr": 0.03}),
    "gd, decay": (GradientDescent, peers.SGD, {"lr": 0.03, **DECAY}),
    "momentum": (GradientDescent, peers.SGD, {"lr": 0.03, "momentum": 0.8}),
    "heavy ball": (HeavyBall, peers.SGD, {"lr": 0.03, "momentum": 0.9, **DECAY}),
    "nesterov": (Nesterov, lambda p, **o: peers.SGD(p, nesterov=True, **o), {"lr": 0.03, "momentum": 0.9, **DECAY}),
    "adagrad": (Adagrad, peers.Adagrad, {"lr": 0.3}),
    "adagrad, all": (Adagrad, peers.Adagrad, {"lr": 0.3, "lr_decay": 0.1, "initial_accumulator_value": 0.2, **DECAY}),
    "rmsprop": (RMSprop, peers.RMSprop, {"lr": 0.03, "eps": 1e-3, **DECAY}),
    "rmsprop, momentum": (RMSprop, peers.RMSprop, {"lr": 0.01, "alpha": 0.9, "momentum": 0.7}),
    "adam": (Adam, peers.Adam, {"lr": 0.1}),
    "adam, all": (Adam, peers.Adam, {"lr": 0.1, "betas": (0.7, 0.95), "eps": 1e-3, **DECAY}),
    "adamw": (AdamW, peers.AdamW, {"lr": 0.1, "weight_decay": 0.2}),
}
KINDS = {"gd": GradientDescent, "momentum": lambda p, **o: GradientDescent(p, momentum=0.9, **o)}
KINDS |= {kind.__name__: kind for kind in (HeavyBall, Nesterov, Adagrad, RMSprop, Adam, AdamW)}
FUSED = ("gd", "momentum", "Adagrad", "Adam", "AdamW")


def parameters(dtypes=(torch.float64,)):
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 4), (5,), (), (2, 1, 3))
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for dtype in dtypes
        for shape in shapes
    ]


def descend(optimizer, theta, steps=100, start=0):
    """A bowl that is steeper in some directions, and moves a little with the steps."""
    for step in range(start, start + steps):
        optimizer.zero_grad()
        wells = [torch.linspace(0.2, 2, p.numel(), dtype=torch.float64).reshape(p.shape) for p in theta]
        loss = sum((well * (p - 0.1 * step / 100).abs() ** 2).sum() for well, p in zip(wells, theta, strict=True))
        loss.backward()
        optimizer.step()
    return [p.detach() for p in theta]


def same(ours, its, tolerance):
    return all((a - b).abs().max() <= tolerance for a, b in zip(ours, its, strict=True))


def with_paths(names, fused):
    """Every name with every way to step that it has."""
    ways = [(name, {"foreach": foreach}) for name in names for foreach in (False, True)]
    return [*ways, *((name, {"fused": True}) for name in fused)]


OWN = (HeavyBall, Nesterov, RMSprop)  # torch has no kernel for these


@pytest.mark.parametrize(("name", "path"), with_paths(PAIRS, [name for name in PAIRS if PAIRS[name][0] not in OWN]))
@pytest.mark.parametrize("maximize", [False, True])
def test_a_hundred_steps_are_torchs(name, path, maximize):
    kind, peer, options = PAIRS[name]
    ours, its = parameters(), parameters()
    steps = 5 if maximize else 100  # upwards, everything grows exponentially
    descend(kind(ours, maximize=maximize, **path, **options), ours, steps)
    descend(peer(its, maximize=maximize, **path, **options), its, steps)
    assert same(ours, its, 1e-12)
    assert not same(ours, parameters(), 0.1)


@pytest.mark.parametrize(
    ("kind", "peer"),
    [
        *((kind, peers.SGD) for kind in (GradientDescent, HeavyBall, Nesterov)),
        *((kind, getattr(peers, kind.__name__)) for kind in (Adagrad, RMSprop, Adam, AdamW)),
    ],
)
def test_what_is_not_chosen_is_as_in_torch(kind, peer):
    ours, its = kind(parameters()).defaults, peer(parameters()).defaults
    if kind in (HeavyBall, Nesterov):  # which are nothing without momentum
        its["momentum"] = 0.9
    shared = ours.keys() & its.keys()
    assert {"lr", "weight_decay", "maximize", "foreach"} <= shared
    assert {name: ours[name] for name in shared} == {name: its[name] for name in shared}


class Recorded(GradientDescent):
    """Gradient descent that tells which of the two ways it steps."""

    def update(self, group, theta, g, t, *state):
        self.way = "one"
        super().update(group, theta, g, t, *state)

    def update_all(self, group, theta, g, t, *state):
        self.way = f"{len(theta)} together"
        super().update_all(group, theta, g, t, *state)


@pytest.mark.parametrize(("foreach", "way"), [(None, "one"), (False, "one"), (True, "4 together")])
def test_on_a_cpu_parameters_step_together_where_that_is_asked_for(foreach, way):
    theta = parameters()
    optimizer = Recorded(theta, lr=0.1, foreach=foreach)
    descend(optimizer, theta, 1)
    assert optimizer.way == way


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [0.05, torch.tensor(0.05, dtype=torch.float64)], ids=["number", "tensor"])
def test_what_a_compiler_sees_are_the_same_steps(kind, rate, monkeypatch):
    """There numbers of steps are tensors, so that they are not compiled in, and all parameters step together."""
    plain, traced = parameters(), parameters()
    descend(KINDS[kind](plain, lr=0.05), plain, 5)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    descend(KINDS[kind](traced, lr=rate), traced, 5)
    assert same(plain, traced, 1e-12)
    recorded = Recorded(traced, lr=rate)
    descend(recorded, traced, 1)
    assert recorded.way == "4 together"


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_without_memory_step_too(kind):
    """On the meta device, where shapes are planned; steps are counted on the CPU."""
    weight = nn.Parameter(torch.empty(3, 2, device="meta"))
    weight.grad = torch.empty_like(weight)
    optimizer = KINDS[kind]([weight])
    optimizer.step()
    slots = {name: value for name, value in optimizer.state[weight].items() if name != "step"}
    assert {(value.shape, value.device.type) for value in slots.values()} <= {((3, 2), "meta")}
    assert optimizer.state[weight].get("step", torch.tensor(1.0)).item() == 1


@pytest.mark.parametrize(
    ("dtype", "fused", "wide"),
    [
        *((torch.float64, False, True), (torch.complex128, False, True)),
        *((torch.float32, False, False), (torch.complex64, False, False), (torch.bfloat16, False, False)),
        (torch.float64, True, False),  # torch's kernels ask for float32
    ],
)
def test_steps_are_counted_as_precisely_as_parameters_are_kept(dtype, fused, wide):
    theta = parameters((dtype,))
    optimizer = Adam(theta, fused=fused)
    descend(optimizer, theta, 2)
    steps = [optimizer.state[p]["step"] for p in theta]
    assert {(step.dtype, step.item()) for step in steps} == {(torch.float64 if wide else torch.float32, 2.0)}


TORCHS = {kind: getattr(peers, kind) for kind in ("Adagrad", "RMSprop", "Adam", "AdamW")}
STATE = {"gd": set(), "momentum": {"momentum_buffer"}, "HeavyBall": {"displacement"}, "Nesterov": {"iterate"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_keeps_what_the_formula_needs_and_no_more(kind):
    theta, others = parameters(), parameters()
    optimizer = KINDS[kind](theta, lr=0.01)
    descend(optimizer, theta, 2)
    if kind in TORCHS:  # by torch's names, for torch to load it
        peer = TORCHS[kind](others, lr=0.01)
        descend(peer, others, 2)
        assert set(optimizer.state[theta[0]]) == set(peer.state[others[0]])
    else:
        assert set(optimizer.state[theta[0]]) == STATE[kind]


def test_an_optimiser_of_ones_own_needs_a_step_and_a_rate():
    class Own(FirstOrder):
        slots, update, update_all = GradientDescent.slots, GradientDescent.update, GradientDescent.update_all

    theta, expected = parameters(), parameters()
    descend(Own(theta, {"lr": 0.1, "momentum": 0.5}), theta, 5)
    descend(peers.SGD(expected, lr=0.1, momentum=0.5), expected, 5)
    assert same(theta, expected, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_one_tensor_and_many_take_the_same_steps(kind):
    """On two groups of parameters of three dtypes, complex ones among them, one of which has no gradient."""
    results = []
    for foreach in (False, True):
        theta = parameters((torch.float64, torch.float32, torch.complex128))
        optimizer = KINDS[kind]([{"params": theta[:5], "lr": 0.01}, {"params": theta[5:]}], lr=0.02, foreach=foreach)
        idle = nn.Parameter(torch.ones(2))
        optimizer.add_param_group({"params": [idle]})
        results.append(descend(optimizer, theta, 20))
        assert idle.tolist() == [1, 1]
        assert idle not in optimizer.state
    assert same(*results, 1e-6)
    assert same(results[0][:4], results[1][:4], 1e-14)


@pytest.mark.parametrize("name", PAIRS)
def test_complex_parameters_are_pairs_as_in_torch(name):
    kind, peer, options = PAIRS[name]
    ours, its = (parameters((torch.complex128,)) for _ in range(2))
    descend(kind(ours, **options), ours, 20)
    descend(peer(its, **options), its, 20)
    assert same(ours, its, 1e-12)


@pytest.mark.parametrize(("kind", "path"), with_paths(KINDS, FUSED))
def test_resuming_gives_the_same_bits(kind, path):
    whole, half = parameters(), parameters()
    expected = descend(KINDS[kind](whole, lr=0.02, **path), whole, 10)
    first = KINDS[kind](half, lr=0.02, **path)
    descend(first, half, 4)
    saved = copy.deepcopy(first.state_dict())
    second = KINDS[kind](half, lr=0.7, **path)
    second.load_state_dict(saved)
    assert all(map(torch.equal, descend(second, half, 6, start=4), expected))


@pytest.mark.parametrize("name", [name for name in PAIRS if PAIRS[name][0] not in (HeavyBall, Nesterov)])
@pytest.mark.parametrize("theirs", [True, False])
def test_torchs_checkpoints_are_ours_and_ours_are_torchs(name, theirs):
    kind, peer, options = PAIRS[name]
    whole, half = parameters(), parameters()
    expected = descend(peer(whole, **options), whole, 10)
    makes = [peer, kind] if theirs else [kind, peer]
    first = makes[0](half, **options)
    descend(first, half, 4)
    second = makes[1](half, **options)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert same(descend(second, half, 6, start=4), expected, 1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS)
def test_lower_precision_stays_what_it_is(kind, dtype):
    theta = parameters((dtype,))
    begin = [p.detach().clone() for p in theta]
    optimizer = KINDS[kind](theta, lr=0.05)
    descend(optimizer, theta, 10)
    assert all(p.dtype is dtype and p.isfinite().all() and not p.equal(b) for p, b in zip(theta, begin, strict=True))
    slots = [v for state in optimizer.state.values() for name, v in state.items() if name != "step"]
    assert {value.dtype for value in slots} <= {dtype}


COMPILE = """
import torch
from lemmata.optim import Adagrad, Adam, AdamW, GradientDescent, HeavyBall, Nesterov, RMSprop

def run(kind, lr, compiled):
    torch.manual_seed(0)
    theta = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (5,))]
    optimizer = kind(theta, lr=lr)
    step = torch.compile(optimizer.step, backend="aot_eager", fullgraph=True) if compiled else optimizer.step
    for _ in range(3):  # the number of the step must not be compiled into it
        for p in theta:
            p.grad = 2 * p.detach()
        step()
    return torch.cat([p.detach().flatten() for p in theta])

for kind in (GradientDescent, HeavyBall, Nesterov, Adagrad, RMSprop, Adam, AdamW):
    for lr in (0.05, torch.tensor(0.05, dtype=torch.float64)):
        torch._dynamo.reset()
        torch._dynamo.config.error_on_recompile = True
        torch.testing.assert_close(run(kind, lr, True), run(kind, lr, False), rtol=1e-12, atol=1e-12)
"""


def test_a_compiled_step_is_the_same_step():
    """In a process of its own: the shape checks of the tests cannot be compiled."""
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("path", [{"foreach": False}, {"foreach": True}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_learning_rate_may_be_a_tensor(kind, path):
    numbers, tensors = parameters(), parameters()
    rate = torch.tensor(0.05, dtype=torch.float64)
    descend(KINDS[kind](numbers, lr=0.05, **path), numbers, 10)
    descend(KINDS[kind](tensors, lr=rate, **path), tensors, 10)
    assert same(numbers, tensors, 1e-12)
    assert rate == 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_closures_gradients_and_shapes_are_left_as_they_are(kind):
    theta = [torch.randn(4, 3).t().requires_grad_(), torch.zeros(0, requires_grad=True)]
    optimizer = KINDS[kind](theta, lr=0.1)
    grads = []

    def closure():
        optimizer.zero_grad()
        loss = sum(p.square().sum() for p in theta)
        loss.backward()
        grads.append([p.grad.clone() for p in theta])
        return loss

    assert optimizer.step(closure).item() == pytest.approx(sum(g.square().sum().item() / 4 for g in grads[0]))
    assert all(torch.equal(p.grad, g) for p, g in zip(theta, grads[0], strict=True))
    assert optimizer.step() is None
    assert theta[0].stride() == (1, 3)
    assert theta[0].requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_gradients_are_refused(kind):
    table = nn.Embedding(5, 2, sparse=True)
    optimizer = KINDS[kind](table.parameters(), lr=0.1)
    table(torch.tensor([1, 3])).sum().backward()
    with pytest.raises(ValueError, match=r"takes dense gradients, got a sparse one: use sparse=False in the embedding"):
        optimizer.step()


BAD = [
    ({"lr": -0.1}, "lr must be >= 0, got -0.1"),
    ({"lr": float("nan")}, "lr must be finite, got nan"),
    ({"lr": torch.ones(2)}, r"lr must be a number or a tensor without axes, got shape \(2,\)"),
    ({"lr": torch.ones(1)}, r"lr must be a number or a tensor without axes, got shape \(1,\)"),
    ({"lr": torch.tensor(-1.0)}, "lr must be >= 0, got -1.0"),
    ({"lr": torch.tensor(float("nan"))}, "lr must be finite, got nan"),
    ({"lr": "fast"}, "lr must be a number, got str"),
    ({"weight_decay": -1.0}, "weight_decay must be >= 0, got -1.0"),
    ({"maximize": 1}, "maximize must be True or False, got 1"),
    ({"foreach": "yes"}, "foreach must be True or False, got 'yes'"),
]
MORE = [
    (GradientDescent, {"momentum": -0.5}, "momentum must be >= 0, got -0.5"),
    (GradientDescent, {"foreach": True, "fused": True}, "fused and foreach exclude each other: leave one of them out"),
    (GradientDescent, {"fused": 3}, "fused must be True or False, got 3"),
    (HeavyBall, {"momentum": -0.5}, "momentum must be >= 0, got -0.5"),
    (Nesterov, {"momentum": -0.5}, "momentum must be >= 0, got -0.5"),
    (Adagrad, {"lr_decay": -1.0}, "lr_decay must be >= 0, got -1.0"),
    (Adagrad, {"initial_accumulator_value": -1.0}, "initial_accumulator_value must be >= 0, got -1.0"),
    (Adagrad, {"eps": -1.0}, "eps must be >= 0, got -1.0"),
    (RMSprop, {"alpha": 1.0}, r"alpha must be in \[0, 1\), got 1.0"),
    (RMSprop, {"eps": -1.0}, "eps must be >= 0, got -1.0"),
    (RMSprop, {"momentum": -1.0}, "momentum must be >= 0, got -1.0"),
    (Adam, {"betas": (0.9, 1.0)}, r"betas\[1\] must be in \[0, 1\), got 1.0"),
    (Adam, {"betas": (-0.1, 0.9)}, r"betas\[0\] must be in \[0, 1\), got -0.1"),
    (Adam, {"betas": 0.9}, "betas must be two numbers, got 0.9"),
    (Adam, {"eps": -1.0}, "eps must be >= 0, got -1.0"),
]
CASES = [(kind, words, told) for kind in (GradientDescent, HeavyBall, Adagrad, RMSprop, Adam) for words, told in BAD]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("kind", "words", "told"), CASES + MORE)
def test_bad_options_are_refused_for_every_group(kind, words, told):
    for make in (lambda p: kind(p, **words), lambda p: kind([{"params": p, **words}])):
        with pytest.raises((ValueError, TypeError), match=told):
            make(parameters())


FOREIGN = [
    (GradientDescent, peers.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, "dampening must be 0"),
    (RMSprop, peers.RMSprop, {"centered": True}, "centered must be False: use torch.optim.RMSprop"),
]


@pytest.mark.parametrize(("kind", "peer", "words", "told"), FOREIGN)
def test_a_checkpoint_with_what_is_not_here_is_refused(kind, peer, words, told):
    saved = peer(parameters(), **words).state_dict()
    with pytest.raises(ValueError, match=told):
        kind(parameters()).load_state_dict(saved)


def test_kernels_that_torch_does_not_have_are_refused():
    class Plain(FirstOrder):
        slots, update, update_all = HeavyBall.slots, HeavyBall.update, HeavyBall.update_all

    with pytest.raises(ValueError, match="fused must be False or None for Plain: torch has no kernel for it"):
        Plain(parameters(), {"lr": 0.1, "fused": True})
    theta = parameters((torch.complex64,))
    optimizer = Adam(theta, fused=True)
    with pytest.raises(ValueError, match="fused must be False or None for complex parameters"):
        descend(optimizer, theta, 1)
    with pytest.raises(TypeError, match="abstract"):
        FirstOrder(parameters(), {"lr": 0.1})  # type: ignore[abstract]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("kind", "path"), with_paths(KINDS, FUSED))
def test_steps_on_a_gpu_are_those_on_the_cpu(kind, path):
    here, there = parameters(), [p.detach().cuda().requires_grad_() for p in parameters()]
    one, two = KINDS[kind](here, lr=0.05), KINDS[kind](there, lr=0.05, **path)
    for _ in range(10):
        for p, q in zip(here, there, strict=True):
            p.grad, q.grad = p.detach() * 2, q.detach() * 2
        one.step()
        two.step()
    assert same(here, [p.cpu() for p in there], 1e-6 if "fused" in path else 1e-12)  # its counter is in float32
