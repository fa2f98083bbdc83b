"""The embedded voice: lengths, silence, and the code it is stored in."""

import io
import struct
import wave

import pytest
import torch

from lemmata.data import mu_law, mu_law_inverse, speech
from lemmata.data.sound import wav_bytes


def test_there_are_28_numbers_in_26_5_seconds():
    data = speech()
    clips = data.train
    assert clips.x.shape == clips.code.shape == (28, 9914)
    assert clips.length.sum() == 211_733
    assert clips.length.sum() / data.extra["rate"] == pytest.approx(26.5, abs=0.05)
    assert data.extra["values"] == (*range(21), 30, 40, 50, 60, 70, 80, 90)
    assert (data.classes[0], data.classes[12], data.classes[27]) == ("zero", "twelve", "ninety")
    assert clips.y.tolist() == list(range(28))


def test_waves_are_float32_within_one_and_silent_after_their_end():
    clips = speech().train
    assert clips.x.dtype is torch.float32
    assert 0.3 < clips.x.abs().amax() <= 1
    after = torch.arange(9914) >= clips.length[:, None]
    assert (clips.x[after] == 0).all()
    assert (clips.code[after] == 128).all()
    assert torch.equal(mu_law_inverse(clips.code)[~after], clips.x[~after])
    loudness = torch.stack([wave[:length].std() for wave, length in zip(clips.x, clips.length, strict=True)])
    assert (loudness > 0.01).all()


def test_every_code_is_its_own_inverse():
    codes = torch.arange(256)
    assert torch.equal(mu_law(mu_law_inverse(codes)), codes)
    waves = mu_law_inverse(codes)
    assert (waves.diff() > 0).all()
    assert torch.equal(waves, -waves.flip(0))
    assert waves.diff()[127] < waves.diff()[-1] / 100  # finer where it is soft


def test_the_code_is_within_two_percent_of_the_wave():
    wave = torch.linspace(-1, 1, 10_001, dtype=torch.float64)
    error = (mu_law_inverse(mu_law(wave)) - wave).abs()
    assert (error <= 0.025 * wave.abs() + 1e-4).all()


def test_loud_waves_are_clipped_and_nonsense_is_refused():
    assert mu_law(torch.tensor([-7.0, 9.0])).tolist() == [0, 255]
    with pytest.raises(ValueError, match=r"without NaN, got torch\.int64$"):
        mu_law(torch.tensor([1]))
    with pytest.raises(ValueError, match="wave must hold real numbers without NaN"):
        mu_law(torch.tensor([float("nan")]))
    for code in (torch.tensor([256]), torch.tensor([-1]), torch.tensor([0.5])):
        with pytest.raises(ValueError, match="code must hold integers from 0 to 255"):
            mu_law_inverse(code)
    assert mu_law_inverse(torch.empty(0, dtype=torch.int64)).shape == (0,)


def test_a_wav_file_holds_the_wave_in_sixteen_bits():
    sound = torch.tensor([0.0, 1.0, -1.0, 0.5, 7.0])  # the last is clipped
    with wave.open(io.BytesIO(wav_bytes(sound, 16_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        assert struct.unpack("<5h", file.readframes(5)) == (0, 32767, -32767, 16384, 32767)
    assert wav_bytes(torch.zeros(0), 8000)[:4] == b"RIFF"


@pytest.mark.parametrize(
    ("sound", "rate", "said"),
    [
        (torch.zeros(2, 3), 8000, r"wave must be \(time,\) and finite, got shape \(2, 3\)"),
        (torch.tensor([torch.nan]), 8000, "and finite"),
        (torch.zeros(2), 0, "sample_rate must be >= 1, got 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_wave_is_refused(sound, rate, said):
    with pytest.raises(ValueError, match=said):
        wav_bytes(sound, rate)
