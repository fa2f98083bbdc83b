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


def test_images_are_turned_as_they_are_seen_and_keep_16_bits_and_the_transparency_of_palettes(tmp_path):
    values = (np.arange(600).reshape(20, 30) * 100).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    eight = Image.fromarray((values // 257).astype(np.uint8))
    turned = Image.Exif()
    turned[0x112] = 6  # a camera held upright
    eight.save(tmp_path / "upright.jpg", exif=turned)
    eight.convert("P").save(tmp_path / "palette.png", transparency=0)
    for name in ("deep.png", "upright.jpg", "palette.png"):
        words = ["restore", str(tmp_path / name), "--blur", "gaussian", "--sigma", "0", "--balance", "0"]
        assert main([*words, "--out", str(tmp_path / f"out_{name}")]) == 0
    with Image.open(tmp_path / "out_deep.png") as made:
        assert np.abs(np.asarray(made).astype(int) - values).max() <= 1
    with Image.open(tmp_path / "out_upright.jpg") as made:
        assert made.size == (20, 30)
    with Image.open(tmp_path / "out_palette.png") as made:
        assert "A" in made.getbands()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.png", "--out", "y.png"], "there is no file none.png"),
        (["text.png", "--out", "y.png"], "text.png is no image that Pillow can read"),
        (["x.png", "--out", "y.txt"], "--out must end in .png, .jpg"),
        (
            ["x.png", "--out", "y.png", "--length", "25", "--angle", "90"],
            "kernel must not be larger than the image, got (25, 1) for 20 x 30",
        ),
        (["x.png", "--out", "y.png", "--length", "1e9"], "--length must be at most the 30 pixels of the image's"),
        (["x.png", "--out", "y.png", "--blur", "box", "--length", "1e9"], "--length must be at most the 30 pixels"),
        (["x.png", "--out", "y.png", "--blur", "gaussian", "--sigma", "1e9"], "--sigma must be at most the 30 pixels"),
        (["x.png", "--out", "folder.png"], "--out must name a file, got the folder folder.png"),
        (["folder.png", "--out", "y.png"], "folder.png is a folder: name an image in it"),
        (["f.tif", "--out", "y.png"], "f.tif holds floating-point numbers, whose white is unknown"),
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
    Image.fromarray(np.zeros((20, 30), np.float32)).save("f.tif")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "text.png").write_text("no image")
    assert main(["restore", *words]) == 2
    assert told in capsys.readouterr().err
