"""What can be trained in this chapter: many networks at once, by descent or by sampling, that say how sure they are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.bayes.chain_learner import ChainLearner
from lemmata.bayes.ensemble import MLPEnsemble, summed_over_members
from lemmata.bayes.hmc import HamiltonianMonteCarlo
from lemmata.bayes.predictive import ClassificationPredictive, RegressionPredictive, gaussian_nll
from lemmata.bayes.stochastic_gradient import SGLD
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Band, Figure, Image, Line, Points
from lemmata.marks import recipe
from lemmata.train.device import choose_device
from lemmata.train.experiment import Experiment
from lemmata.train.forms import accuracy, built, likeliest_class
from lemmata.train.gradient import GradientLearner
from lemmata.train.options import Options
from lemmata.train.pictures import decision_map

__all__ = ["EnsembleConfig", "HMCConfig", "SGLDConfig", "sample_by_hmc", "sample_by_sgld", "train_ensemble"]

LEVEL = 0.9  # probability of the bands
# lemmata train ensemble --members 1, the mean of seeds 0 to 4; its bands hold 83 % of the targets where they say 90 %.
# LogisticRegression(ridge=0), which gives up where the classes are separated; networks of the same size by L-BFGS to
# a loss of 1e-10, the mean of seeds 0 to 4.
LIKELIEST = {"breast_cancer": 1.207, "moons": 0.109}
SINGLE = {"diabetes": 1.134, "digits": 0.110}
HOW = "negative log-likelihood of the same test examples; a single net: lemmata train ensemble --members 1, mean of 5"
HOW_LIKELIEST = (
    "negative log-likelihood of the same test examples, by the weights of greatest likelihood on the training part"
)


class _Task(NamedTuple):
    """Data as networks take them, and how their answers are judged, drawn and used."""

    train: Examples
    test: Examples
    outputs: int
    nll: Callable[[Tensor, Tensor], Tensor]  # of one member's outputs: one number for each example
    metrics: Callable[[MLPEnsemble, Examples], dict[str, float]]
    predict: Callable[[MLPEnsemble, Examples], dict[str, Tensor]]
    picture: Callable[[MLPEnsemble], Figure]
    classes: tuple[str, ...] = ()


def _task_of_data(data: str) -> _Task:
    found = load(data)
    return _classification_task(found) if found.classes else _regression_task(found)


# --- Numbers: the mean and the variance of normal noise, for each example ---


def _regression_task(found: Any) -> _Task:
    """Targets in standard deviations around their mean in the training part."""
    mean, scale = float(found.train.y.mean()), float(found.train.y.std())
    train, test = (Examples(x=part.x, y=(part.y - mean) / scale) for part in (found.train, found.test))

    def predictive(system: MLPEnsemble, x: Tensor) -> RegressionPredictive:
        with torch.no_grad():
            outputs = system(x).double()
        return RegressionPredictive(outputs[..., 0], outputs[..., 1].exp(), system.weights.double())

    def metrics(system: MLPEnsemble, batch: Examples) -> dict[str, float]:
        said, y = predictive(system, batch.x), batch.y.double()
        doubt = float((said.model_variance / said.variance).mean())
        off = float((said.mean - y).abs().mean()) * scale
        return {
            "nll": float(said.nll(y).mean()),
            "coverage": said.coverage(y, LEVEL).value,
            "mae": off,
            "model fraction": doubt,
        }

    def predict(system: MLPEnsemble, examples: Examples) -> dict[str, Tensor]:
        said = predictive(system, examples.x)
        low, high = said.band(LEVEL)
        spreads = {"model sd": said.model_variance, "noise sd": said.noise_variance}
        inside = {"predicted": said.mean, f"low {LEVEL:.0%}": low, f"high {LEVEL:.0%}": high}
        in_units = {name: mean + scale * values for name, values in inside.items()}
        return in_units | {name: scale * values.sqrt() for name, values in spreads.items()}

    def picture(system: MLPEnsemble) -> Figure:
        found = predict(system, test.to(next(system.parameters()).device))
        order = found["predicted"].argsort().cpu()
        middle, low, high = (list(found.values())[k].cpu()[order] for k in range(3))
        y, rank = (mean + scale * test.y)[order], torch.arange(len(order), dtype=torch.float32)
        inside = (low <= y) & (y <= high)
        marks: list[Any] = [Line(rank, middle, "predicted"), Band(rank, low, high, f"{LEVEL:.0%} band")]
        marks += [Points(rank[inside], y[inside], "measured, inside the band")]
        marks += [Points(rank[~inside], y[~inside], "outside")] if not bool(inside.all()) else []
        note = f"{float(inside.double().mean()):.0%} of the test examples lie inside their {LEVEL:.0%} bands."
        return Figure("What was measured, in its band", "test examples by prediction", "target", marks, note=note)

    def nll(output: Tensor, target: Tensor) -> Tensor:
        return gaussian_nll(output, target)

    return _Task(train, test, 2, nll, metrics, predict, picture)


# --- Classes ---


def _classification_task(found: Any) -> _Task:
    train, test = (Examples(x=part.x.flatten(1), y=part.y) for part in (found.train, found.test))
    flat, grey = train.x.shape[1] == 2, found.train.x.ndim == 3

    def predictive(system: MLPEnsemble, x: Tensor) -> ClassificationPredictive:
        with torch.no_grad():
            logits = system(x.flatten(1)).double()
        return ClassificationPredictive(logits, system.weights.double())

    def metrics(system: MLPEnsemble, batch: Examples) -> dict[str, float]:
        said = predictive(system, batch.x)
        scores = {"nll": float(said.nll(batch.y).mean()), "accuracy": float(accuracy(said.probability, batch.y))}
        return scores | {"model entropy": float(said.model_entropy.mean())}

    def predict(system: MLPEnsemble, examples: Examples) -> dict[str, Tensor]:
        said = predictive(system, examples.x)
        return likeliest_class(said.probability) | {
            "model entropy": said.model_entropy,
            "noise entropy": said.noise_entropy,
        }

    def picture(system: MLPEnsemble) -> Figure:
        home = next(system.parameters())
        if flat:
            note = "Lighter where the networks disagree or all hesitate."
            drawn = decision_map(lambda x: predictive(system, x.to(home)).probability.float(), test, found.classes)
            return Figure("The mean of all networks", drawn.x_label, drawn.y_label, drawn.marks, note=note)
        said = predictive(system, test.x.to(home))
        if grey:
            worst = said.entropy.argsort(descending=True)[:10].cpu()
            taken = said.probability.argmax(1).cpu()
            marks = [
                Image(
                    found.test.x[k].mul(100).round().div(100),
                    f"{found.classes[taken[k]]}? is {found.classes[test.y[k]]}, {float(said.entropy[k]):.2f} nats",
                )
                for k in worst.tolist()
            ]
            return Figure("Where the networks are least sure", marks=marks)
        right = said.probability.argmax(1).cpu() == test.y
        model, noise = said.model_entropy.cpu(), said.noise_entropy.cpu()
        marks = [Points(noise[right], model[right], "right")]
        marks += [Points(noise[~right], model[~right], "wrong")] if not bool(right.all()) else []
        return Figure("Doubt about the test examples", "noise, nats", "model, nats", marks)

    def nll(output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target, reduction="none")

    return _Task(train, test, len(found.classes), nll, metrics, predict, picture, tuple(found.classes))


# --- Three ways to many networks ---


@dataclass(frozen=True)
class EnsembleConfig:
    """What can be chosen of networks that are trained side by side."""

    members: int = 10
    """Networks, each from its own initial weights."""
    widths: tuple[int, ...] = (32,)
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        validate.count("members", self.members, most=10_000)


USUAL_ENSEMBLE = EnsembleConfig()
DESCENT = Options(epochs=30, batch_size=64, optimizer="adamw", lr=0.005, evaluate=10, device="cpu")


@recipe("ensemble", data="diabetes digits", metric="nll")
def train_ensemble(
    data: str = "diabetes", config: EnsembleConfig = USUAL_ENSEMBLE, options: Options = DESCENT
) -> Experiment:
    """Networks from several initial weights, trained in one batch, which say how far they disagree."""
    task = _task_of_data(data)
    system, arguments = _make_networks(task, config.members, config.widths, options)
    return _make_experiment(
        system, arguments, task, options, {"a single net": SINGLE[data]}, HOW, loss=_summed_loss(task)
    )


@dataclass(frozen=True)
class SGLDConfig:
    """What can be chosen of chains that walk by stochastic gradients."""

    chains: int = 32
    """Chains; the last place of each is one network of the ensemble."""
    widths: tuple[int, ...] = (32,)
    """Units of each hidden layer."""
    prior_variance: float = 0.1
    """Variance of the normal prior of every weight."""
    temperature: float = 1.0
    """1 for the posterior, less for networks nearer to its maximum."""

    def __post_init__(self) -> None:
        validate.count("chains", self.chains, most=10_000)
        validate.positive("prior_variance", self.prior_variance)
        validate.number("temperature", self.temperature, least=0)


USUAL_SGLD = SGLDConfig()
WALK = Options(epochs=200, batch_size=64, lr=1e-4, schedule="cosine", evaluate=50, device="cpu")


@recipe("sgld", data="diabetes", metric="nll")
def sample_by_sgld(data: str = "diabetes", config: SGLDConfig = USUAL_SGLD, options: Options = WALK) -> Experiment:
    """Networks drawn from the posterior by many chains of stochastic gradient Langevin dynamics."""
    return _walk_experiment(data, config, options)


# Cooler than the posterior, which in so many weights is wide: at temperature 1 it is no better than a single net.
DIGITS_SGLD = SGLDConfig(chains=24, widths=(64,), prior_variance=2.0, temperature=0.1)
LONG_WALK = Options(epochs=80, batch_size=64, lr=6e-4, schedule="cosine", evaluate=20, device="cpu")


@recipe("sgld", data="digits", metric="nll")
def sample_classifiers_by_sgld(
    data: str = "digits", config: SGLDConfig = DIGITS_SGLD, options: Options = LONG_WALK
) -> Experiment:
    """Classifiers of handwritten digits, drawn from the posterior by stochastic gradient Langevin dynamics."""
    return _walk_experiment(data, config, options)


def _walk_experiment(data: str, config: SGLDConfig, options: Options) -> Experiment:
    task = _task_of_data(data)
    system, arguments = _make_networks(task, config.chains, config.widths, options)
    size = len(task.train)
    steps = options.steps or options.epochs * -(-size // options.batch_size)
    device = choose_device(options.device)
    sampler = SGLD(system.parameters(), options.lr, size, config.prior_variance, config.temperature)
    words: dict[str, Any] = {"options": options, "steps": steps, "device": device, "optimizer": sampler}
    learner = GradientLearner(system, _summed_loss(task), task.metrics, **words)
    return _make_experiment(system, arguments, task, options, {"a single net": SINGLE[data]}, HOW, learner=learner)


@dataclass(frozen=True)
class HMCConfig:
    """What can be chosen of chains of Hamiltonian Monte Carlo; each epoch is one transition of all of them."""

    chains: int = 16
    """Chains, all moved at once."""
    members: int = 256
    """Draws that are kept as networks of the ensemble, a multiple of the chains."""
    adaptation: int = 300
    """Transitions that tune step and mass, and are not kept."""
    leapfrogs: int = 10
    """Steps of each trajectory at most; each is drawn between half of it and all."""
    prior_variance: float = 1.0
    """Variance of the normal prior of every weight."""
    widths: tuple[int, ...] = ()
    """Units of each hidden layer; without, the model is a logistic regression."""

    def __post_init__(self) -> None:
        for name in ("chains", "members", "leapfrogs"):
            validate.count(name, getattr(self, name), most=100_000)
        validate.count("adaptation", self.adaptation, least=0)
        validate.positive("prior_variance", self.prior_variance)


ALL = 65_536  # examples of a batch: no more are in the data
LOGISTIC, SMALL = HMCConfig(prior_variance=0.3), HMCConfig(widths=(16,), adaptation=150)
TRANSITIONS = Options(epochs=600, batch_size=ALL, precision="float64", evaluate=100, device="cpu")


FEWER = Options(epochs=300, batch_size=ALL, precision="float64", evaluate=50, device="cpu")


@recipe("hmc", data="breast_cancer", metric="nll")
def sample_by_hmc(
    data: str = "breast_cancer", config: HMCConfig = LOGISTIC, options: Options = TRANSITIONS
) -> Experiment:
    """Bayesian logistic regression: weights drawn from their posterior by Hamiltonian Monte Carlo."""
    return _sampled_experiment(data, config, options)


@recipe("hmc", data="moons", metric="nll")
def sample_small_networks(data: str = "moons", config: HMCConfig = SMALL, options: Options = FEWER) -> Experiment:
    """Small networks drawn from their posterior by Hamiltonian Monte Carlo, and the map that they predict together."""
    return _sampled_experiment(data, config, options)


def _sampled_experiment(data: str, config: HMCConfig, options: Options) -> Experiment:
    task = _task_of_data(data)
    if options.epochs <= config.adaptation:
        raise ValueError(f"epochs must be more than the {config.adaptation} of the adaptation, got {options.epochs}")
    system, arguments = _make_networks(task, config.members, config.widths, options)
    kernel = partial(HamiltonianMonteCarlo, steps=config.leapfrogs, jitter=0.5)
    learner = ChainLearner(
        system, task.train, kernel, config.prior_variance, chains=config.chains, warmup=config.adaptation,
        draws=options.epochs - config.adaptation, loss=task.nll, metrics=task.metrics, seed=options.seed,
    )  # fmt: skip
    lost = {"maximum likelihood": LIKELIEST[data]}
    return _make_experiment(system, arguments, task, options, lost, HOW_LIKELIEST, learner=learner)


def _make_networks(
    task: _Task, members: int, widths: tuple[int, ...], options: Options
) -> tuple[MLPEnsemble, dict[str, Any]]:
    inputs = task.train.x.shape[1]
    arguments = {"inputs": inputs, "outputs": task.outputs, "members": members, "widths": tuple(widths)}
    return built(MLPEnsemble, arguments, options), arguments


def _summed_loss(task: _Task) -> Callable[[MLPEnsemble, Examples], Tensor]:
    """The mean negative log-likelihood of each member, added up, so that each has its own gradient."""
    whole = summed_over_members(lambda output, target: task.nll(output, target).mean())
    return lambda system, batch: whole(system(batch.x), batch.y)


def _make_experiment(
    system: MLPEnsemble,
    arguments: dict[str, Any],
    task: _Task,
    options: Options,
    lost: dict[str, float],
    how: str,
    **more: Any,
) -> Experiment:
    if "learner" not in more:
        more["metrics"] = task.metrics
    return Experiment(
        system, arguments, task.train, task.test, options, metric="nll", classes=task.classes, picture=task.picture,
        predict=task.predict, notes={"baselines": lost, "how": how}, **more,
    )  # fmt: skip
