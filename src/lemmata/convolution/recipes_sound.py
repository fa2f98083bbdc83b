"""What `lemmata train wavenet` does: a voice that speaks numbers, learnt sample by sample and heard as a WAV file.

What the defaults reach (seed 0): 4.14 bits a sample on words that were not learnt from; linear prediction has 4.42. A
field of 32 ms knows a vowel but no word, and from silence it makes silence. So it is given the beginning of a word, up
to where it is loudest, and goes on: the vowel is held and dies away.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lemmata import validate
from lemmata.convolution.wavenet import WaveNet, WaveNetConfig
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.data.sound import mu_law_inverse, wav_bytes
from lemmata.figure import Band, Figure
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Language, chosen
from lemmata.train.options import Options

__all__ = ["SpeechConfig", "speak_numbers"]

HELD_OUT = ("sixteen", "nineteen", "seventy", "eighty")  # their beginnings and ends are heard in other words
READ_AT_ONCE = 4096  # samples of a test window
PROMPT = 1024  # samples of a recorded beginning, an eighth of a second
BASELINES = {"single samples": 7.098, "the sample before": 4.906, "linear prediction": 4.419}
HOW = (
    "Bits a sample on the words held out. The first two count codes, or pairs of them, in the training words; linear "
    "prediction takes the eight amplitudes before, and the size of its last 32 errors for the spread of a Laplace law."
)


@dataclass(frozen=True)
class SpeechConfig(WaveNetConfig):
    """What can be chosen of a WaveNet, and of how it hears."""

    depth: int = 8
    """Layers in a stack, with dilations 1, 2, 4, ...; 8 see 256 samples, 32 ms."""
    window: int = 2048
    """Samples heard in one piece."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("window", self.window, least=2)
        if self.levels != 256:
            raise ValueError(f"levels must be 256, as mu-law codes have, got {self.levels}")


@recipe("wavenet", data="speech", metric="bits")
def speak_numbers(
    data: str = "speech",
    config: SpeechConfig = SpeechConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=4, lr=3e-3, schedule="cosine", warmup=30, clip=1.0, evaluate=5),  # noqa: B008
) -> Experiment:
    """Numbers spoken by one voice, 8,000 samples a second: how well the next one is foreseen, and how it sounds."""
    found = load(data)
    train, test = (torch.cat(_word_clips(found, held_out)) for held_out in (False, True))
    if config.window > len(train):
        raise ValueError(f"window must be at most the {len(train)} samples there are, got {config.window}")
    arguments = chosen(config, without=("window",))
    # Windows that overlap: what stands at the beginning of one, with little before it, is in the middle of another.
    heard = Examples(x=train.unfold(0, config.window, -(-config.window // 2)))
    rate = found.extra["rate"]

    beginnings = torch.stack([clip[loudest - PROMPT : loudest] for clip, loudest in _loudest_position(found)])

    def sample(
        system: WaveNet, count: int, generator: torch.Generator, length: int = 4000, temperature: float = 0.9
    ) -> bytes:
        return wav_bytes(_continue_sound(system, beginnings, count, generator, length, temperature).flatten(), rate)

    def files(system: WaveNet) -> dict[str, bytes]:
        return {"sample.wav": sample(system, len(HELD_OUT), torch.Generator().manual_seed(0))}

    def picture(system: WaveNet) -> Figure:
        made = _continue_sound(system, beginnings, 1, torch.Generator().manual_seed(0), 4000, 0.9)[0]
        clip, loudest = _loudest_position(found)[0]
        recorded = mu_law_inverse(clip[loudest - PROMPT : loudest + 4000])
        marks = [_wave_outline(recorded, 1.0, "recorded"), _wave_outline(made, -1.0, "gone on with")]
        note = f"From {HELD_OUT[0]}, which was not learnt from. The first {PROMPT:,} samples of both are the recording."
        return Figure("One voice", "samples", "amplitude, one above the other", marks, note=note)

    return Language(lambda system, batch: system.loss(batch.x)).experiment(
        WaveNet, arguments, heard, Examples(x=test.unfold(0, READ_AT_ONCE, READ_AT_ONCE)), options,
        picture=picture, sample=sample, files=files, notes={"baselines": BASELINES, "how": HOW},
    )  # fmt: skip


def _word_clips(words: Dataset, held_out: bool) -> list[Tensor]:
    """The codes of each word that is learnt from, or of each that is held out."""
    chosen = [place for place, name in enumerate(words.classes) if (name in HELD_OUT) == held_out]
    return [words.train.code[place, : words.train.length[place]] for place in chosen]


def _loudest_position(words: Dataset) -> list[tuple[Tensor, int]]:
    """Each word held out, and where it is loudest, though not before a whole prompt."""
    clips = _word_clips(words, held_out=True)
    return [(clip, max(PROMPT, int(mu_law_inverse(clip).abs().argmax()))) for clip in clips]


def _continue_sound(
    system: WaveNet, beginnings: Tensor, count: int, generator: torch.Generator, length: int, temperature: float
) -> Tensor:
    """(count, PROMPT + length) amplitudes: the beginnings in turn, each gone on with."""
    place = next(system.parameters()).device
    source = generator if place.type == "cpu" else torch.Generator(place).manual_seed(generator.initial_seed())
    given = beginnings[torch.arange(count) % len(beginnings)].to(place)  # (count, PROMPT)
    return mu_law_inverse(system.generate(given, length, temperature, source)).cpu()


def _wave_outline(wave: Tensor, height: float, label: str) -> Band:
    """The lowest and the highest amplitude of every five milliseconds."""
    pieces = wave.unfold(0, 40, 40)  # (pieces, 40)
    return Band(40 * torch.arange(len(pieces)), height + pieces.amin(1), height + pieces.amax(1), label)
