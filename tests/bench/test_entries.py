"""The entries themselves, at a small size and in this process: all contenders that are here compute the same."""

import importlib

import pytest

from lemmata.bench.registry import FOLDER, entries
from lemmata.bench.results import disagreements
from lemmata.bench.rounds import Measured, installed

SMALL = {
    "perceptron_fit": {"POINTS": 3000, "FEATURES": 10},
    "ridge_fit": {"POINTS": 3000, "FEATURES": 10},
    "logistic_fit": {"POINTS": 3000, "FEATURES": 10},
    "softmax_cross_entropy": {
        "SIZES": dict.fromkeys(["images", "digits", "tokens", "smoothed"], (64, 10)),
    },
    "hopfield_recall": {"STATES": 30, "UNITS": 100, "PATTERNS": 8},
    "training_loop": {},
    "spectral_bounds": {"SIZE": 256},
    "woodbury_solve": {"SIZE": 256},
    "recurrent_layers": {"BATCH": 2, "FEATURES": 8},
    "linear_scan": {"BATCH": 2, "TIME": 64, "CHANNEL": 8},
    "muon_step": {"WIDTHS": {"cpu": 4}},
    "sam_step": {"WIDTHS": {"cpu": 8}},
    "optimizer_step": {"WIDTHS": {"cpu": 8}},
    "hessian_spectrum": {"POINTS": 16},
    "hessian_trace": {"POINTS": 48, "PROBES": 24},
    "hessian_product": {"SIZES": {"cpu": (12, 8, 16)}},
    "augmentation": {"COUNT": 300},
    "dropout": {"ROWS": 256},
    "pruning": {"SIZES": {"choice": (16, (32,)), "step": (16, (32,))}},
    "skip_gram": {"WORDS": 3000},
    "glove": {"WORDS": 300},
    "convolution": {
        "SIZES": {
            **dict.fromkeys(["short", "middle", "long"], (1, 1, 1, [(300, 20)])),
            "picture": (1, 1, 1, [(30, 5), (20, 4)]),
            **dict.fromkeys(["layer", "wide_layer"], (2, 3, 4, [(12, 3), (10, 3)])),
        }
    },
    "graph_step": {"SIZES": {"cpu": (50, 200)}},
    "sparse_product": {"SIZES": {"cpu": (50, 400, 7)}},
    "weisfeiler_lehman": {"NODES": 300, "PAIRS": 500},
    "attention": {"SHAPE": (2, 2, 10, 8)},
    "model_step": {
        "SIZES": {"gpt": (2, 12, 40, 32, 2, 4), "bert": (2, 12, 40, 32, 2, 4), "vit": (2, 32, 5, 32, 2, 4)},
    },
    "generation": {"SIZES": {"cpu": (5, 20, 40, 32, 2, 4)}},
    "pgd": {"COUNT": 50, "STEPS": 5, "LARGER": {"digits": 1, "enlarged": 2}},
    "carlini_wagner": {"COUNT": 10},
    "deepfool": {"COUNT": 10},
    "cascade": {"COUNT": 20, "STEPS": 10, "QUERIES": 20},
    "meta_step": {"TASKS": 2, "QUERIES": 1, "STEPS": 2, "CHANNELS": 8},
}
COMPILING = {"scan_compiled", "resnet50_step"}  # for minutes
CASES = [
    pytest.param(name, case, marks=[pytest.mark.long] if name in COMPILING or "compiled" in case else [])
    for name, entry in entries().items()
    for case in entry.cases
    if "cpu" in (entry.devices or "cpu").split()
]


def module_of(entry):
    return "lemmata.bench.contests." + ".".join(entry.path.relative_to(FOLDER).with_suffix("").parts)


def answers(entry, case):
    """What each contender computes; a limit computes nothing, but must run."""
    module = importlib.import_module(module_of(entry))
    problem = getattr(module, entry.problem)(case, "cpu")
    for one in entry.contenders_for(case):
        if not one.needs or installed(one.needs):
            result = getattr(module, one.function)(problem)()
            yield Measured(one, answer={} if one.role == "limit" else getattr(module, entry.agreement)(result))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_contenders_agree(monkeypatch, name, case):
    entry = entries()[name]
    for word, size in SMALL.get(entry.path.stem, {}).items():
        monkeypatch.setattr(f"{module_of(entry)}.{word}", size)
    measured = list(answers(entry, case))
    disagreements(measured, entry.within)
    assert [one.reason for one in measured] == [""] * len(measured)
    present = [
        one for one in entry.contenders_for(case) if one.role != "limit" and (not one.needs or installed(one.needs))
    ]
    assert sum(bool(one.answer) for one in measured) == len(present)
    assert len(present) >= 2 or all(one.needs for one in entry.contenders_for(case) if one.role == "peer")
