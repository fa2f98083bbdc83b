"""What can be trained in this chapter: starts from which a few steps fit a wave, or tell letters never seen before.

What is kept of a run is the network at its start: `MAML(lemmata.load(run), steps, inner_lr)` adapts it. `LOST` has what
must lose to it. Reached with seed 0: waves 0.49 by maml, 0.53 by anil and reptile, 0.63 by fomaml; letters 86 % by
maml, 88 % by anil, 81 % by fomaml, 65 % by reptile, which does not beat the neighbours in as many updates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.data.tasks import sinusoids
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure, Image, Line, Points
from lemmata.marks import recipe
from lemmata.meta.episodes import Episodes
from lemmata.meta.maml import ANIL, MAML, FirstOrderMAML
from lemmata.meta.reptile import Reptile
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built
from lemmata.train.options import Options

__all__ = ["LearntStartConfig", "learn_letters", "learn_waves"]

METHODS = {"maml": MAML, "fomaml": FirstOrderMAML, "reptile": Reptile, "anil": ANIL}
SHOWN = (0, 1, 5, 10)  # steps
# lemmata train maml --data sinusoids --inner-steps 0: the same network, waves and updates, none of them adapted to; and
# the same test episodes by the support picture with the largest cosine.
LOST = {
    "sinusoids": {"joint training": 2.20},
    "glyphs": {"nearest neighbour by cosine": 0.647, "nearest neighbour by cosine, blurred": 0.764},
}
HOW = {
    "sinusoids": "mean squared error of the same test waves after the same ten steps",
    "glyphs": "accuracy on the same test episodes of letters in other fonts, moved a little; ours after 20 steps",
}


@dataclass(frozen=True)
class LearntStartConfig:
    """What can be chosen of the inner loop."""

    inner_steps: int = 1
    """Gradient steps on the support of each task; with none the tasks are learnt together."""
    inner_lr: float = 0.02
    """Their size."""

    def __post_init__(self) -> None:
        validate.count("inner_steps", self.inner_steps, least=0)
        validate.positive("inner_lr", self.inner_lr)


# --- Sine waves ---

WAVES = {name: LearntStartConfig(5 if name == "reptile" else 1) for name in METHODS}


@recipe("maml", "fomaml", "reptile", "anil", data="sinusoids", metric="mse after 10 steps")
def learn_waves(
    data: str = "sinusoids",
    config: LearntStartConfig = WAVES,  # type: ignore[assignment]
    options: Options = Options(epochs=6, batch_size=16, lr=3e-3, schedule="cosine", evaluate=2),  # noqa: B008 - frozen
    system: str = "maml",
) -> Experiment:
    """Sine waves from ten points each: what matters is how well ten steps fit a new one."""
    train, test = sinusoids(n=6400, test=1).train, load(data).test
    arguments = {"inputs": 1, "outputs": 1, "widths": (40, 40), "activation": "tanh"}
    middling = int(test.amplitude.argsort()[len(test) // 2])

    def error_after(model: nn.Module, tasks: Examples, steps: int) -> Tensor:
        found = _make_learner(system, model, config)(tasks.x, tasks.y, tasks.query_x, steps)
        return (found - tasks.query_y).square().mean()

    def metrics(model: nn.Module, batch: Examples) -> dict[str, float]:
        counts = {1: "1 step", 10: "10 steps"}
        return {f"mse after {words}": float(error_after(model, batch, steps)) for steps, words in counts.items()}

    def sample(model: nn.Module, count: int, generator: torch.Generator) -> Figure:
        return _wave_figure(system, model, config, test, int(torch.randint(len(test), (), generator=generator)))

    return Experiment(
        built(MLP, arguments, options), arguments, _tasks_alone(train), _tasks_alone(test), options,
        loss=_loss_of(system, config), metrics=metrics, metric="mse after 10 steps", sample=sample,
        picture=lambda model: _wave_figure(system, model, config, test, middling), notes=_baseline_notes(data),
    )  # fmt: skip


def _tasks_alone(waves: Examples) -> Examples:
    """Without amplitude and phase, which would tell what a wave is."""
    return Examples(**{name: waves[name] for name in ("x", "y", "query_x", "query_y")})


def _wave_figure(system: str, model: nn.Module, config: LearntStartConfig, waves: Examples, which: int) -> Figure:
    """One wave, the points that are learnt from, and the network after no step and after some."""
    place, across = next(model.parameters()), torch.linspace(-5, 5, 101)
    wave = waves[which]
    x, y, query = (part[None].to(place) for part in (wave.x, wave.y, across[:, None]))
    with evaluating(model):
        learner = _make_learner(system, model, config)
        found = {steps: learner(x, y, query, steps)[0, :, 0].cpu() for steps in SHOWN}
    marks: list[Any] = [Line(across, wave.amplitude * (across - wave.phase).sin(), "the wave")]
    marks += [Line(across, curve, f"{steps} step{'' if steps == 1 else 's'}") for steps, curve in found.items()]
    marks.append(Points(wave.x[:, 0], wave.y[:, 0], "what is learnt from"))
    return Figure("A new wave after a few steps", "x", "y", marks)


# --- Letters ---

WAYS, LEARNT, TESTED = 5, 16000, 400
TAKEN = 20  # steps on a new task; more of them than in training do no harm
LETTERS = {
    "maml": LearntStartConfig(1, 0.3),
    "fomaml": LearntStartConfig(5, 0.05),
    "reptile": LearntStartConfig(5, 0.05),
    "anil": LearntStartConfig(1, 0.3),
}


@recipe("maml", "fomaml", "reptile", "anil", data="glyphs", metric="accuracy")
def learn_letters(
    data: str = "glyphs",
    config: LearntStartConfig = LETTERS,  # type: ignore[assignment]
    options: Options = Options(epochs=2, batch_size=16, lr=2e-3, schedule="cosine", evaluate=1),  # noqa: B008
    system: str = "maml",
) -> Experiment:
    """Five letters of an alphabet never seen, from one picture each, in other fonts and moved a little."""
    found = load(data)
    pictures = {name: part.x for name, part in found.parts.items()}
    train, test = letter_tasks(found.train, LEARNT, 1, options.seed), letter_tasks(found.test, TESTED, 2, 1)
    arguments = {"inputs": 28 * 28, "outputs": WAYS, "widths": (100, 64), "activation": "relu"}
    loss_of_pictures = _loss_of(system, config)

    def seen(batch: Examples) -> Examples:
        return letter_pictures(pictures, batch)

    def metrics(model: nn.Module, batch: Examples) -> dict[str, float]:
        tasks, learner = seen(batch), _make_learner(system, model, config)
        logits = learner(tasks.x, tasks.y, tasks.query_x, TAKEN)  # (tasks, queries, ways)
        return {"accuracy": float((logits.argmax(2) == tasks.query_y).double().mean())}

    def figure(model: nn.Module, which: int) -> Figure:
        place, task = next(model.parameters()), test[which : which + 1]
        tasks = seen(task).to(place)
        with evaluating(model):
            taken = _make_learner(system, model, config)(tasks.x, tasks.y, tasks.query_x, TAKEN)[0].argmax(1)
        right = taken == tasks.query_y[0]
        marks = [Image(_rounded_values(pixels), f"letter {k + 1}") for k, pixels in enumerate(tasks.x[0])]
        for k, pixels in enumerate(tasks.query_x[0]):
            said = f"{int(taken[k]) + 1}" if right[k] else f"{int(taken[k]) + 1}, is {int(tasks.query_y[0, k]) + 1}"
            marks.append(Image(_rounded_values(pixels), f"taken for {said}"))
        note = f"The first five are learnt from; {int(right.sum())} of the other {len(right)} are right."
        return Figure("Five new letters from one picture each", marks=marks, note=note)

    def sample(model: nn.Module, count: int, generator: torch.Generator) -> Figure:
        return figure(model, int(torch.randint(TESTED, (), generator=generator)))

    return Experiment(
        built(MLP, arguments, options), arguments, train, test, options, metrics=metrics, metric="accuracy",
        loss=lambda model, batch: loss_of_pictures(model, seen(batch)), largest=True, sample=sample,
        picture=lambda model: figure(model, 0), notes=_baseline_notes(data),
    )  # fmt: skip


def letter_tasks(letters: Examples, count: int, queries: int, seed: int) -> Examples:
    """Episodes as numbers of pictures (tasks, pictures), and how each is turned and moved (tasks, pictures, 3)."""
    numbers = torch.arange(len(letters), dtype=torch.float64)
    episodes = Episodes(numbers, letters.y, WAYS, 1, queries, count, seed=seed).batch(range(count))
    generator, columns = torch.Generator().manual_seed(seed), dict(episodes.columns)
    for name in ("x", "query_x"):
        drawn = torch.rand((*columns[name].shape, 3), generator=generator)
        columns[name] = columns[name].long()
        columns[f"{name}_moves"] = (2 * drawn - 1) * torch.tensor([0.2, 1 / 7, 1 / 7])  # twelve degrees, two pixels
    return Examples(**columns, test=torch.full((count,), queries > 1))


def letter_pictures(pictures: Mapping[str, Tensor], tasks: Examples) -> Examples:
    """The episodes with their pictures, turned and moved."""
    of = pictures["test" if bool(tasks.test[0]) else "train"].to(tasks.x_moves)
    columns = {name: _moved_pictures(of[tasks[name]], tasks[f"{name}_moves"]) for name in ("x", "query_x")}
    return Examples(**columns, y=tasks.y, query_y=tasks.query_y)


def _moved_pictures(pictures: Tensor, moves: Tensor) -> Tensor:
    """Pictures (..., 28, 28) turned by an angle and moved by a part of their half width, (..., 3)."""
    angle, across, down = moves.reshape(-1, 3).T
    cosine, sine = angle.cos(), angle.sin()
    matrix = torch.stack([cosine, -sine, across, sine, cosine, down], 1).reshape(-1, 2, 3)
    flat = pictures.reshape(-1, 1, *pictures.shape[-2:])
    grid = functional.affine_grid(matrix, list(flat.shape), align_corners=False)
    return functional.grid_sample(flat, grid, align_corners=False).reshape(pictures.shape)


def _rounded_values(pixels: Tensor) -> Tensor:
    return pixels.detach().cpu().double().clamp(0, 1).mul(100).round().div(100)


# --- Both ---


def _make_learner(system: str, model: nn.Module, config: LearntStartConfig) -> Any:
    return METHODS[system](model, config.inner_steps, config.inner_lr)


def _loss_of(system: str, config: LearntStartConfig) -> Callable[[nn.Module, Examples], Tensor]:
    return lambda model, batch: _make_learner(system, model, config).loss(batch)


def _baseline_notes(data: str) -> Mapping[str, Any]:
    return {"baselines": LOST[data], "how": HOW[data]}
