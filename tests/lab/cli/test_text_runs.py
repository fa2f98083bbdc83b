"""`lemmata train` and `lemmata sample` on text, in-process: what is written on the way, and prompts."""

import pytest

from lemmata.lab.cli import main

TINY = "--width 8 --hidden 8 --depth 1 --window 32 --steps 2 --batch-size 4 --device cpu".split()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "gru"


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_model_of_text_writes_while_it_trains_and_is_compared_in_bits(capsys, trained):
    code, out, err = call(capsys, "train", "gru", *TINY, "--out", trained)
    assert (code, err) == (0, "")
    assert "\n  Ham. " in out
    assert "for comparison: unigram 4.62; trigram 2.89; 5-gram 2.4" in out
    assert f"lemmata sample {trained}" in out
    assert f"lemmata predict {trained}" not in out


def test_a_text_begins_with_the_prompt(capsys, trained):
    words = ("sample", trained, "--count", 1, "--prompt", "To be, ", "--length", 20, "--temperature", 0.5)
    code, out, err = call(capsys, *words)
    assert (code, err) == (0, "")
    assert out.startswith("To be, ")
    assert len(out.removesuffix("\n")) == 27
    assert out == call(capsys, *words)[1]


def test_texts_are_written_to_a_file_of_text(capsys, trained, tmp_path):
    code, _, _ = call(capsys, "sample", trained, "--count", 2, "--length", 5, "--out", tmp_path / "plays.txt")
    assert code == 0
    assert (tmp_path / "plays.txt").read_text(encoding="utf-8").count("Ham. ") == 2


def test_bad_use_is_one_line_that_names_the_fix(capsys, trained, tmp_path):
    assert call(capsys, "train", "hopfield", "--out", tmp_path / "hopfield", "--json", "--device", "cpu")[0] == 0
    for words, said in (
        ([trained, "--prompt", ""], "prompt must hold at least one character"),
        ([trained, "--length", "0"], "length must be >= 1, got 0"),
        ([trained, "--temperature", "-1"], "temperature must be >= 0, got -1"),
        ([trained, "--out", "plays.svg"], "--out must end in .txt, got plays.svg"),
        ([tmp_path / "hopfield", "--prompt", "a"], "hopfield on digits takes no --prompt: leave it out"),
    ):
        code, out, err = call(capsys, "sample", *words)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1


def test_a_run_on_a_set_of_another_size_predicts_of_its_own_examples(capsys, tmp_path):
    small = "--data echo --lag 10 --width 8 --hidden 8 --steps 2 --batch-size 4 --device cpu".split()
    assert call(capsys, "train", "mingru", *small, "--out", tmp_path / "run")[0] == 0
    for part in ("test", "train"):
        code, out, err = call(capsys, "predict", tmp_path / "run", "--part", part)
        assert (code, err) == (0, "")
        assert "probability" in out
