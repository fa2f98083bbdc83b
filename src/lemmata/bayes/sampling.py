r"""`sample`: draws from any density that can be written down, by many chains as one tensor."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from lemmata import validate
from lemmata.bayes.chain_streams import ChainStreams
from lemmata.bayes.chees import ChEES
from lemmata.bayes.draws import Draws
from lemmata.bayes.transition import Kernel, LogDensity, Transition
from lemmata.bayes.warmup import MASSES, Warmup
from lemmata.marks import system
from lemmata.train import checkpoint as checkpoints
from lemmata.train import progress as bars
from lemmata.train.interrupt import asked_to_stop

__all__ = ["sample"]


@system("sample", title="Sampling by Markov chains", kind="function")
def sample(
    log_density: LogDensity,
    start: Float[Tensor, "*chains dimension"],
    *,
    chains: int | None = None,
    draws: int = 1000,
    warmup: int = 1000,
    kernel: Kernel[Any] | Callable[[LogDensity], Kernel[Any]] | None = None,
    mass: str = "diagonal",
    seed: int | None = None,
    generator: Generator | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
) -> Draws:
    r"""Draw from a density by `chains` chains: `warmup` transitions that tune the kernel, then `draws` that count.

    `log_density` takes the positions of all chains, (chains, dimension), and gives one number for each, the logarithm
    of the density up to a constant; autograd gives the gradient. `kernel` is a kernel, or makes one of the density: a
    class, or `functools.partial(HamiltonianMonteCarlo, steps=20)`. By default it is ChEES-HMC, tuned on all chains
    together. `mass` says what the warm-up learns of it: "diagonal", "dense", or "kept" as the kernel has it.

    Each chain has its own stream of random numbers, whatever the number of chains. With `warmup=0` a chain is therefore
    bit for bit what it is alone, if the density works row by row (sums and products of a row's entries do; a matrix
    product may round otherwise for other sizes, and then chains are alike in distribution only). A warm-up pools all
    chains, so that it ties them to each other.

    Ctrl-C gives back what is drawn. With `checkpoint` a folder, everything is written there every `checkpoint_every`
    transitions and at the end; the same call goes on from there, to the same bits, also with more `draws` than before.

    Shapes:
        start: (dimension,), where all chains start, or (chains, dimension)


    >>> draws = sample(lambda x: -x.square().sum(1) / 2, torch.zeros(2), chains=16, draws=200, warmup=200, seed=0)
    >>> draws.values.shape, draws.summary().diagnostics.r_hat.max().item() < 1.02
    (torch.Size([16, 200, 2]), True)
    """
    position = _start_positions(start, chains)
    validate.count("draws", draws)
    validate.count("warmup", warmup, least=0)
    validate.count("checkpoint_every", checkpoint_every)
    validate.one_of("mass", mass, MASSES)
    run = _Run(_make_kernel(kernel, log_density), position, draws, warmup, mass, _seed_of(seed, generator))
    if checkpoint is not None:
        run.go_on_from(Path(checkpoint), seeded=seed is not None or generator is not None)
    with asked_to_stop() as asked, _progress_bar(progress, warmup + draws) as shown:
        while run.done < warmup + draws and asked.signal is None:
            run.step()
            shown(run.done)
            if checkpoint is not None and run.done % checkpoint_every == 0:
                run.save(Path(checkpoint))
    if checkpoint is not None:
        run.save(Path(checkpoint))
    if run.drawn == 0 or asked.signal not in (None, 2):
        asked.obey()
    return run.draws(interrupted=run.drawn < draws)


class _Run:
    """Chains under way: where they are, and what they drew."""

    def __init__(self, kernel: Any, position: Tensor, draws: int, warmup: int, mass: str, seed: int) -> None:
        chains, dimension = position.shape
        self.settings = {"chains": chains, "dimension": dimension, "warmup": warmup, "dtype": str(position.dtype)}
        self.streams = ChainStreams(seed, chains)
        self.warmup = Warmup(kernel, warmup, dimension, mass)
        takes_generator = len(inspect.signature(kernel.init).parameters) > 1
        self.state = kernel.init(position, self.streams) if takes_generator else kernel.init(position)
        self.total, self.drawn, self.gradients, self.warmup_gradients = draws, 0, 0, 0
        self.values = position.new_empty(draws, chains, dimension)
        self.records = [
            torch.empty(draws, chains, dtype=kind, device=position.device) for kind in _record_dtypes(position)
        ]

    @property
    def done(self) -> int:
        return self.warmup.done + self.drawn

    def step(self) -> None:
        """One transition, of the warm-up or one that counts."""
        if self.warmup.done < self.warmup.transitions:
            self.state, transition = self.warmup.step(self.state, self.streams)
            self.warmup_gradients += transition.gradients
            return
        self.state, transition = self.warmup.kernel.step(self.state, self.streams)
        self.values[self.drawn] = self.state.position
        for record, value in zip(self.records, transition[:4], strict=True):
            record[self.drawn] = value
        self.gradients += transition.gradients
        self.drawn += 1

    def draws(self, interrupted: bool) -> Draws:
        """Chain by chain what was drawn so far."""
        values, accepted, acceptance, energy, divergent = (
            each[: self.drawn].transpose(0, 1).contiguous() for each in (self.values, *self.records)
        )
        records = (accepted, acceptance, energy, divergent)
        return Draws(values, *records, self.gradients, self.warmup_gradients, self.warmup.kernel, interrupted)

    def save(self, folder: Path) -> None:
        """Everything that `go_on_from` needs."""
        counts = {"drawn": self.drawn, "gradients": self.gradients, "warmup_gradients": self.warmup_gradients}
        tree = {
            "settings": self.settings,
            "counts": counts,
            "streams": self.streams.state_dict(),
            "warmup": self.warmup.state_dict(),
            "state": list(self.state),
            "values": self.values[: self.drawn],
            "records": [record[: self.drawn] for record in self.records],
        }
        checkpoints.save(folder, self.done, tree)

    def go_on_from(self, folder: Path, seeded: bool) -> None:
        """Where the newest checkpoint of the folder stands, if there is one."""
        found = checkpoints.newest(folder) if folder.is_dir() else None
        if found is None:
            return
        tree = found.state
        if tree["settings"] != self.settings:
            raise ValueError(
                f"checkpoint holds a run with {tree['settings']}, not {self.settings}: give another folder"
            )
        if seeded and tree["streams"]["seed"] != self.streams.seed:
            raise ValueError(
                f"checkpoint holds a run with another seed, {tree['streams']['seed']}: give another folder"
            )
        if tree["counts"]["drawn"] > self.total:
            raise ValueError(f"checkpoint holds {tree['counts']['drawn']} draws already: ask for at least as many")
        device = self.values.device
        self.streams.load_state_dict(tree["streams"])
        self.warmup.load_state_dict(tree["warmup"], device)
        self.state = type(self.state)(*(each.to(device) for each in tree["state"]))
        vars(self).update(tree["counts"])
        self.values[: self.drawn] = tree["values"].to(device)
        for record, before in zip(self.records, tree["records"], strict=True):
            record[: self.drawn] = before.to(device)


def _record_dtypes(like: Tensor) -> tuple[torch.dtype, ...]:
    """The dtypes of accepted, acceptance, energy and divergent."""
    assert Transition._fields[:4] == ("accepted", "acceptance", "energy", "divergent")
    return torch.bool, like.dtype, like.dtype, torch.bool


def _start_positions(start: Tensor, chains: int | None) -> Tensor:
    validate.floating("start", start)
    if start.ndim == 1:
        return start.detach().repeat(validate.count("chains", 16 if chains is None else chains), 1)
    validate.matrix("start", start, "chains, dimension")
    if chains is not None and chains != len(start):
        raise ValueError(f"chains must be the {len(start)} rows of start, got {chains}: leave it out")
    return start.detach()


def _make_kernel(kernel: Any, log_density: LogDensity) -> Any:
    if not callable(log_density):
        raise TypeError(f"log_density must be callable, got {type(log_density).__name__}")
    if kernel is None:
        return ChEES(log_density)
    made = kernel(log_density) if isinstance(kernel, type) or not hasattr(kernel, "init") else kernel
    if not (hasattr(made, "init") and hasattr(made, "step")):
        raise TypeError(f"kernel must have the methods init and step, or make what has them, got {type(made).__name__}")
    return made


def _seed_of(seed: int | None, generator: Generator | None) -> int:
    if seed is not None and generator is not None:
        raise ValueError("give either seed or generator: a generator only draws the seed")
    if seed is not None:
        return validate.count("seed", seed, least=0)
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


@contextmanager
def _progress_bar(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, where one is wanted."""
    if not bars.wanted(progress):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("sampling", total=total)
        yield lambda done: bar.update(task, completed=done)
