"""`lemmata train` and `lemmata sample` on sound, in-process: the file in the run's folder, and those asked for."""

import wave

from lemmata.lab.cli import main

TINY = "--channels 4 --skip-channels 4 --depth 3 --window 64 --steps 1 --batch-size 4 --device cpu".split()


def test_a_voice_leaves_a_sound_and_makes_others(capsys, tmp_path):
    folder, made = tmp_path / "voice", tmp_path / "made.wav"
    assert main(["train", "wavenet", *TINY, "--out", str(folder)]) == 0
    assert f"sound    {folder / 'sample.wav'}" in capsys.readouterr().out
    with wave.open(str(folder / "sample.wav")) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 4 * 5024)
    asked = ["sample", str(folder), "--count", "2", "--length", "500"]
    assert main([*asked, "--out", str(made)]) == 0
    with wave.open(str(made)) as file:
        assert file.getnframes() == 2 * 1524
    capsys.readouterr()
    for words, said in (
        (asked, f"a sound is written to a file: lemmata sample {folder} --out sound.wav"),
        ([*asked, "--out", "made.txt"], "--out must end in .wav, got made.txt"),
        ([*asked, "--temperature", "-1", "--out", str(made)], "temperature must be >= 0, got -1.0"),
    ):
        assert main(words) == 2
        assert said in capsys.readouterr().err
