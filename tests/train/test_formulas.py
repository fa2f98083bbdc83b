"""The loop against formulas written out here: update rules, schedules, clipping, averages, and means over examples."""

import math

import pytest
import torch
from torch import nn

from lemmata.data.examples import Examples
from lemmata.train import GradientLearner, Options, Watcher, fit, gradient, losses, lr_factor
from lemmata.train.randomness import batch_indices

EXAMPLES, BATCH, EPOCHS = 10, 4, 3  # batches of 4, 4 and 2
STEPS = 9
X = torch.randn(EXAMPLES, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64) + 1
START = torch.tensor([[0.3, -0.1, 0.7]], dtype=torch.float64)


def line():
    system = nn.Linear(3, 1, bias=False).double()
    system.load_state_dict({"weight": START})
    return system


def options(**words):
    usual = {"epochs": EPOCHS, "batch_size": BATCH, "lr": 0.05, "optimizer": "sgd", "momentum": 0.0, "device": "cpu"}
    return Options(**usual | {"precision": "float64"} | words)


def squares(weight, x, y):
    """The mean squared error of a line, and its gradient."""
    wrong = x @ weight.T - y
    return wrong.square().mean(), 2 * wrong.T @ x / len(x)


def sgd(weight, gradient, rate, step, memory, momentum=0.0, decay=0.0):
    gradient = gradient + decay * weight
    memory["speed"] = momentum * memory["speed"] + gradient if step > 1 else gradient
    return weight - rate * memory["speed"]


def adam(weight, gradient, rate, step, memory, decay=0.0, decoupled=False):
    if decoupled:
        weight = weight - rate * decay * weight
    else:
        gradient = gradient + decay * weight
    memory["first"] = 0.9 * memory.get("first", 0.0) + 0.1 * gradient
    memory["second"] = 0.999 * memory.get("second", 0.0) + 0.001 * gradient.square()
    first, second = memory["first"] / (1 - 0.9**step), memory["second"] / (1 - 0.999**step)
    return weight - rate * first / (second.sqrt() + 1e-8)


def by_hand(update=sgd, rates=(0.05,) * STEPS, clip=math.inf, average=0.0, **words):
    """(weights at the end, their moving average, what is told of each step) of gradient descent, step by step."""
    weight, mean, memory, told = START, None, {}, []
    for step in range(1, STEPS + 1):
        rows = batch_indices(0, (step - 1) // 3, (step - 1) % 3, BATCH, EXAMPLES)
        loss, gradient = squares(weight, X[rows], Y[rows])
        norm = gradient.norm()
        gradient = gradient * min(1.0, clip / (norm + 1e-6))  # torch keeps a millionth away from 0 / 0
        weight = update(weight, gradient, rates[step - 1], step, memory, **words)
        mean = weight if mean is None else average * mean + (1 - average) * weight
        told.append({"loss": loss, "lr": rates[step - 1], "grad_norm": norm})
    return weight, mean, told


class Told(Watcher):
    def __init__(self):
        self.steps, self.scores = [], {}

    def stepped(self, step, epoch, numbers):
        self.steps.append(dict(numbers))

    def evaluated(self, step, epoch, scores):
        self.scores[step] = dict(scores)


def close(found, expected):
    return torch.allclose(found.detach(), expected, rtol=1e-11, atol=0)


RULES = {
    "sgd": ({}, sgd, {}),
    "sgd with momentum": ({"momentum": 0.8}, sgd, {"momentum": 0.8}),
    "sgd with weight decay": ({"weight_decay": 0.3}, sgd, {"decay": 0.3}),
    "adam": ({"optimizer": "adam"}, adam, {}),
    "adam with weight decay": ({"optimizer": "adam", "weight_decay": 0.3}, adam, {"decay": 0.3}),
    "adamw": ({"optimizer": "adamw", "weight_decay": 0.3}, adam, {"decay": 0.3, "decoupled": True}),
}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("rule", RULES)
def test_every_update_rule_is_its_formula_also_in_uneven_parts(rule, accumulate):
    chosen, update, words = RULES[rule]
    run = fit(line(), (X, Y), options=options(accumulate=accumulate, **chosen))
    assert close(run.system.weight, by_hand(update, **words)[0])


RATES = {
    ("constant", 0): [1.0] * 9,
    ("linear", 0): [9 / 9, 8 / 9, 7 / 9, 6 / 9, 5 / 9, 4 / 9, 3 / 9, 2 / 9, 1 / 9],
    ("constant", 4): [1 / 4, 2 / 4, 3 / 4, 4 / 4, 1.0, 1.0, 1.0, 1.0, 1.0],
    ("linear", 4): [1 / 4, 2 / 4, 3 / 4, 4 / 4, 5 / 5, 4 / 5, 3 / 5, 2 / 5, 1 / 5],
    ("cosine", 0): [0.5 + 0.5 * math.cos(math.pi * step / 9) for step in range(9)],
    ("cosine", 4): [1 / 4, 2 / 4, 3 / 4, 4 / 4, *(0.5 + 0.5 * math.cos(math.pi * step / 5) for step in range(5))],
}


@pytest.mark.parametrize(("schedule", "warmup"), RATES)
def test_the_rate_of_every_step_is_that_of_its_schedule(schedule, warmup):
    told, rates = Told(), [0.05 * share for share in RATES[schedule, warmup]]
    run = fit(line(), (X, Y), options=options(schedule=schedule, warmup=warmup), watchers=[told])
    assert [numbers["lr"] for numbers in told.steps] == pytest.approx(rates, rel=1e-12)
    assert close(run.system.weight, by_hand(rates=rates)[0])


def test_the_step_after_the_warmup_has_the_full_rate_whatever_the_rounding():
    for steps in range(2, 400):
        for warmup in range(1, min(steps, 12)):
            rates = [lr_factor(step / steps * steps, steps, "constant", warmup) for step in range(warmup + 2)]
            assert rates == pytest.approx([min((step + 1) / warmup, 1) for step in range(warmup + 2)], rel=1e-12)


def test_a_long_gradient_is_shortened_before_the_step_and_its_length_told():
    told = Told()
    run = fit(line(), (X, Y), options=options(clip=0.5), watchers=[told])
    weight, _, expected = by_hand(clip=0.5)
    assert close(run.system.weight, weight)
    assert [numbers["grad_norm"] for numbers in told.steps] == pytest.approx([float(e["grad_norm"]) for e in expected])
    assert max(numbers["grad_norm"] for numbers in told.steps) > 2 > 0.5  # else nothing was shortened
    loose = fit(line(), (X, Y), options=options(clip=1e6))
    assert close(loose.system.weight, by_hand()[0])


def test_the_loss_that_is_told_is_that_of_the_batch_before_its_step():
    for accumulate in (1, 3):
        told = Told()
        fit(line(), (X, Y), options=options(accumulate=accumulate), watchers=[told])
        assert [numbers["loss"] for numbers in told.steps] == pytest.approx([float(e["loss"]) for e in by_hand()[2]])


def test_means_are_told_of_the_steps_since_the_last_time():
    x, y = X.repeat(8, 1), Y.repeat(8, 1)  # 40 batches of 2: every fourth is told
    each, told = [], Told()

    def loss(system, batch):
        each.append(float(squares(system.weight.detach(), batch.x, batch.y)[0]))
        return (system(batch.x) - batch.y).square().mean()

    fit(line(), (x, y), loss=loss, options=options(epochs=1, batch_size=2, steps=22), watchers=[told])
    expected = [sum(each[first : first + 4]) / 4 for first in range(0, 20, 4)] + [(each[20] + each[21]) / 2]
    assert [numbers["loss"] for numbers in told.steps] == pytest.approx(expected)


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_average_follows_the_weights_after_each_step_and_is_what_is_kept(decay):
    told, seen = Told(), []

    def metrics(system, batch):
        seen.append(system.weight.detach().clone())
        return {}

    run = fit(line(), (X, Y), test=(X, Y), metrics=metrics, options=options(ema_decay=decay), watchers=[told])
    mean = by_hand(average=decay)[1]
    assert close(run.system.weight, mean)
    assert all(close(weight, mean) for weight in seen[-2:])  # after the last step, and for the score of the run
    assert run.scores["loss"] == pytest.approx(float(squares(mean, X, Y)[0]))
    assert told.scores[9] == pytest.approx(run.scores)


def test_running_statistics_are_averaged_with_the_weights():
    def network():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)).double()

    seen, mean = [], None
    learner = GradientLearner(network(), options=options(ema_decay=0.75), steps=STEPS)
    for step in range(4):
        learner.step(Examples(x=X, y=Y), step / STEPS)
        seen.append(learner.system[1].running_mean.clone())
    for value in seen:
        mean = value if mean is None else 0.75 * mean + 0.25 * value
    assert close(learner.averaged.module[1].running_mean, mean)


@pytest.mark.parametrize("rows", [1, 3, 4, 10, 1000])
def test_scores_are_means_over_examples_whatever_blocks_they_are_computed_in(monkeypatch, rows):
    monkeypatch.setattr(gradient, "ROWS", rows)

    def metrics(system, batch):
        assert not system.training
        assert not torch.is_grad_enabled()
        return {"highest": batch.y.double().mean()}

    learner = GradientLearner(line(), metrics=metrics, options=options())
    scores = learner.evaluate(Examples(x=X, y=Y))
    assert scores == pytest.approx({"loss": float(squares(START, X, Y)[0]), "highest": float(Y.mean())}, rel=1e-12)
    assert learner.system.training


def test_a_share_of_a_batch_weighs_as_it_is_told():
    half, whole = line(), line()
    numbers = GradientLearner(half, options=options()).step(Examples(x=X, y=Y), 0.0, 0.5)
    GradientLearner(whole, options=options()).step(Examples(x=X, y=Y), 0.0)
    assert close(half.weight - START, 0.5 * (whole.weight.detach() - START))
    assert float(numbers["loss"]) == pytest.approx(float(squares(START, X, Y)[0]))  # what is told is not weighed


def test_whole_number_targets_are_classes_and_others_are_values():
    x, classes = torch.randn(6, 3), torch.tensor([0, 1, 2, 2, 1, 0])
    scores = torch.log_softmax(x, 1)
    expected = -sum(scores[i, c] for i, c in enumerate(classes)) / 6
    assert float(losses.default_loss(x, classes)) == pytest.approx(float(expected))
    values = torch.randn(6, 3)
    expected = (x - values).square().sum() / 18
    assert float(losses.default_loss(x, values)) == pytest.approx(float(expected))


class Scale(nn.Module):
    """Multiplies without a matrix product, which is all that some CPUs cannot do in bfloat16."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return (x * self.weight).sum(1, keepdim=True)


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_the_precision_is_that_of_the_forward_pass_and_weights_stay_wide(monkeypatch, precision):
    monkeypatch.setattr("lemmata.train.device._cpu_multiplies_bfloat16", lambda: True)
    seen = set()

    def loss(system, batch):
        narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        seen.add((torch.is_grad_enabled(), batch.x.dtype, batch.y.dtype, narrow))
        return (system(batch.x) - batch.y[:, None]).square().mean()

    examples = X.float(), torch.arange(EXAMPLES)
    run = fit(Scale(), examples, loss=loss, test=examples, options=options(precision=precision))
    wide = torch.float64 if precision == "float64" else torch.float32
    narrow = torch.bfloat16 if precision == "bfloat16" else None
    assert seen == {(learning, wide, torch.int64, narrow) for learning in (True, False)}
    assert run.system.weight.dtype is wide


def test_batches_come_in_the_order_of_the_epoch_and_progress_runs_from_0_to_1():
    class Noting:
        def __init__(self):
            self.seen = []

        def step(self, batch, progress):
            self.seen.append((batch.x.flatten().tolist(), progress))
            return {"loss": 0.0}

        def evaluate(self, examples):
            return {"loss": 0.0}

        def state(self):
            return {}

        def restore(self, state):
            pass

    learner = Noting()
    fit(None, {"x": torch.arange(10)[:, None]}, learner=learner, options=options(seed=5))
    batches = [(epoch, batch) for epoch in range(3) for batch in range(3)]
    rows = [batch_indices(5, epoch, batch, BATCH, EXAMPLES).tolist() for epoch, batch in batches]
    assert learner.seen == [(row, step / 9) for step, row in enumerate(rows)]


@pytest.mark.parametrize(("every", "steps", "told"), [(1, None, [3, 6, 9]), (2, None, [6, 9]), (1, 5, [3, 5])])
def test_evaluations_come_at_the_ends_of_epochs_and_at_the_last_step(every, steps, told):
    watcher = Told()
    run = fit(line(), (X, Y), test=(X, Y), options=options(evaluate=every, steps=steps), watchers=[watcher])
    assert list(watcher.scores) == told
    assert (run.steps, run.epochs) == (steps or 9, 2 if steps else 3)
    assert run.best == min(watcher.scores.values(), key=lambda scores: scores["loss"])


def test_on_the_way_validation_is_scored_and_at_the_end_the_test():
    watcher, other = Told(), (X + 1, Y)
    run = fit(line(), (X, Y), validation=(X, Y), test=other, options=options(), watchers=[watcher])
    weight = run.system.weight.detach()
    assert watcher.scores[9]["loss"] == pytest.approx(float(squares(weight, X, Y)[0]))
    assert run.scores["loss"] == pytest.approx(float(squares(weight, *other)[0]))
    assert fit(line(), (X, Y), options=options()).scores["loss"] == pytest.approx(float(squares(weight, X, Y)[0]))


@pytest.mark.parametrize(("largest", "best"), [(False, -3.0), (True, 5.0)])
@pytest.mark.parametrize("first", [math.nan, 2.0])
def test_the_best_score_is_the_largest_or_the_smallest_and_never_none(largest, best, first):
    scores = iter([first, -3.0, 5.0, 1.0, 0.0])
    watched = fit(
        line(), (X, Y), validation=(X, Y), test=(X, Y), metrics=lambda *_: {"score": next(scores)}, metric="score",
        largest=largest, options=options(epochs=4),
    )  # fmt: skip
    assert watched.best["score"] == best


def test_of_averaged_weights_the_best_are_given_back_and_scored():
    """The average of the best evaluation, not the weights beneath it, and not the average of the last step."""
    seen, scores = [], iter([0.1, 0.9, 0.5, 0.4])

    def metrics(system, batch):
        seen.append(system.weight.detach().clone())
        return {"score": next(scores, 0.0)}

    examples = {"validation": (X, Y), "test": (X[:5], Y[:5])}
    chosen = options(epochs=9, ema_decay=0.6, patience=2)
    run = fit(line(), (X, Y), **examples, metrics=metrics, metric="score", largest=True, options=chosen)
    assert (run.stopped, run.steps) == ("patience", 12)
    assert torch.equal(run.system.weight, seen[1])
    assert run.scores["loss"] == pytest.approx(float(squares(seen[1], X[:5], Y[:5])[0]), rel=1e-12)
    unstopped = fit(line(), (X, Y), test=(X, Y), options=options(epochs=2, ema_decay=0.6))
    assert close(run.system.weight, unstopped.system.weight.detach())


def test_scores_that_draw_are_the_same_at_every_evaluation_and_at_the_end():
    def loss(system, batch):
        return (system(batch.x) - batch.y).square().mean() * (1 + torch.rand(1)).squeeze()

    told = Told()
    noise = {"loss": loss, "metrics": lambda *_: {"noise": torch.rand(2)[1].item()}, "watchers": [told]}
    run = fit(line(), (X, Y), test=(X, Y), options=options(seed=3), **noise)
    torch.manual_seed(3)
    drawn = torch.rand(3)[2].item()  # the loss draws the first
    assert {run.scores["noise"], *(scores["noise"] for scores in told.scores.values())} == {drawn}
