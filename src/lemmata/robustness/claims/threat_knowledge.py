"""What an adversary knows, and what can be done with it."""

import torch

from lemmata.judge import all_of, at_most, claim, exactly, lie
from lemmata.robustness.access import BlackBox, GreyBox, WhiteBox
from lemmata.robustness.claims.digit_networks import conv_network, held_out_digits, standard_classifier
from lemmata.robustness.fast_gradient import fgsm
from lemmata.robustness.transfer import transfer_attack


class Forgetful(BlackBox):
    """Answers without counting them."""

    def _counted_answer(self, x):
        logits = super()._counted_answer(x)
        self.queries = 0
        return logits


class Open(GreyBox):
    """Hands the weights on with the architecture."""

    def architecture(self, generator=None):
        fresh = super().architecture(generator)
        fresh.load_state_dict(self._model.state_dict())
        return fresh


def trained(draw):
    return standard_classifier(draw, seed=1)


def untrained(draw):
    torch.manual_seed(1)
    return conv_network().eval()


@claim("attack.threat_knowledge")
@lie("gradients pass through the black box", black=WhiteBox)
@lie("answers cost nothing", black=Forgetful)
@lie("a grey box shows the weights", grey=Open)
@lie("a surrogate needs no training", surrogate=untrained)
@lie("a twentieth is enough", eps=0.05)
def a_box_gives_what_is_known_and_no_more(
    draw, eps=0.3, surrogate=trained, black=BlackBox, grey=GreyBox, white=WhiteBox
):
    """Gradients and weights by box, the count of a black one, and what a second network finds, shown to the first."""
    (x, y), model = held_out_digits(100), standard_classifier(draw)
    box, known, drawn = black(model), white(model), grey(model).architecture(draw.generator)
    own, fresh = model.state_dict(), drawn.state_dict()
    found = transfer_attack(box, x, y, eps, surrogate=surrogate(draw))
    return all_of(
        exactly([value.shape for value in fresh.values()], [value.shape for value in own.values()]),
        exactly([torch.equal(fresh[name], own[name]) for name in own], [False] * len(own)),
        exactly([torch.equal(known.model.state_dict()[name], own[name]) for name in own], [True] * len(own)),
        exactly(box.queries, 2 * len(x)),  # before, and the one candidate
        exactly(gives_gradients(white(model), x, y), True),
        exactly([gives_gradients(kind(model), x, y) for kind in (black, grey)], [False, False]),
        at_most((~found.success).double().mean(), 0.2),
    )


def gives_gradients(box, x, y):
    """Whether an attack by gradients gets any."""
    try:
        return bool(fgsm(box, x[:5], y[:5], eps=0.1).gradients.any())
    except ValueError:
        return False
