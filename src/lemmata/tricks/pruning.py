r"""Pruning: the smallest weights of any module become zero and stay so, and the others go back to where they began."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lemmata import validate
from lemmata.marks import system

__all__ = ["apply_masks", "lottery_ticket", "masks_of", "prune", "remove_masks", "shuffled_masks"]

Model = TypeVar("Model", bound=nn.Module)
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


class _Mask(nn.Module):
    """Zero wherever the mask is false, whatever the weight there is; so is the gradient."""

    mask: Tensor

    def __init__(self, mask: Bool[Tensor, "..."]) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return torch.where(self.mask, weight, 0.0)

    def right_inverse(self, weight: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return weight


@system("prune", title="Magnitude pruning with rewinding", kind="function")
@torch.no_grad()
def prune(
    model: Model,
    fraction: int | float,
    rewind: Mapping[str, Tensor] | None = None,
    *,
    by: str = "magnitude",
    scope: str = "global",
    weights: Sequence[str] | None = None,
    generator: torch.Generator | None = None,
) -> Model:
    r"""Set the smallest weights of a model to zero for good, a fraction of those that are not zero for good already.

    $$ m_i = 0 \text{ for the } \mathrm{round}(qn) \text{ smallest } |w_i| \text{ of the } n \text{ with } m_i = 1,
       \qquad w \leftarrow m \odot w, \quad \text{or } m \odot \theta_0 \text{ after rewinding} $$

    With `scope="layer"` each weight matrix loses the fraction, with "global" all of them together; by="random" leaves
    the choice to chance. `rewind` is a `state_dict` from before: all that the model holds, but the masks, goes back to
    it. Pruned are the parameters of two axes or more, such as the weights of linear, convolutional, recurrent and
    attention layers, and no embeddings; or those named in `weights`.

    The model itself is changed: a pruned weight is a parametrisation of torch. It trains in any loop with zeros that
    stay zeros; its `state_dict` holds the masks, for models that were pruned too (`prune(model, 0)`); an optimiser that
    knew the parameters still does. `remove_masks` undoes it.

    Shapes:
        every weight keeps its shape; its mask has the same

    Claims: prune.lottery_ticket
    Source: S. Han, J. Pool, J. Tran and W. Dally, Learning both weights and connections for efficient neural networks
        (2015); J. Frankle and M. Carbin, The lottery ticket hypothesis (2019).
    Differs: torch.nn.utils.prune keeps masks by hooks and knows no rewinding. Weights stay dense in memory.

    >>> layer = nn.Linear(4, 1, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[0.1, -3.0, 0.2, 1.0]]))
    >>> prune(layer, 0.5).weight.tolist()
    [[0.0, -3.0, 0.0, 1.0]]
    >>> prune(layer, 0.5).weight.tolist(), remove_masks(layer, zeros=False).weight.tolist()[0][1]
    ([[0.0, -3.0, 0.0, 0.0]], -3.0)
    """
    validate.fraction("fraction", fraction, most=1.0)
    validate.one_of("by", by, ("magnitude", "random"))
    validate.one_of("scope", scope, ("global", "layer"))
    places = _kept_positions(model, weights)
    start = None if rewind is None else _state_to_rewind_to(model, rewind)
    masks, scores = {}, {}
    for path, (layer, name) in places.items():
        weight, mask = _original_weight(layer, name), _mask_of(layer, name)
        masks[path] = torch.ones_like(weight, dtype=torch.bool) if mask is None else mask.mask.clone()
        scores[path] = _random_scores(weight, generator) if by == "random" else weight.abs()
    groups = ([*places],) if scope == "global" else ([path] for path in places)
    for group in groups if fraction else ():  # masks alone can be made where there are no values, on the meta device
        kept = torch.cat([scores[path][masks[path]].flatten() for path in group])  # (weights that are left,)
        if bool(kept.isnan().any()):
            raise ValueError(f"weights must not be NaN to be compared, got some in {' or '.join(group[:3])}")
        removed = _smallest_entries(kept, round(fraction * len(kept)))
        for path, part in zip(group, removed.split([int(masks[path].sum()) for path in group]), strict=True):
            masks[path][masks[path].clone()] = ~part
    apply_masks(model, masks)
    if start is not None:
        for name, values in start:
            name.copy_(values)
    return model


def _smallest_entries(scores: Float[Tensor, "n"], count: int) -> Bool[Tensor, "n"]:
    """Which are the so many smallest; among equal ones those that come first, on every machine."""
    if count == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    threshold = scores.kthvalue(count).values  # one pass, without sorting
    smaller, equal = scores < threshold, scores == threshold
    return smaller | (equal & (equal.cumsum(0) <= count - smaller.sum()))


def _random_scores(weight: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.rand(weight.shape, generator=generator, dtype=torch.float64).to(weight.device)


# --- Where masks are ---


def _kept_positions(model: nn.Module, weights: Sequence[str] | None) -> dict[str, tuple[nn.Module, str]]:
    """The layers that hold what is pruned, and under which name, by the names that the parameters have unpruned."""
    validate.module("model", model)
    found, owners = {}, dict[int, str]()
    embedded = {id(part.weight) for part in model.modules() if isinstance(part, EMBEDDINGS)}
    for path, layer, name, values in _prunable_parameters(model):
        first = owners.setdefault(id(values), path)
        usual = values.ndim > 1 and values.is_floating_point() and id(values) not in embedded
        if not (usual if weights is None else path in weights):
            continue
        if first != path:
            raise ValueError(f"{first} and {path} are one tensor, which cannot be pruned: leave both out of weights")
        if parametrize.is_parametrized(layer, name) and _mask_of(layer, name) is None:
            raise ValueError(f"{path} is parametrised by something else: remove that, or leave it out of weights")
        found[path] = (layer, name)
    for path in weights or ():
        if path not in found:
            raise ValueError(f"weights must name parameters of the model, got {path!r}: see model.named_parameters()")
    if not found:
        raise ValueError("the model has no weights to prune: name some parameters in weights")
    return found


def _prunable_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, Tensor]]:
    """Path, layer, name and values of every parameter, shared ones under each name, pruned ones as if they were not."""
    for prefix, layer in model.named_modules(remove_duplicate=False):
        if isinstance(layer, parametrize.ParametrizationList) or prefix.rpartition(".")[2] == "parametrizations":
            continue
        own = dict(layer.named_parameters(recurse=False))
        if parametrize.is_parametrized(layer):
            held: Any = layer.parametrizations
            own |= {name: _original_weight(layer, name) for name in held if _mask_of(layer, name) is not None}
        for name, values in own.items():
            yield f"{prefix}.{name}" if prefix else name, layer, name, values


def _mask_of(layer: nn.Module, name: str) -> _Mask | None:
    held: Any = getattr(layer, "parametrizations", {})
    parts = held[name] if parametrize.is_parametrized(layer, name) else ()
    return parts[0] if len(parts) == 1 and isinstance(parts[0], _Mask) else None


def _original_weight(layer: nn.Module, name: str) -> Tensor:
    """The weight without its mask."""
    held: Any = getattr(layer, "parametrizations", {})
    return held[name].original if parametrize.is_parametrized(layer, name) else layer.get_parameter(name)


def _state_to_rewind_to(model: nn.Module, rewind: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """What each tensor of the model becomes; all of them are looked at before the first is changed."""
    given, pairs = {_plain_name(name): values for name, values in rewind.items()}, []
    for name, values in model.state_dict(keep_vars=True).items():
        if name.endswith(".0.mask") and "parametrizations." in name:
            continue
        before = given.get(_plain_name(name))
        if before is None or before.shape != values.shape:
            found = "none" if before is None else f"shape {tuple(before.shape)}"
            raise ValueError(f"rewind must have {_plain_name(name)} of shape {tuple(values.shape)}, got {found}")
        pairs.append((values, before))
    return pairs


def _plain_name(name: str) -> str:
    return name.removesuffix(".original").replace("parametrizations.", "") if name.endswith(".original") else name


# --- What can be done with masks ---


def masks_of(model: nn.Module) -> dict[str, Bool[Tensor, "..."]]:
    """A copy of the mask of every pruned weight, by the name that the weight has: false where it is zero for good.

    >>> {name: int(mask.sum()) for name, mask in masks_of(prune(nn.Linear(10, 3), 0.9)).items()}
    {'weight': 3}
    """
    validate.module("model", model)
    found = ((path, _mask_of(layer, name)) for path, layer, name, _ in _prunable_parameters(model))
    return {path: mask.mask.clone() for path, mask in found if mask is not None}


@torch.no_grad()
def apply_masks(model: Model, masks: Mapping[str, Tensor]) -> Model:
    """Give a model these masks in place of those it may have: those of another, `apply_masks(fresh, masks_of(ticket))`.

    >>> apply_masks(nn.Linear(2, 1), {"weight": torch.tensor([[True, False]])}).weight[0, 1].item()
    0.0
    """
    places = _kept_positions(model, list(masks))
    for path, (layer, name) in places.items():
        wanted, weight = masks[path], _original_weight(layer, name)
        if wanted.shape != weight.shape or wanted.dtype != torch.bool:
            found = f"shape {tuple(wanted.shape)} and {wanted.dtype}"
            raise ValueError(f"masks[{path!r}] must be bool of shape {tuple(weight.shape)}, got {found}")
    for path, (layer, name) in places.items():
        held = _mask_of(layer, name)
        if held is None:
            mask = masks[path].to(_original_weight(layer, name).device, copy=True)
            _give_own_class(layer)
            parametrize.register_parametrization(layer, name, _Mask(mask))
        else:
            held.mask.copy_(masks[path])
    return model


def shuffled_masks(
    masks: Mapping[str, Bool[Tensor, "..."]], generator: torch.Generator | None = None
) -> dict[str, Bool[Tensor, "..."]]:
    """Random masks that leave as many weights in each matrix as the given ones: what a ticket is compared with.

    >>> shuffled_masks({"weight": torch.tensor([[True, False, False]])})["weight"].sum().item()
    1
    """
    orders = {path: torch.randperm(mask.numel(), generator=generator) for path, mask in masks.items()}
    return {path: mask.flatten()[orders[path].to(mask.device)].view_as(mask) for path, mask in masks.items()}


def remove_masks(model: Model, zeros: bool = True) -> Model:
    """Take all masks off: plain weights again, with the zeros, or with `zeros=False` what stood there when masked.

    >>> sorted(remove_masks(prune(nn.Linear(2, 1), 0.5)).state_dict())
    ['bias', 'weight']
    """
    validate.module("model", model)
    validate.flag("zeros", zeros)
    for _, layer, name, _ in list(_prunable_parameters(model)):
        if _mask_of(layer, name) is not None:
            _give_own_class(layer)
            parametrize.remove_parametrizations(layer, name, leave_parametrized=zeros)
    return model


def _give_own_class(layer: Any) -> None:
    """Torch keeps in the class which weights are parametrised, and copies of a layer have one class together."""
    if parametrize.is_parametrized(layer):
        kind = type(layer)
        own = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
        layer.__class__ = type(kind.__name__, kind.__bases__, own)


@system("lottery_ticket", title="Lottery tickets by iterative pruning", kind="function")
def lottery_ticket(
    model: Model, train: Callable[[Model], Any], fraction: int | float = 0.2, rounds: int = 10, **choices: Any
) -> Model:
    r"""Train, prune, rewind, again and again: the weights that are left are a ticket, with their initial values.

    $$ \theta = \mathrm{train}(m \odot \theta_0), \qquad m \leftarrow m \text{ without the fraction } q
       \text{ of smallest } |\theta_i|, \qquad \text{after } r \text{ rounds } (1-q)^r \text{ are left} $$

    `train` is any function that trains the model in place; it is called once a round, and has to be called once more to
    see what the ticket is worth. `choices` are those of `prune`. The model itself is changed.

    Claims: prune.lottery_ticket
    Source: J. Frankle and M. Carbin, The lottery ticket hypothesis: finding sparse, trainable neural networks (2019).

    >>> import lemmata
    >>> x = torch.randn(64, 5)
    >>> def train(model):
    ...     lemmata.fit(model, (x, x[:, :1]), lr=0.1, epochs=20, device="cpu", progress=False)
    >>> lottery_ticket(nn.Linear(5, 1), train, fraction=0.5, rounds=2).weight.ne(0).tolist()
    [[True, False, False, False, False]]
    """
    validate.count("rounds", rounds)
    validate.fraction("fraction", fraction, most=1.0)
    start = copy.deepcopy(model.state_dict())
    prune(model, 0.0, **choices)  # bad choices are answered before anything is trained
    for _ in range(rounds):
        train(model)
        prune(model, fraction, rewind=start, **choices)
    return model
