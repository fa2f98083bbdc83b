"""Residuals and layer normalisation around each part of a block: torch's layer, and what each does for a stack."""

import torch
from torch import nn

from lemmata.judge import Figure, Line, all_of, at_least, at_most, claim, close, lie
from lemmata.transformers.torch_layers import block_from_torch
from lemmata.transformers.transformer_block import TransformerBlock

WIDTH, LAYERS, DEEP = 32, 12, 96


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

    def _add_part(self, x, norm, part):
        return part(x)


class ResidualsAlone(TransformerBlock):
    """Answers that are added and nowhere normalised."""

    def _add_part(self, x, norm, part):
        return x + part(x)


class NormsAlone(TransformerBlock):
    """Answers that are normalised and not added."""

    def _add_part(self, x, norm, part):
        return part(norm(x)) if self.norm_first else norm(part(x))


def with_drawn_norms(draw, module):
    """In float64; normalisations that do more than nothing, so that their place matters."""
    for part in module.double().modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.data, part.bias.data = draw.uniform(WIDTH, low=0.5, high=2.0), draw.normal(WIDTH)
    return module.eval().requires_grad_(False)


def fresh(block, first, layers):
    return nn.Sequential(*(block(WIDTH, 4, activation="relu", norm_first=first) for _ in range(layers))).double()


def gradients(draw, block, first):
    """The length of the gradient in each of twelve fresh blocks of a random sum of the last one's outputs."""
    stack = fresh(block, first, LAYERS)
    (stack(draw.normal(4, 10, WIDTH)) * draw.normal(4, 10, WIDTH)).sum().backward()
    used = [[values.grad.square().sum() for values in each.parameters() if values.grad is not None] for each in stack]
    return torch.stack([torch.stack(squares).sum().sqrt() for squares in used])


def outcome(draw, block, first, layers):
    """What fresh blocks make of random tokens: how much of them is apart from their mean, and their size."""
    x = draw.normal(4, 10, WIDTH)
    y = fresh(block, first, layers).requires_grad_(False)(x)
    return float((y - y.mean(1, keepdim=True)).norm() / y.norm()), float(y.norm() / x.norm())


@claim("transformer.residual_ln")
@lie("norm first and norm last are the same", last=norm_first)
@lie("the answer alone is normalised", last=norm_of_the_answer)
@lie("what is normalised is what is added to", first=normalised_residual)
@lie("gradients pass as well through parts that are neither added nor normalised", block=OneAfterAnother)
@lie("residuals are enough", block=ResidualsAlone)
@lie("norms are enough", block=NormsAlone)
def parts_are_added_and_normalised(draw, last=norm_last, first=norm_first, block=TransformerBlock):
    """Both orders, by their parts and by torch's layer; gradients and tokens of 12 fresh blocks, and the size of 96."""
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
    apart = [outcome(draw, kind, order, LAYERS)[0] for kind in (block, NormsAlone) for order in (False, True)]
    grown = [outcome(draw, block, False, DEEP)[1], outcome(draw, block, True, DEEP)[1]]
    return all_of(
        close(torch.stack(ours), torch.stack(by_parts), ulps=1000),
        close(torch.stack(ours), torch.stack(torchs), ulps=1000),
        at_most(torch.cat([ratios[:2], 1 / ratios[:2]]), 10.0).showing(figure),
        at_most(ratios[2], 1e-6),
        at_least(apart[:2], 1 / 3, detail="tokens apart from their mean"),
        at_most(apart[2:], 1e-9, detail="the same without residuals"),
        at_most(grown, 10.0, detail="size after 96 blocks"),
        at_least(outcome(draw, ResidualsAlone, False, DEEP)[1], 30.0, detail="the same without norms"),
    )
