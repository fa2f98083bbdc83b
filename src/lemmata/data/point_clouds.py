"""Point clouds: pieces of furniture, some with their parts marked."""

from typing import NamedTuple

import torch

from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_arrays

__all__ = ["Model", "furniture"]

UNKNOWN_PART = -100  # what torch's cross entropy leaves out unless told otherwise


class Model(NamedTuple):
    """Who made the model that a point cloud was drawn from; its licence asks for this credit."""

    name: str
    author: str
    collection: str
    licence: str


@dataset(
    "furniture",
    title="Pieces of furniture",
    task="point clouds",
    origin="embedded",
    size="241 + 59",
    shape="512 points in space",
    licence="70 models CC0 1.0, 191 CC BY 3.0, 39 CC BY 3.0 US",
    credit="authors of the Sweet Home 3D furniture libraries, model by model in embedded/FURNITURE_CREDITS.md",
    splits="train, test",
)
def furniture() -> Dataset:
    r"""Point clouds of 300 pieces of furniture in 8 classes; for 34 of them it is known which points support the rest.

    Coordinates are x, y (up) and z, centred at the mean, inside the unit sphere up to rounding (0.5 %), in real
    proportions. Points are sorted by height: shuffle them before you take a subset.

    Shapes:
        x: (models, 512, 3) float32, y: (models,) int64
        part: (models, 512) int64 into extra `parts`: 0 body, 1 support, and -100 where it is not known, which torch's
        cross entropy leaves out
        extra: `parts`; `train` and `test`, the `Model` of each point cloud with its author and licence

    Right on the test part: the bounding box alone 49 %, logistic regression on shape histograms 68 %. Parts: a random
    forest on local features 83 % of the points.
    Source: Sweet Home 3D furniture libraries; 70 models CC0 1.0, the others CC BY 3.0, see FURNITURE_CREDITS.md.

    >>> data = furniture()
    >>> data.train, data.extra["train"][0].author
    (Examples(x=(241, 512, 3), y=(241,), part=(241, 512)), 'Absfrm')
    """
    stored = stored_arrays("furniture.npz")
    part = torch.from_numpy(stored["part"]).long()
    everything = Examples(
        x=torch.from_numpy(stored["points"]).float().mT.contiguous() / 127,
        y=torch.from_numpy(stored["label"]).long(),
        part=part.masked_fill(part == 255, UNKNOWN_PART),
    )
    models = [Model(*row) for row in zip(*(stored[key].tolist() for key in Model._fields), strict=True)]
    parts, extra = {}, {"parts": tuple(stored["parts"].tolist())}
    for number, name in enumerate(("train", "test")):
        chosen = stored["split"] == number
        parts[name] = everything[torch.from_numpy(chosen)]
        extra[name] = tuple(model for model, here in zip(models, chosen, strict=True) if here)
    return Dataset("furniture", parts, tuple(stored["classes"].tolist()), extra)
