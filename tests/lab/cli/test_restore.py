"""`lemmata restore`: an image of one's own, before and after."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from lemmata.data.registry import load
from lemmata.lab.cli import main
from lemmata.measure import psnr
from lemmata.vision import motion_blur_kernel


@pytest.fixture
def blurred(tmp_path):
    """A photograph in colour as a camera in motion sees it, and the truth."""
    image, kernel = load("photos").parts["coffee"].x[0], motion_blur_kernel(9, 30)
    seen = torch.nn.functional.conv2d(image[:, None], kernel[None, None])[:, 0]
    rows, columns = (size // 2 for size in kernel.shape)
    path = tmp_path / "blurred.png"
    Image.fromarray((seen * 255).round().byte().permute(1, 2, 0).numpy()).save(path)
    return path, image[:, rows:-rows, columns:-columns]


def pixels(path):
    return torch.from_numpy(np.asarray(Image.open(path)).astype(np.float32)).permute(2, 0, 1) / 255


def test_an_image_is_restored(capsys, blurred, tmp_path):
    path, truth = blurred
    words = [
        "restore",
        str(path),
        "--blur",
        "motion",
        "--length",
        "9",
        "--angle",
        "30",
        "--out",
        str(tmp_path / "a.png"),
    ]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["height"], told["width"]) == truth.shape[1:]
    assert "cross-validation" in told["reason"]
    before, after = (float(psnr(pixels(p), truth, 1.0).mean()) for p in (path, tmp_path / "a.png"))
    assert after > before + 3
    assert main([*words, "--balance", "0.01"]) == 0
    assert "balance 0.01: as given" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["L", "RGBA", "1", "I;16", "P"])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_every_kind_of_image_keeps_its_size(tmp_path, mode, suffix):
    path, out = tmp_path / "x.png", tmp_path / f"y.{suffix}"
    Image.fromarray((np.arange(600).reshape(20, 30) % 256).astype(np.uint8)).convert("L").convert(mode).save(path)
    assert main(["restore", str(path), "--blur", "gaussian", "--sigma", "1", "--out", str(out)]) == 0
    with Image.open(out) as made:
        assert made.size == (30, 20)
        assert ("A" in made.getbands()) == (mode == "RGBA" and suffix == "png")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.png", "--out", "y.png"], "there is no file none.png"),
        (["text.png", "--out", "y.png"], "text.png is no image that Pillow can read"),
        (["x.png", "--out", "y.txt"], "--out must end in .png, .jpg"),
        (
            ["x.png", "--out", "y.png", "--length", "99"],
            "kernel must not be larger than the image, got (1, 99) for 20 x 30",
        ),
        (["x.png", "--out", "y.png", "--length", "0"], "length must be > 0, got 0.0"),
        (["x.png", "--out", "y.png", "--blur", "box", "--length", "2.5"], "--length of a box must be an odd integer"),
        (["x.png", "--out", "y.png", "--blur", "box", "--length", "4"], "size must be odd"),
        (["x.png", "--out", "y.png", "--noise", "-1"], "noise must be >= 0, got -1.0"),
        (["x.png", "--out", "y.png", "--noise", "1", "--balance", "1"], "give --noise or --balance, not both"),
    ],
)
def test_bad_use_is_answered_in_a_sentence(capsys, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.zeros((20, 30), np.uint8)).save("x.png")
    (tmp_path / "text.png").write_text("no image")
    assert main(["restore", *words]) == 2
    assert told in capsys.readouterr().err
