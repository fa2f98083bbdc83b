"""Steps along the gradient of the loss: one, several, with a projection; what they reach, and what they cost."""

import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie
from lemmata.robustness.claims.digit_networks import held_out_digits, standard_classifier
from lemmata.robustness.claims.linear_theory import (
    ANYWHERE,
    corners,
    linear_classifier,
    points_at,
    two_logits,
    unequal_weights,
)
from lemmata.robustness.fast_gradient import fgsm, iterative_fgsm, least_likely_attack
from lemmata.robustness.norm_ball import project_ball
from lemmata.robustness.projected_gradient import pgd


def smooth_network(draw, inputs=12, classes=4):
    """An untrained network of one hidden layer, in float64 and evaluation mode."""
    first, second = nn.Linear(inputs, 16).double(), nn.Linear(16, classes).double()
    with torch.no_grad():
        for part in (first, second):
            part.weight.copy_(draw.normal(*part.weight.shape))
            part.bias.copy_(0.3 * draw.normal(*part.bias.shape))
    return nn.Sequential(first, nn.Tanh(), second).eval()


def loss_gradient(model, x, classes):
    """The gradient of the cross-entropy of these classes at each image."""
    leaf = x.detach().clone().requires_grad_()
    return torch.autograd.grad(functional.cross_entropy(model(leaf), classes, reduction="sum"), leaf)[0]


@claim("attack.loss_maximisation")
@lie("the mean over the set", worst=torch.mean)
@lie("the least over the set", worst=torch.amin)
@lie("a set half as large again", radius=1.5)
def the_largest_loss_of_a_set(draw, worst=torch.amax, radius=1.0, attack=pgd):
    """Logistic losses at all extreme points of a cube, of a cube cut by the box, and of the ball of the 1-norm."""
    w, b, eps = unequal_weights(draw, 6), draw.normal(1)[0], 0.3
    score = 0.1 * eps * w.abs().max()  # so near the boundary that every attack finds it
    x = points_at(draw, w, b, score * draw.signs(5))
    y = x @ w + b > 0
    cube, spikes = radius * eps * corners(6), radius * eps * torch.cat([torch.eye(6), -torch.eye(6)]).double()
    box = (float(x.min()) - 0.1, float(x.max()) + 0.1)
    evidence = []
    for norm, bounds, extremes in ((math.inf, ANYWHERE, cube), (math.inf, box, cube), (1, ANYWHERE, spikes)):
        moved = (x[:, None] + extremes).clamp(*bounds)  # (points, extremes, inputs)
        losses = functional.softplus((1 - 2 * y.double())[:, None] * (moved @ w + b))
        found = attack(two_logits(w, b), x, y.long(), eps, norm, bounds).examples
        largest = torch.stack([worst(each) for each in losses])
        evidence.append(close(functional.softplus((1 - 2 * y.double()) * (found @ w + b)), largest, ulps=1e4))
    return all_of(*evidence)


def sign_of(gradient):
    return gradient.sign()


def unit_of(gradient):
    return functional.normalize(gradient)


def clipped(images):
    return images.clamp(0, 1)


def as_they_are(images):
    return images


@claim("attack.fgsm")
@lie("the gradient itself in place of its sign", direction=unit_of)
@lie("down the loss", sign=-1.0)
@lie("not clipped to the range of pixels", clip=as_they_are)
def one_step_along_the_sign(draw, direction=sign_of, sign=1.0, clip=clipped, attack=fgsm):
    """Examples on networks that are not linear, where the step fooled them, pixels at either end of the range too."""
    model, x = smooth_network(draw), draw.uniform(60, 12, low=-0.2, high=1.2).clamp(0, 1)
    eps, y = float(draw.uniform(1, low=0.2, high=0.3)), model(x).argmax(1)
    found = attack(model, x, y, eps)
    stepped = clip(x + sign * eps * direction(loss_gradient(model, x, y)))
    far = (found.examples - x).abs().amax(1)[found.success]
    return all_of(
        close(found.examples[found.success], stepped[found.success], ulps=1000),
        at_most(far, eps, attained=True),
        at_most((found.examples - 0.5).abs(), 0.5, attained=True),
        always([bool(found.success.sum() >= 5), not bool(found.success.all())]),
    )


@claim("attack.fgsm_optimal")
@lie("the largest gain is the 2-norm of the gradient", dual=2.0)
@lie("optimal for the loss of three classes as well", classes=3)
@lie("each coordinate in proportion to the gradient", direction=unit_of)
def the_best_corner_for_a_linear_score(draw, dual=1.0, classes=2, direction=sign_of, attack=fgsm):
    """All corners of a cube: linear gains, losses monotone in one score, and one step of a projected ascent."""
    g, eps, cube = unequal_weights(draw, 6), 0.5, corners(6)
    model = linear_classifier(3 * draw.normal(classes, 6), 0.1 * draw.normal(classes))
    x = draw.normal(400, 6)
    y = model(x).argmax(1)
    losses = functional.cross_entropy(
        model(x[:, None] + eps * cube).mT, y[:, None].expand(-1, len(cube)), reduction="none"
    )  # (points, corners)
    found = attack(model, x, y, eps, bounds=ANYWHERE)
    mine = functional.cross_entropy(model(found.examples), y, reduction="none")
    hinge = (1 - (x[:64, None] + eps * cube) @ g).clamp(min=0).amax(1)
    step = eps * direction(g[None])[0]
    return all_of(
        close((eps * cube @ g).max(), eps * torch.linalg.vector_norm(g, ord=dual)),
        close(g @ step, (eps * cube @ g).max()),
        close((1 - (x[:64] - step) @ g).clamp(min=0), hinge),
        close(mine[found.success], losses.amax(1)[found.success], ulps=1e4),
        close(project_ball(1e9 * g[None], eps)[0], step),
        always([bool(found.success.sum() >= 50)]),
    )


def around_the_input(x, before, stepped, eps):
    return torch.minimum(torch.maximum(stepped, x - eps), x + eps)


def around_the_last_image(x, before, stepped, eps):
    return torch.minimum(torch.maximum(stepped, before - eps), before + eps)


def nowhere(x, before, stepped, eps):
    return stepped


def ascended(model, x, y, eps, steps, step, clip):
    """The images after each of the steps, written once more; the range of pixels is [0, 1]."""
    images = [x]
    for _ in range(steps):
        stepped = images[-1] + step * loss_gradient(model, images[-1], y).sign()
        images.append(clip(x, images[-1], stepped, eps).clamp(0, 1))
    return images


@claim("attack.ifgsm")
@lie("never clipped to the ball", clip=nowhere)
@lie("clipped to a ball around the last image", clip=around_the_last_image)
@lie("on a linear model the change grows with every step", most=math.inf)
@lie("half a step longer", length=1.5)
def several_clipped_steps(draw, clip=around_the_input, most=1.0, length=1.0, attack=iterative_fgsm):
    """Each number of steps on a network against the iteration written out; how far they lead on a linear model."""
    model, x = smooth_network(draw), draw.uniform(80, 12)
    eps, step, y, evidence = 0.25, 0.1, model(x).argmax(1), []
    w, b = unequal_weights(draw, 12), draw.normal(1)[0]
    near = points_at(draw, w, b, 0.05 * w.abs().sum() * draw.signs(6))
    images, far = ascended(model, x, y, eps, 4, length * step, clip), []
    for steps in range(1, 5):
        found = attack(model, x, y, eps, steps=steps, step=step)
        fooled = model(images[steps]).argmax(1) != y
        evidence.append(close(found.examples[fooled], images[steps][fooled], ulps=1e4))
        linear = attack(two_logits(w, b), near, (near @ w + b > 0).long(), eps, bounds=ANYWHERE, steps=steps, step=step)
        far.append(linear.norms)
    reached = torch.arange(1, 5).double() * step * length
    return all_of(
        *evidence,
        close(far, reached.clamp(max=most * eps)[:, None].expand(4, 6), ulps=1e4),
        at_most(torch.stack(far), eps, attained=True),
    )


def least_likely_of(logits):
    return logits.argmin(1)


def second_best_of(logits):
    return logits.topk(2, dim=1).indices[:, 1]


def of_the_clean_image(clean, images):
    return clean


def of_the_last_image(clean, images):
    return images


@claim("attack.least_likely")
@lie("towards the most likely wrong class", aim=second_best_of)
@lie("up the loss of that class", sign=1.0)
@lie("the least likely class is looked for anew at each step", seen=of_the_last_image)
@lie("never clipped to the ball", clip=nowhere)
def down_the_loss_of_the_least_likely_class(
    draw, aim=least_likely_of, sign=-1.0, seen=of_the_clean_image, clip=around_the_input, attack=least_likely_attack
):
    """One step and several on networks against the iteration written out, and what becomes of the loss."""
    model, x, eps, step = smooth_network(draw), draw.uniform(300, 12), 0.35, 0.1
    clean, images, evidence, gained = model(x), [x], [], []
    target = clean.argmin(1)
    one = clip(x, x, x + sign * eps * loss_gradient(model, x, aim(clean)).sign(), eps).clamp(0, 1)
    for _ in range(8):
        gradient = loss_gradient(model, images[-1], aim(seen(clean, model(images[-1]))))
        images.append(clip(x, images[-1], images[-1] + sign * step * gradient.sign(), eps).clamp(0, 1))
    last = images[-1].clone()
    for image in images:  # the last image that is answered as was wanted, where there is one
        arrived = model(image).argmax(1) == target
        last[arrived] = image[arrived]
    for expected, settings in ((one, {}), (last, {"steps": 8, "step": step})):
        found = attack(model, x, clean.argmax(1), eps, **settings)
        won = found.success
        evidence += [close(found.examples[won], expected[won], ulps=1e4), always([bool(won.sum() >= 10)])]
        losses = [functional.cross_entropy(each[won], target[won]) for each in (clean, model(found.examples))]
        gained.append(losses[0] - losses[1])
    return all_of(*evidence, at_least(torch.stack(gained), 0.5))


def reference_pgd(model, x, y, eps, norm, steps, step, project, direction):
    """The iteration from x itself, written once more."""
    delta = torch.zeros_like(x)
    for _ in range(steps):
        delta = project(delta + step * direction(loss_gradient(model, x + delta, y), norm), eps, norm)
        delta = (x + delta).clamp(0, 1) - x
    return x + delta


def back_to_the_ball(delta, eps, norm):
    if norm == math.inf:
        return torch.minimum(torch.maximum(delta, torch.tensor(-eps)), torch.tensor(eps))
    return delta * torch.minimum(eps / delta.norm(dim=1, keepdim=True), torch.ones(1))


def back_to_the_data(delta, eps, norm):
    """Onto the plane that the first six inputs span, as if the data lay there."""
    return torch.cat([delta[:, :6], 0 * delta[:, 6:]], 1)


def no_way_back(delta, eps, norm):
    return delta


def steepest(gradient, norm):
    return gradient.sign() if norm == math.inf else functional.normalize(gradient)


def signs_in_any_norm(gradient, norm):
    return gradient.sign()


def around_its_start(model, x, y, eps, norm, random_start=True, restarts=1, **settings):
    if random_start:
        x = (x + eps * (2 * torch.rand(x.shape, generator=settings["generator"], dtype=x.dtype) - 1)).clamp(0, 1)
    return pgd(model, x, y, eps, norm, random_start=False, **settings)


@claim("attack.pgd")
@lie("projected because the point may have left the data", printed="004/2", project=back_to_the_data)
@lie("never projected", project=no_way_back)
@lie("signs in every norm", direction=signs_in_any_norm)
@lie("the ball lies around the random start", attack=around_its_start)
def steps_and_projections(draw, project=back_to_the_ball, direction=steepest, attack=pgd):
    """Both norms against the iteration written out; from random starts, the ball around the input, and the seed."""
    model, x = smooth_network(draw), draw.uniform(80, 12, low=0.1, high=0.9)
    y, evidence, generator = model(x).argmax(1), [], draw.generator
    for norm, eps in ((2, 0.7), (math.inf, 0.25)):
        found = attack(model, x, y, eps, norm, steps=7, step=eps / 3, random_start=False)
        expected = reference_pgd(model, x, y, eps, norm, 7, eps / 3, project, direction)
        fooled = model(expected).argmax(1) != y
        begun = attack(model, x, y, eps, norm, generator=generator, steps=3, step=eps / 3, restarts=3)
        again = attack(model, x, y, eps, norm, generator=generator, steps=3, step=eps / 3, restarts=3)
        far = torch.linalg.vector_norm(begun.examples - x, ord=norm, dim=1)
        evidence += [
            close(found.examples[fooled], expected[fooled], ulps=1e5),
            at_most(far[begun.success], eps, attained=True),
            always([not torch.equal(begun.examples, again.examples), bool(begun.success.any())]),
        ]
    return all_of(*evidence)


@claim("attack.least_likely_strength")
@lie("strong: it changes the label at least as often", printed="004/1", changes=at_least)
@lie("its mistakes are no grosser", grosser=at_most)
@lie("of three classes too, it is the untargeted step", classes=3)
def fewer_and_grosser_mistakes(draw, changes=at_most, grosser=at_least, classes=2, attack=least_likely_attack):
    """One step on networks of two classes, and on one for digits: labels that change, and the ranks of the new ones."""
    model, x = smooth_network(draw, classes=classes), draw.uniform(200, 12)
    two = [each(model, x, model(x).argmax(1), 0.2) for each in (attack, fgsm)]
    network, (images, labels) = standard_classifier(draw, seed=0), held_out_digits(count=300)
    found = [each(network, images, labels, 0.2) for each in (attack, fgsm)]
    with torch.no_grad():
        ranks = network(images).argsort(1, descending=True).argsort(1)  # 0 is the answer on the clean image
        ended = [ranks.gather(1, network(each.examples).argmax(1)[:, None])[:, 0] for each in found]
    mean = [float(rank[each.success].double().mean()) for rank, each in zip(ended, found, strict=True)]
    count = [int(each.success.sum()) for each in found]
    return all_of(
        close(two[0].examples, two[1].examples),
        always([bool(two[0].success.any())]),
        changes(count[0], count[1], detail="labels, against those that the untargeted step changes"),
        grosser(mean[0], mean[1], detail="mean ranks on the clean image"),
    )


@claim("attack.pgd_vs_fgsm")
@lie("one large step reaches the larger loss", losses=at_most)
@lie("many small steps cost no more than a large one", gradients=1)
def more_steps_reach_more(draw, losses=at_least, gradients=20, attack=pgd):
    """Images fooled at three radii on a network for digits, the losses of those that both fool, and what it cost."""
    network, (images, labels) = standard_classifier(draw, seed=0), held_out_digits(count=100)
    fooled, reached, cost = [], [], []
    for eps in (0.1, 0.15, 0.2):
        found = [attack(network, images, labels, eps, steps=20), fgsm(network, images, labels, eps)]
        shared = found[0].success & found[1].success & (found[1].norms > 0)
        with torch.no_grad():
            reached.append([functional.cross_entropy(network(a.examples[shared]), labels[shared]) for a in found])
        fooled.append([int(a.success.sum()) for a in found])
        cost.append([int(a.gradients.sum()) for a in found])
    loss, count, asked = (torch.tensor(each).double() for each in (reached, fooled, cost))  # (radii, attacks) each
    return all_of(
        losses(loss[:, 0], 1.02 * loss[:, 1]),
        losses(count.sum(0)[0], count.sum(0)[1]),
        exactly(asked[:, 0], gradients * asked[:, 1]),
    )
