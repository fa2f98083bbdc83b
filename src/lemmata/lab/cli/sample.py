"""`lemmata sample`: what a trained system makes up."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lemmata.lab.cli.terminal import console
from lemmata.lab.words import UserError

OF_TEXTS = ("prompt", "length", "temperature")


@dataclass(frozen=True)
class Arguments:
    """Let a trained system make something up: pictures, text, sounds, or what it recalls from noise."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of a run, such as runs/hopfield-digits-1."""
    count: int = 5
    """How many."""
    seed: int = 0
    """Decides what comes."""
    prompt: str | None = None
    """What a text begins with."""
    length: int | None = None
    """Characters of a text, samples of a sound."""
    temperature: float | None = None
    """How much a text or a sound dares: at 0 always the likeliest, at 1 as likely as the system holds it."""
    out: Path | None = None
    """Write it to this file: .svg for pictures, .txt for text, .wav for sounds."""


def run(arguments: Arguments) -> int:
    if not 1 <= arguments.count <= 1000:
        raise UserError(f"--count must be from 1 to 1000, got {arguments.count}")
    if arguments.seed < 0:
        raise UserError(f"--seed must be >= 0, got {arguments.seed}")
    import torch

    from lemmata.files import write_whole
    from lemmata.lab.figures.svg import svg
    from lemmata.lab.figures.terminal import draw
    from lemmata.lab.recipe_choice import FAILURES, one_sentence
    from lemmata.lab.trained_run import restore

    trained = restore(arguments.run)
    if trained.experiment.sample is None:
        raise UserError(f"{trained.name} makes nothing up: try lemmata predict {arguments.run}")
    generator = torch.Generator().manual_seed(arguments.seed)
    given = {word: getattr(arguments, word) for word in OF_TEXTS if getattr(arguments, word) is not None}
    for word in given:
        if word not in inspect.signature(trained.experiment.sample).parameters:
            raise UserError(f"{trained.name} on {trained.record.get('data')} takes no --{word}: leave it out")
    try:
        with torch.no_grad():
            made = trained.experiment.sample(trained.system, arguments.count, generator, **given)
    except FAILURES as error:
        raise one_sentence(error) from error
    if isinstance(made, bytes):
        suffix, content = ".wav", made
    else:
        suffix, content = (".txt", made.encode()) if isinstance(made, str) else (".svg", svg(made).encode())
    if arguments.out:
        if arguments.out.suffix != suffix:
            raise UserError(f"--out must end in {suffix}, got {arguments.out}")
        write_whole(arguments.out, content)
        console().print(f"written to {arguments.out}", soft_wrap=True)
    elif isinstance(made, str):
        print(made)
    elif isinstance(made, bytes):
        raise UserError(f"a sound is written to a file: lemmata sample {arguments.run} --out sound.wav")
    else:
        console().print(draw(made, 96))
    return 0
