r"""Sound: spoken numbers, and the eight-bit code of the telephone they are stored in."""

import io
import math
import wave as wave_files

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_arrays

__all__ = ["mu_law", "mu_law_inverse", "speech", "wav_bytes"]

MU = 255
SILENCE = 128  # the code nearest to zero from above


def mu_law(wave: Float[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    r"""Amplitudes in $[-1, 1]$ as codes 0 to 255 that are finer for soft sounds; louder ones are clipped.

    $$ c = \operatorname{round} \frac{255}{2}\Big(1 + \operatorname{sign}(x)\,\frac{\ln(1+255|x|)}{\ln 256}\Big) $$

    >>> mu_law(torch.tensor([-1.0, 0.01, 1.0]))
    tensor([  0, 157, 255])
    """
    if not wave.is_floating_point() or wave.isnan().any():
        raise ValueError(f"wave must hold real numbers without NaN, got {wave.dtype}")
    level = wave.clamp(-1, 1)
    return ((1 + level.sign() * (MU * level.abs()).log1p() / math.log1p(MU)) * MU / 2).round().long()


def mu_law_inverse(code: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The amplitudes of codes 0 to 255: the inverse of `mu_law` but for rounding.

    >>> mu_law_inverse(torch.tensor([0, 255]))
    tensor([-1.,  1.])
    """
    if code.is_floating_point() or (code.numel() and (code.min() < 0 or code.max() > MU)):
        raise ValueError("code must hold integers from 0 to 255")
    level = (2 * code.float() - MU) / MU
    return level.sign() * (level.abs() * math.log1p(MU)).expm1() / MU


def wav_bytes(wave: Float[Tensor, "time"], sample_rate: int) -> bytes:
    r"""The content of a WAV file of 16 bits a sample; amplitudes outside of $[-1, 1]$ are clipped.

    >>> len(wav_bytes(torch.zeros(8000), sample_rate=8000))  # 44 bytes tell what it is
    16044
    """
    validate.count("sample_rate", sample_rate)
    if wave.ndim != 1 or not wave.isfinite().all():
        raise ValueError(f"wave must be (time,) and finite, got shape {tuple(wave.shape)}")
    written = io.BytesIO()
    with wave_files.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((wave.detach().cpu().clamp(-1, 1) * 32767).round().numpy().astype("<i2").tobytes())
    return written.getvalue()


@dataset(
    "speech",
    title="Spoken numbers",
    task="waveforms",
    origin="embedded",
    size="28",
    shape="up to 9,914 samples at 8 kHz",
    licence="CC BY-SA 3.0",
    credit="voice: Allison Smith (www.theivrvoice.com), funded by Digium, Inc.; Asterisk core sounds",
    splits="train",
)
def speech() -> Dataset:
    r"""Numbers spoken by one voice, zero to twenty and the tens to ninety, once each: 26.5 seconds.

    Made for fitting a model of waveforms; with one recording a word, it tells nothing about recognition.

    Shapes:
        x: (28, 9914) float32, the wave in $[-1, 1]$, followed by zeros; length: (28,) int64, samples before the zeros
        code: (28, 9914) int64, the same as mu-law codes 0 to 255, followed by 128; y: (28,) int64, which word
        extra: `rate`, samples a second; `values`, the numbers spoken

    Source: Asterisk core sounds; voice: Allison Smith, funded by Digium, Inc. (CC BY-SA 3.0).

    >>> data = speech()
    >>> data.classes[7], int(data.train.length[7]) / data.extra["rate"]
    ('seven', 0.820125)
    """
    stored = stored_arrays("speech.npz")
    lengths = torch.from_numpy(stored["offset"]).long().diff()
    clips = torch.from_numpy(stored["mulaw"]).long().split(lengths.tolist())
    code = pad_sequence(list(clips), batch_first=True, padding_value=SILENCE)
    wave = pad_sequence([mu_law_inverse(clip) for clip in clips], batch_first=True)
    examples = Examples(x=wave, y=torch.arange(len(lengths)), code=code, length=lengths)
    extra = {"rate": int(stored["rate"]), "values": tuple(stored["value"].tolist())}
    return Dataset("speech", {"train": examples}, tuple(stored["word"].tolist()), extra)
