"""Pictures: handwritten digits, articles of clothing, letters of 140 alphabets, and three photographs."""

import numpy as np
import torch

from lemmata.data.examples import Dataset, Examples
from lemmata.data.image_file import read_image
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_arrays

__all__ = ["digits", "fashion", "glyphs", "photos"]


@dataset(
    "digits",
    title="Handwritten digits",
    task="classification",
    origin="embedded",
    size="1,438 + 359",
    shape="8 x 8 grey",
    licence="CC BY 4.0",
    credit="E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998",
    splits="train, test",
)
def digits() -> Dataset:
    r"""Handwritten digits in grey, ink high, in $[0, 1]$: the smallest real images of the course.

    Shapes:
        x: (images, 8, 8) float32, y: (images,) int64 from 0 to 9

    A logistic regression gets 95.8 % of the test part right.
    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998 (CC BY 4.0).

    >>> digits()
    Dataset('digits', train=Examples(x=(1438, 8, 8), y=(1438,)), test=Examples(x=(359, 8, 8), y=(359,)))
    """
    stored = stored_arrays("digits.npz")
    x = torch.from_numpy(stored["x"]).float() / 16  # the scanner counted 0 to 16 dark dots a pixel
    everything, held_out = Examples(x=x, y=torch.from_numpy(stored["y"]).long()), torch.from_numpy(stored["split"] == 1)
    parts = {"train": everything[~held_out], "test": everything[held_out]}
    return Dataset("digits", parts, tuple("0123456789"))


@dataset(
    "fashion",
    title="Articles of clothing (Fashion-MNIST, a part)",
    task="classification",
    origin="embedded",
    size="2,000 + 1,000",
    shape="28 x 28 grey",
    licence="MIT",
    credit="(c) 2017 Zalando SE; H. Xiao, K. Rasul, R. Vollgraf, 2017",
    splits="train, test",
)
def fashion() -> Dataset:
    r"""Articles of clothing in grey, in $[0, 1]$: 200 and 100 pictures a class out of Fashion-MNIST.

    Shapes:
        x: (images, 28, 28) float32, y: (images,) int64 from 0 to 9
        extra: `train_index` and `test_index`, the places of the pictures in the whole set

    Right on the test part: 3 nearest neighbours 76.1 %, logistic regression 81.8 %, a support vector machine with a
    Gaussian kernel 84.7 %.
    Source: Xiao, Rasul and Vollgraf 2017 (MIT, (c) 2017 Zalando SE).

    >>> data = fashion()
    >>> data.train.x.shape, data.classes[int(data.train.y[0])]
    (torch.Size([2000, 28, 28]), 'Pullover')
    """
    stored = stored_arrays("fashion.npz")
    parts = {}
    for part in ("train", "test"):
        # Each row is stored as its difference to the row above, modulo 256, which packs better.
        x = torch.from_numpy(np.cumsum(stored[f"x_{part}_dy"], axis=1, dtype=np.uint8)).float() / 255
        parts[part] = Examples(x=x, y=torch.from_numpy(stored[f"y_{part}"]).long())
    places = {key: torch.from_numpy(stored[key].astype(np.int64)) for key in ("train_index", "test_index")}
    return Dataset("fashion", parts, tuple(stored["classes"].tolist()), places)


@dataset(
    "glyphs",
    title="Letters of 140 alphabets",
    task="few-shot",
    origin="embedded",
    size="3,224 + 1,520",
    shape="28 x 28 black and white",
    licence="pictures of letters set in fonts under the SIL Open Font License 1.1",
    credit="Noto fonts, (c) 2010-2020 Google",
    splits="train, test",
)
def glyphs() -> Dataset:
    r"""Letters of 140 alphabets in several fonts, white on black: for learning a class from one or few examples.

    The parts share no alphabet: `train` is what the field calls the background set (120 alphabets, 2,364 letters),
    `test` the evaluation set (20 alphabets, 400 letters, each in 3 or 4 fonts). Most background alphabets have one
    font only, so jitter the pictures there.

    Shapes:
        x: (images, 28, 28) float32 of 0 and 1, y: (images,) int64, the letter from 0 to 2,763
        alphabet: (images,) int64 into extra `alphabets`, style: (images,) int64 into extra `styles`
        classes: the letters themselves, as characters

    One shot, cosine distance on slightly blurred pixels, support and query in different fonts: 96.4 % among 5 letters,
    90.7 % among 20.
    Source: Noto fonts, (c) 2010-2020 Google. Easier than handwritten sets such as Omniglot.

    >>> data = glyphs()
    >>> data.test.x.shape, data.classes[int(data.test.y[0])], data.extra["alphabets"][int(data.test.alphabet[0])]
    (torch.Size([1520, 28, 28]), 'ء', 'Arabic')
    """
    stored = stored_arrays("glyphs.npz")
    pictures = np.unpackbits(stored["images"], axis=1).reshape(-1, 28, 28)
    alphabet = stored["alphabet"][stored["label"]]
    columns = {"y": stored["label"], "alphabet": alphabet, "style": stored["style"]}
    everything = Examples(
        x=torch.from_numpy(pictures).float(),
        **{name: torch.from_numpy(column.astype(np.int64)) for name, column in columns.items()},
    )
    held_out = torch.from_numpy(stored["alphabet_split"][alphabet] == 1)
    names = {key: tuple(stored[key].tolist()) for key in ("alphabets", "styles")}
    letters = tuple(map(chr, stored["codepoint"].tolist()))
    return Dataset("glyphs", {"train": everything[~held_out], "test": everything[held_out]}, letters, names)


@dataset(
    "photos",
    title="Three photographs",
    task="restoration",
    origin="embedded",
    size="1 + 1 + 1",
    shape="256 x 256 grey, 192 x 192 colour",
    licence="CC0",
    credit="camera: Lav Varshney; cat: Stefan van der Walt; coffee: Rachel Michetti",
    splits="camera, cat, coffee",
)
def photos() -> Dataset:
    r"""Three photographs in $[0, 1]$, for denoising, filtering, inpainting and segmentation.

    Each photograph is a part of its own, as a batch of one.

    Shapes:
        x of `camera`: (1, 1, 256, 256) float32; of `cat` and `coffee`: (1, 3, 192, 192) float32

    `camera` with Gaussian noise of standard deviation 25/255 has 20.6 dB; the best Gaussian filter makes it 26.5 dB,
    non-local means 27.6 dB.
    Source: scikit-image; camera by Lav Varshney, cat by Stefan van der Walt, coffee by Rachel Michetti (CC0).

    >>> photos().parts["cat"].x.shape
    torch.Size([1, 3, 192, 192])
    """
    parts = {}
    for name, content in stored_arrays("photos.npz").items():
        picture = torch.from_numpy(np.atleast_3d(read_image(content.tobytes())))
        parts[name] = Examples(x=picture.permute(2, 0, 1).contiguous()[None].float() / 255)
    return Dataset("photos", parts)
