"""Every number that a recipe prints "for comparison" is measured by a test: here, or where the recipe is tested.

`@pytest.mark.measures("chapter.recipes_x", "name of the baseline", ...)` on a test says which numbers it measures;
those that take minutes are marked `long` and belong to `dev.py torture`.
"""

import ast
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from lemmata import fit
from lemmata.connectionism import recipes as connectionism
from lemmata.data import load
from lemmata.feedforward import recipes as feedforward
from lemmata.geometric import Graph, recipes_graphs, recipes_points, recipes_sets
from lemmata.recurrent import recipes as recurrent
from lemmata.recurrent import recipes_memory
from lemmata.train import run_experiment
from lemmata.transformers import recipes_gpt
from lemmata.tricks import recipes as tricks

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "src" / "lemmata").rglob("recipes*.py"))


# --- None is invented ---


def written_baselines(text):
    """Names of the numbers that stand, written out, in what a file of recipes gives as its baselines."""
    tree = ast.parse(text)
    constants = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign) if named(node)}
    given = [
        value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "baselines"
    ]
    names = {node.id for value in given for node in ast.walk(value) if isinstance(node, ast.Name)}
    given += [constants[name] for name in names & constants.keys()]
    return {name for value in given for name in names_of_numbers(value)}


def named(node):
    return isinstance(node.targets[0], ast.Name)


def names_of_numbers(node):
    """Keys of literal numbers, in nested dictionaries too; what is computed (1 / 6, a call) needs no measurement."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Dict):
            for key, value in zip(inner.keys, inner.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, float):
                    yield key.value


def measured_baselines():
    """(recipe file, name) of every number that a test says it measures; the test must also compare something."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)) if "mark.measures" in text else ():
            for mark in getattr(function, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.measures":
                    home, *names = map(ast.literal_eval, mark.args)
                    assert "approx" in ast.unparse(function), f"{path.name}: {function.name} compares nothing"
                    yield from ((home, name) for name in names)


def test_every_written_baseline_is_measured_by_a_test():
    written = {
        (".".join(path.relative_to(ROOT / "src" / "lemmata").with_suffix("").parts), name)
        for path in RECIPES
        for name in written_baselines(path.read_text(encoding="utf-8"))
    }
    assert len(written) > 20
    assert written == set(measured_baselines()), "measure them in a test marked `measures`, or leave them out"


def test_an_invented_baseline_would_be_noticed():
    invented = 'ROBUST = {"no defence": 0.10}\ndef recipe():\n    return {"notes": {"baselines": ROBUST[data]}}\n'
    assert written_baselines(invented) == {"no defence"}
    assert written_baselines('notes = {"baselines": {"guessing": 0.5, "half": 1 / 2}}') == {"guessing"}
    assert not written_baselines('notes = {"baselines": baselines(found)}\nRATES = {"a": 0.5}')


# --- With scikit-learn, in seconds ---


def arrays(found):
    """x and y of training and test as arrays, one row an example."""
    parts = (found.train, found.test)
    return [array for part in parts for array in (part.x.flatten(1).double().numpy(), part.y.numpy())]


@pytest.mark.measures("connectionism.recipes", "digits", "moons", "separable")
@pytest.mark.parametrize("data", connectionism.BASELINES)
def test_scikit_learns_perceptron(data):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y, x_test, y_test = arrays(load(data))
    peers = [linear.Perceptron(max_iter=100, tol=None, random_state=seed).fit(x, y) for seed in range(5)]
    reached = statistics.mean(peer.score(x_test, y_test) for peer in peers)
    assert connectionism.BASELINES[data] == pytest.approx(reached, abs=2e-3)


@pytest.mark.measures("feedforward.recipes", "logistic regression")
@pytest.mark.measures("recurrent.recipes_memory", "logistic regression", "logistic regression, last row alone")
def test_logistic_regression_on_digits():
    linear = pytest.importorskip("sklearn.linear_model")
    x, y, x_test, y_test = arrays(load("digits"))
    for columns, name in (
        (slice(None), "logistic regression"),
        (slice(-8, None), "logistic regression, last row alone"),
    ):
        peer = linear.LogisticRegression(max_iter=2000).fit(x[:, columns], y)
        reached = peer.score(x_test[:, columns], y_test)
        assert recipes_memory.DIGITS[name] == pytest.approx(reached, abs=5e-3)
    assert feedforward.DIGITS["logistic regression"] == recipes_memory.DIGITS["logistic regression"]


@pytest.mark.measures("geometric.recipes_points", "logistic regression on histograms of the coordinates")
def test_logistic_regression_on_histograms_of_the_coordinates():
    linear = pytest.importorskip("sklearn.linear_model")
    found = load("furniture")

    def histograms(x):  # (models, points, 3) -> (models, 48)
        scale = (x - x.mean(1, keepdim=True)).abs().amax((1, 2), keepdim=True)
        centred = (x - x.mean(1, keepdim=True)) / scale
        rows = [torch.cat([torch.histc(axis, 16, -1, 1) for axis in cloud.T]) for cloud in centred]
        return (torch.stack(rows) / x.shape[1]).double().numpy()

    peer = linear.LogisticRegression(C=1000, max_iter=5000).fit(histograms(found.train.x), found.train.y.numpy())
    reached = peer.score(histograms(found.test.x), found.test.y.numpy())
    name = "logistic regression on histograms of the coordinates"
    assert recipes_points.CLASSES[name] == pytest.approx(reached, abs=0.02)  # 59 models: one may fall to either side


@pytest.mark.measures("geometric.recipes_graphs", "perceptron on words alone", "perceptron on features alone")
@pytest.mark.parametrize("data", recipes_graphs.BASELINES)
def test_a_network_on_the_graph_without_its_edges(data):
    found = load(data)
    options = replace(recipes_graphs.LEARNING, device="cpu")
    features = nn.functional.normalize(found.x, p=1, dim=1)
    bare = Graph([], nodes=len(features), x=features)
    alone = recipes_graphs.node_classification(found, bare, recipes_graphs.CONFIGS["gcn"], options, "gcn")
    (said,) = recipes_graphs.BASELINES[data].values()
    assert said == pytest.approx(run_experiment(alone).scores["accuracy"], abs=0.04)


# --- Trainings and searches, in minutes ---


@pytest.mark.long
@pytest.mark.measures("feedforward.recipes", "MLPClassifier", "MLPClassifier, tuned", "RBF SVM, C = 10")
@pytest.mark.parametrize(("data", "said"), [("digits", feedforward.DIGITS), ("fashion", feedforward.FASHION)])
def test_scikit_learns_networks(data, said):
    neural = pytest.importorskip("sklearn.neural_network")
    selection, svm = pytest.importorskip("sklearn.model_selection"), pytest.importorskip("sklearn.svm")
    x, y, x_test, y_test = arrays(load(data))
    plain = [neural.MLPClassifier(random_state=seed, max_iter=500).fit(x, y).score(x_test, y_test) for seed in range(5)]
    assert said["MLPClassifier"] == pytest.approx(statistics.mean(plain), abs=0.01)
    settings = {
        "hidden_layer_sizes": [(100,), (200,), (100, 100)],
        "alpha": [1e-4, 1e-2, 1.0],
        "batch_size": [64, 200],
    }
    search = selection.GridSearchCV(neural.MLPClassifier(random_state=0, max_iter=500), settings, cv=3, n_jobs=-1)
    assert said["MLPClassifier, tuned"] == pytest.approx(search.fit(x, y).score(x_test, y_test), abs=0.015)
    if "RBF SVM, C = 10" in said:
        assert said["RBF SVM, C = 10"] == pytest.approx(svm.SVC(C=10).fit(x, y).score(x_test, y_test), abs=0.005)


@pytest.mark.long
@pytest.mark.measures("geometric.recipes_sets", "the concatenation")
@pytest.mark.parametrize("task", recipes_sets.BASELINES)
def test_a_perceptron_of_the_pictures_one_after_another(task):
    experiment = recipes_sets.read_digit_sets(config=recipes_sets.DigitSetConfig(task=task))
    size = experiment.test.x[0].numel()

    def flat(part):
        x = torch.zeros(len(part), size)
        x[:, : part.x[0].numel()] = (part.x * part.mask[..., None]).flatten(1)
        return x, part.y[:, None]

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    fit(network, flat(experiment.train), loss=nn.SmoothL1Loss(), epochs=15, batch_size=64, lr=2e-3, device="cpu")
    x, y = flat(experiment.test)
    reached = (network(x) - y).abs().mean().item()
    assert recipes_sets.BASELINES[task]["the concatenation"] == pytest.approx(reached, rel=0.1)


@pytest.mark.long
@pytest.mark.measures("tricks.recipes", "the same student without a teacher")
def test_a_student_without_a_teacher():
    usual = tricks.distill_clothing().options
    alone = [
        tricks.distill_clothing(config=tricks.DistillConfig(hard=1.0), options=replace(usual, seed=seed, device="cpu"))
        for seed in range(5)
    ]
    reached = statistics.mean(run_experiment(experiment).scores["accuracy"] for experiment in alone)
    assert tricks.BASELINES["the same student without a teacher"] == pytest.approx(reached, abs=0.01)


@pytest.mark.long
@pytest.mark.measures("transformers.recipes_gpt", "lru", "mingru")
@pytest.mark.parametrize("system", ["lru", "mingru"])
def test_recurrent_networks_on_the_same_text(system):
    experiment = recurrent.write_text(system=system)
    experiment = replace(experiment, options=replace(experiment.options, device="cpu"))
    assert recipes_gpt.BASELINES[system] == pytest.approx(run_experiment(experiment).scores["bits"], abs=0.05)
