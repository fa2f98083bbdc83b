"""What can be trained in this chapter: a classifier with a certificate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.figure import Bars, Figure
from lemmata.generalization.certificate import Certificate, certify
from lemmata.generalization.pac_bayes import pac_bayes_objective
from lemmata.generalization.pac_bayes_classifier import PACBayesClassifier
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, likeliest_class
from lemmata.train.options import Options

__all__ = [
    "CertificateConfig",
    "OwnCertificateConfig",
    "certify_all_pictures",
    "certify_classes",
    "certify_file",
]

CONFIDENCE = 0.965
LEAST = 1e-4  # probabilities below it cost no more: the loss lies between 0 and 1
HALF = 0.5  # of the training in which the prior learns


@dataclass(frozen=True)
class CertificateConfig:
    """The network, its prior, and how the examples are divided between prior and bound."""

    widths: tuple[int, ...] = (256,)
    """Units of each hidden layer."""
    prior: Literal["learnt", "zero"] = "learnt"
    """Where the prior lies: learnt on a part of the examples, or where training begins, whatever the data."""
    fraction: float = 0.5
    """Fraction of the examples that the prior learns from; the bound rests on the others."""
    variance: float = 1e-3
    """Variance of each weight in the prior."""
    samples: int = 1000
    """Networks that are drawn for the certificate."""

    def __post_init__(self) -> None:
        for width in self.widths:
            validate.count("widths", width)
        validate.one_of("prior", self.prior, ("learnt", "zero"))
        validate.number("fraction", self.fraction, above=0, below=1)
        validate.positive("variance", self.variance)
        validate.count("samples", self.samples)


@dataclass(frozen=True)
class OwnCertificateConfig(CertificateConfig, FileChoices):
    """The same, and what can be chosen of the data of one's own."""


OPTIONS = Options(epochs=60, batch_size=64, lr=1e-3, evaluate=60)


@recipe("pacbayes", data="digits fashion moons", metric="certificate")
def certify_classes(
    data: str = "digits",
    config: CertificateConfig = CertificateConfig(),  # noqa: B008 - frozen
    options: Options = OPTIONS,
) -> Experiment:
    """A classifier with a certificate: a bound on its error on new examples, with confidence 0.965 in all."""
    return _experiment_of(load(data), config, options, BASELINES.get(data, {}))


FULL = CertificateConfig(fraction=0.7, samples=3000)
FULL_TRAINING = Options(epochs=20, batch_size=256, lr=1e-3, evaluate=20)


@recipe("pacbayes", data="mnist fashion_mnist kmnist", metric="certificate")
def certify_all_pictures(
    data: str = "fashion_mnist",
    config: CertificateConfig = FULL,
    options: Options = FULL_TRAINING,
) -> Experiment:
    """The same from 60,000 pictures that `lemmata data` fetches or reads."""
    return _experiment_of(load(data), config, options, BASELINES.get(data, {}))


@recipe("pacbayes", data="file", metric="certificate")
def certify_file(
    data: str | Dataset,
    config: OwnCertificateConfig = OwnCertificateConfig(),  # noqa: B008 - frozen
    options: Options = OPTIONS,
) -> Experiment:
    """The same for classes of one's own: a table, arrays or a folder of images."""
    # Means and scales of the columns are those of the rows that make the prior: the bound's rows must not choose them.
    made = (1 - config.test_fraction) * config.fraction
    found = load_file(data, replace(config, test_fraction=1 - made), options.seed)
    if not found.classes:
        raise ValueError("pacbayes takes classes, and the target of this file is a number: name a column of classes")
    more = {"preparation": found.extra["preparation"]}
    if isinstance(data, Dataset):
        return _experiment_of(found, config, options, {}, **more)
    order = torch.randperm(len(found.test), generator=torch.Generator().manual_seed(options.seed))
    cut = round(len(order) * config.test_fraction / (1 - made))
    bound, prior = found.test[order[cut:]], found.train if config.prior == "learnt" else found.train[:0]
    train = Examples(x=torch.cat([prior.x, bound.x]), y=torch.cat([prior.y, bound.y]))
    divided = Dataset(found.name, {"train": train, "test": found.test[order[:cut]]}, found.classes, found.extra)
    return _experiment_of(divided, config, options, {}, torch.arange(len(train)) < len(prior), **more)


FREE, MCALLESTER = "prior that no data made, variance 0.01", "McAllester's form"
BASELINES: Mapping[str, Mapping[str, float]] = {
    "digits": {FREE: 0.922, MCALLESTER: 0.138},
    "fashion": {FREE: 0.932, MCALLESTER: 0.294},
    "moons": {MCALLESTER: 0.185},
}


def _experiment_of(
    data: Dataset,
    config: CertificateConfig,
    options: Options,
    lost: Mapping[str, float],
    for_prior: Tensor | None = None,
    **more: Any,
) -> Experiment:
    arguments = {
        "inputs": data.train.x[0].numel(), "outputs": len(data.classes),
        "widths": tuple(config.widths), "variance": config.variance,
    }  # fmt: skip
    system = built(PACBayesClassifier, arguments, options)
    drawn = torch.Generator().manual_seed(options.seed)
    if for_prior is None:
        of_prior = config.fraction if config.prior == "learnt" else 0.0
        for_prior = torch.rand(len(data.train), generator=drawn) < of_prior
    train = Examples(x=data.train.x.flatten(1), y=data.train.y, for_prior=for_prior)
    test = Examples(x=data.test.x.flatten(1), y=data.test.y)
    learner = BoundLearner(system, train, config, options)

    def picture(system: PACBayesClassifier) -> Figure:
        found, other = learner.certificate(system), learner.certificate(system, "mcallester")
        wrong = learner.errors(test)["gibbs_error"]
        names = ["error on test examples", "certificate", "with McAllester's form", "prior's means, test-set bound"]
        heights = [wrong, found.bound.value, other.bound.value, found.test_set.value]
        return Figure("Certificate", "", "error", marks=[Bars(names, heights)], note=str(found).replace("\n", ";"))

    def predict(system: PACBayesClassifier, examples: Examples) -> dict[str, Tensor]:
        return likeliest_class(system.mean(examples.x.flatten(1)).softmax(1))

    def write(system: PACBayesClassifier) -> str:
        return str(learner.certificate(system))

    how = (
        f"bounds at confidence {CONFIDENCE}, seed 0: of the same network in another form, of one without a learnt prior"
    )
    return Experiment(
        system, arguments, train, test, options, learner=learner, metric="certificate", classes=data.classes,
        picture=picture, predict=predict, write=write,
        notes={"baselines": dict(lost), "how": how} if lost else {}, **more,
    )  # fmt: skip


class BoundLearner:
    """First the prior learns from its own examples, then the posterior lowers the bound on the others."""

    def __init__(self, system: PACBayesClassifier, train: Examples, config: CertificateConfig, options: Options):
        self.system, self.train, self.config = system, train, config
        self.optimizer = torch.optim.Adam(system.parameters(), lr=options.lr)
        self.posterior = config.prior == "zero"
        self.seed = options.seed
        self.n = int((~train.for_prior).sum())

    def step(self, batch: Examples, progress: float) -> dict[str, Tensor | float]:
        if not self.posterior and progress >= HALF:
            self._begin_posterior()
        rows = batch[batch.for_prior != self.posterior]
        if not len(rows):
            return {"loss": 0.0}
        self.optimizer.zero_grad()
        logits = self.system(rows.x)
        loss = functional.cross_entropy(logits, rows.y)
        if self.posterior:
            surrogate = _bounded_loss(logits, rows.y)
            loss = pac_bayes_objective(surrogate, self.system.kl().to(surrogate.dtype), self.n, CONFIDENCE, "quadratic")
        loss.backward()
        if not self.posterior:  # the noise of the prior is given; only its means learn
            for log_std in self.system.log_std:
                log_std.grad = None
        self.optimizer.step()
        return {"loss": loss.detach()}

    def _begin_posterior(self) -> None:
        self.posterior = True
        made = self.train[self.train.for_prior]
        self.system.set_prior(learnt_from=(made.x, made.y))
        self.optimizer.state.clear()

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """The certificate needs none of these examples; the errors are what it is to be compared with."""
        return {"certificate": self.certificate(self.system).bound.value, **self.errors(examples)}

    def errors(self, examples: Examples) -> dict[str, float]:
        """Of networks that are drawn, and the accuracy of their mean."""
        with torch.no_grad():
            error = (self.system.mean(examples.x).argmax(1) != examples.y).double().mean().item()
            drawn = torch.Generator(examples.x.device).manual_seed(self.seed)
            gibbs = self.system.gibbs_error(examples.x, examples.y, 50, drawn)
        return {"gibbs_error": gibbs, "accuracy": 1 - error}

    def certificate(self, system: PACBayesClassifier, form: str = "kl") -> Certificate:
        """Of the posterior as it is now, on the examples that did not make its prior."""
        rest = self.train[~self.train.for_prior]
        device = next(system.parameters()).device
        drawn = torch.Generator(device).manual_seed(self.seed)
        data = rest.x.to(device), rest.y.to(device)
        return certify(system, data, self.config.samples, CONFIDENCE, form, drawn)

    def state(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), "posterior": self.posterior}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.posterior = bool(state["posterior"])


def _bounded_loss(logits: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy, cut off where a probability is as good as none, and rescaled to end at 1."""
    nll = functional.cross_entropy(logits, y, reduction="none")
    ceiling = -torch.tensor(LEAST).log().item()
    return (nll / ceiling).clamp(max=1.0).mean()
