"""Residuals and layer normalisation around each part of a block: torch's own layer, and gradients through a stack."""

import torch
from torch import nn

from lemmata.judge import Figure, Line, all_of, at_most, claim, close, lie
from lemmata.transformers.torch_layers import block_from_torch
from lemmata.transformers.transformer_block import TransformerBlock

WIDTH, LAYERS = 32, 12


def norm_last(x, part, norm):
    return norm(x + part(x))


def norm_first(x, part, norm):
    return x + part(norm(x))


def norm_of_the_answer(x, part, norm):
    return x + norm(part(x))


def normalised_residual(x, part, norm):
    return norm(x) + part(norm(x))


class OneAfterAnother(TransformerBlock):
    """Parts whose answers are neither added nor normalised."""

    def _added(self, x, norm, part):
        return part(x)


def with_drawn_norms(draw, module):
    """In float64; normalisations that do more than nothing, so that their place matters."""
    for part in module.double().modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.data, part.bias.data = draw.uniform(WIDTH, low=0.5, high=2.0), draw.normal(WIDTH)
    return module.eval().requires_grad_(False)


def gradients(draw, block, first):
    """The length of the gradient in each of twelve fresh blocks of a random sum of the last one's outputs."""
    stack = nn.Sequential(*(block(WIDTH, 4, activation="relu", norm_first=first) for _ in range(LAYERS))).double()
    (stack(draw.normal(4, 10, WIDTH)) * draw.normal(4, 10, WIDTH)).sum().backward()
    used = [[values.grad.square().sum() for values in each.parameters() if values.grad is not None] for each in stack]
    return torch.stack([torch.stack(squares).sum().sqrt() for squares in used])


@claim("transformer.residual_ln")
@lie("norm first and norm last are the same", last=norm_first)
@lie("the answer alone is normalised", last=norm_of_the_answer)
@lie("what is normalised is what is added to", first=normalised_residual)
@lie("gradients pass as well through parts that are neither added nor normalised", block=OneAfterAnother)
def parts_are_added_and_normalised(draw, last=norm_last, first=norm_first, block=TransformerBlock):
    """Both orders, from the parts of a block and against torch's layer; gradients of the first and last of twelve."""
    x, ours, by_parts, torchs = draw.normal(3, 7, WIDTH), [], [], []
    for order, is_first in ((last, False), (first, True)):
        settings = {"norm_first": is_first, "batch_first": True, "dropout": 0.0}
        layer = with_drawn_norms(draw, nn.TransformerEncoderLayer(WIDTH, 4, 48, **settings))
        made = block_from_torch(layer)
        middle = order(x, made.self_attention, made.self_attention_norm)
        by_parts.append(order(middle, made.feed_forward, made.feed_forward_norm))
        ours.append(made(x))
        torchs.append(layer.train()(x))  # evaluated, torch takes another path, whose kernels are not everywhere
    sizes = {name: gradients(draw, block, name == "norm first") for name in ("norm last", "norm first")}
    sizes["neither"] = gradients(draw, OneAfterAnother, True)
    lines = [Line(range(1, LAYERS + 1), each / each[-1], name) for name, each in sizes.items()]
    figure = Figure("The gradient in each block, against that in the last", "block", "ratio", lines, y_log=True)
    ratios = torch.stack([each[0] / each[-1] for each in sizes.values()])
    return all_of(
        close(torch.stack(ours), torch.stack(by_parts), ulps=1000),
        close(torch.stack(ours), torch.stack(torchs), ulps=1000),
        at_most(torch.cat([ratios[:2], 1 / ratios[:2]]), 10.0).showing(figure),
        at_most(ratios[2], 1e-6),
    )
