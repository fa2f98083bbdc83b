"""The recipes of the chapter, at a tiny size: that all of them train, go on where they stopped, and what they show."""

import math
from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.data import Examples, load
from lemmata.figure import Line
from lemmata.recurrent import recipes, recipes_memory
from lemmata.recurrent.cells import CELLS
from lemmata.recurrent.recipes import TextConfig
from lemmata.recurrent.recipes_memory import MemoryConfig, PixelConfig
from lemmata.recurrent.sequence_reader import SequenceReader
from lemmata.recurrent.task_gradients import _gradient_norms, _theory_bound, gradient_reach
from lemmata.train import Options, run_experiment

TINY = TextConfig(width=8, hidden=8, depth=1, dropout=0.1, window=32)
FEW = Options(steps=2, batch_size=4, clip=1.0, device="cpu")


def text(cell, config=TINY, options=FEW):
    return recipes.write_text(config=config, options=options, system=cell)


def task(cell, data, options=FEW, **config):
    if data == "digits":
        chosen = PixelConfig(width=8, hidden=8, **config)
        return recipes_memory.read_digits(data, chosen, options, cell)
    chosen = MemoryConfig(width=8, hidden=8, **{"lag": 10, **config})
    return recipes_memory.recall(data, chosen, options, cell)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("data", ["shakespeare", "digits", "adding", "echo"])
def test_every_cell_trains_on_every_data_set(cell, data):
    experiment = text(cell) if data == "shakespeare" else task(cell, data)
    before = [p.detach().clone() for p in experiment.system.parameters()]
    run = run_experiment(replace(experiment, test=experiment.test[:4], picture=None))
    assert run.steps == 2
    assert math.isfinite(run.scores[experiment.metric])
    after = list(run.system.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert experiment.arguments["cell"] == cell


@pytest.mark.parametrize("make", [lambda o: text("lru", options=o), lambda o: task("mingru", "adding", o)])
def test_a_run_stopped_on_its_way_goes_on_to_the_same_end(tmp_path, make):
    options = replace(FEW, steps=6, ema_decay=0.9)
    whole = run_experiment(replace(make(options), picture=None))
    for steps in (3, 6):
        experiment = replace(make(replace(options, steps=steps)), picture=None)
        kind = type(experiment.system).__lemmata_system__["id"]
        record = {"built": kind, "arguments": experiment.arguments}
        run_experiment(experiment, out=tmp_path / "run", resume=steps == 6, record=record)
    again = lemmata.load(tmp_path / "run").state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.system.state_dict().items())


def test_double_precision_trains_too():
    run = run_experiment(replace(text("lru", options=replace(FEW, precision="float64")), picture=None))
    assert next(run.system.parameters()).dtype is torch.float64


# --- Text ---


def test_letters_are_learnt_in_a_few_steps():
    experiment = text(
        "mingru", replace(TINY, width=32, hidden=32), Options(steps=60, batch_size=16, lr=1e-2, device="cpu")
    )
    assert run_experiment(replace(experiment, picture=None)).scores["bits"] < 4.5  # all 70 alike: 6.1


def test_windows_are_passages_of_the_text_and_the_test_is_another():
    experiment, data = text("lru"), load("shakespeare")
    assert torch.equal(experiment.train.x[5], data.train.x[40:72])
    assert torch.equal(experiment.train.y[5], data.train.x[41:73])
    assert torch.equal(experiment.test.x[1], data.validation.x[1024:2048])


def test_texts_begin_with_the_prompt_and_depend_on_the_seed_alone():
    experiment = text("gru")
    made = [
        experiment.sample(experiment.system, 2, torch.Generator().manual_seed(s), prompt="Enter ", length=30)
        for s in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]
    for written in made[0].split(f"\n{'-' * 20}\n"):
        assert written.startswith("Enter ")
        assert len(written) == 36
    with pytest.raises(ValueError, match="prompt must hold at least one character"):
        experiment.sample(experiment.system, 1, torch.Generator(), prompt="")
    with pytest.raises(ValueError, match="characters that the model has read, got '€': leave it out"):
        experiment.sample(experiment.system, 1, torch.Generator(), prompt="A€")


def test_the_picture_shows_the_cost_by_context_and_what_is_written():
    experiment = text("lru")
    experiment.system.train()
    figure = experiment.picture(experiment.system)
    assert [line.label for line in figure.marks] == ["the model", "unigram", "trigram", "5-gram"]
    model = figure.marks[0]
    assert all(5.5 < bits < 7 for bits in model.y)  # nothing is learnt yet
    assert model.x[0] == 1
    assert model.x[-1] < 1024
    assert figure.note.startswith("It writes: Ham. ")
    assert experiment.system.training
    assert experiment.write(experiment.system).startswith("Ham. ")


# --- Tasks ---


def test_an_echo_is_learnt_over_a_few_steps():
    options = Options(steps=200, batch_size=32, lr=1e-2, device="cpu")
    experiment = task("mingru", "echo", options, lag=5)
    assert run_experiment(replace(experiment, picture=None)).scores["accuracy"] > 0.9


@pytest.mark.parametrize("cell", ["elman", "lru", "mingru", "minlstm"])
@pytest.mark.parametrize("data", ["adding", "echo"])
def test_no_gradient_exceeds_what_theory_allows(cell, data):
    experiment = task(cell, data, lag=30)
    system, batch = experiment.system.double(), experiment.test[:8]
    x = batch.x.double() if data == "adding" else batch.x
    norms = _gradient_norms(system, x, batch.y)
    layer = system.layers[0]
    bound, label = _theory_bound(layer.layer, layer.before(system.embed(x)).detach(), len(norms))
    assert len(norms) == x.shape[1] + 1
    assert label.startswith("bound")
    assert (norms / norms[0] <= bound[:, None] * (1 + 1e-9)).all()


def test_gradients_are_those_of_differences():
    system = SequenceReader(2, 1, "elman", width=4, hidden=3).double()
    x, y = torch.randn(1, 6, 2, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)

    def loss(state):
        layer, below = system.layers[0], system.embed(x)
        for now in below[:, 2:].unbind(1):
            output, state = layer.step(now, state)
        return system.read(output)[0, 0].square()

    with torch.no_grad():
        _, states = system.with_states(x)
        middle, step = states[2], 1e-6
        slopes = [(loss(middle + step * e) - loss(middle - step * e)) / (2 * step) for e in torch.eye(3).double()]
    assert _gradient_norms(system, x, y)[4, 0].item() == pytest.approx(torch.stack(slopes).norm().item(), rel=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "lru"])
def test_the_figure_of_gradients_has_measured_and_theory(cell):
    experiment = task(cell, "digits", depth=1)
    figure = gradient_reach(experiment.system.train(), experiment.test[:3])
    assert experiment.system.training
    assert figure == experiment.picture(experiment.system) or len(experiment.test) > 3
    assert all(isinstance(mark, Line) for mark in figure.marks)
    assert len(figure.marks) == (2 if cell == "lru" else 1)
    assert figure.marks[0].y[0] == 1
    assert len(figure.marks[0].x) == 65
    assert bool(figure.note) == (cell == "lstm")
    deep = gradient_reach(task("lru", "echo", depth=2).system, task("lru", "echo").test[:3])
    assert "lowest layer alone" in deep.note


def test_predictions_name_classes_or_sums():
    digits = task("gru", "digits")
    for examples in (load("digits").test, digits.test, Examples(x=load("digits").test.x.flatten(1))):
        found = digits.predict(digits.system, examples)
        assert found["class"].shape == (359,)
        assert (found["probability"] >= 0.1).all()
    by_rows = task("gru", "digits", read="rows")
    assert by_rows.test.x.shape == (359, 8, 8)
    assert torch.equal(by_rows.test.x, load("digits").test.x)
    adding = task("gru", "adding")
    assert adding.predict(adding.system, adding.test)["sum"].shape == (1000,)
    echo = task("gru", "echo")
    assert set(echo.predict(echo.system, echo.test)["class"].tolist()) <= set(range(8))


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_name_the_fix():
    with pytest.raises(ValueError, match="window must be >= 1, got 0"):
        TextConfig(window=0)
    with pytest.raises(ValueError, match="memory must be >= 2, got 1"):
        TextConfig(memory=1)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got 1"):
        TextConfig(dropout=1)
    with pytest.raises(ValueError, match="window must be below the 336222 characters of the text, got 400000"):
        text("lru", replace(TINY, window=400_000))
    with pytest.raises(ValueError, match="read must be one of pixels, rows, got 'columns'"):
        PixelConfig(read="columns")
    with pytest.raises(ValueError, match="lag must be >= 2, got 1"):
        MemoryConfig(lag=1)
    with pytest.raises(ValueError, match="hidden must be >= 1, got 0"):
        MemoryConfig(hidden=0)
    with pytest.raises(ValueError, match="memory must be >= 2, got 1"):
        MemoryConfig(memory=1)
