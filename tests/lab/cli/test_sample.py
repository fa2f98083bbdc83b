"""`lemmata sample` in-process: what a Hopfield network recalls from noise, on the screen and as a file."""

import pytest

from lemmata.lab.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "hopfield"
    assert main(["train", "hopfield", "--out", str(folder), "--json", "--device", "cpu"]) == 0
    return folder


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main(["sample", *(str(word) for word in words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_what_is_recalled_from_noise_depends_on_the_seed_alone(capsys, run):
    code, out, err = call(capsys, run, "--count", "3")
    assert (code, err) == (0, "")
    assert out.startswith("What is recalled from pure noise")
    assert out == call(capsys, run, "--count", "3")[1]
    assert out != call(capsys, run, "--count", "3", "--seed", "1")[1]


def test_pictures_are_written_as_svg(capsys, run, tmp_path):
    code, out, _ = call(capsys, run, "--out", tmp_path / "noise.svg")
    assert code == 0
    assert f"written to {tmp_path / 'noise.svg'}" in " ".join(out.split("\n"))
    assert (tmp_path / "noise.svg").read_text().count("<title") == 1


def test_bad_use_is_one_line_that_names_the_fix(capsys, run, tmp_path):
    folder = tmp_path / "mlp"
    assert main(["train", "mlp", "--data", "moons", "--steps", "1", "--out", str(folder), "--device", "cpu"]) == 0
    for words, said in (
        ([folder], f"mlp makes nothing up: try lemmata predict {folder}"),
        ([run, "--count", "0"], "--count must be from 1 to 1000, got 0"),
        ([run, "--seed", "-1"], "--seed must be >= 0, got -1"),
        ([run, "--out", "noise.png"], "--out must end in .svg, got noise.png"),
        ([tmp_path / "nowhere"], "there is no folder"),
    ):
        code, out, err = call(capsys, *words)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1
