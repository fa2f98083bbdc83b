"""Alignment from preferences: the best policy, what comparisons say of a reward, and a GPT that gets there."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import all_of, at_most, claim, close, lie
from lemmata.transformers.gpt import GPT
from lemmata.transformers.preferences import DPO, RewardModel, aligned_distribution, preference_loss

ANSWERS, PROMPTS = 6, 2


def at_minimum(parameters, loss_of):
    """LBFGS until the gradient vanishes."""
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=300, tolerance_grad=1e-9, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        value = loss_of()
        value.backward()
        return value

    optimizer.step(loss)


def small(draw, model):
    """One block in double precision, with weights of a variance that fits its width."""
    model = model(ANSWERS + PROMPTS, 16, 1, 2, 4, dtype=torch.float64)
    with torch.no_grad():
        for values in model.parameters():
            values.copy_(draw.normal(*values.shape) * 16**-0.5 if values.ndim > 1 else values)
    return model


@claim("gpt.alignment")
@lie("the best policy does not know the reference", prior=0.0)
@lie("the reward is multiplied by β", power=1.0)
@lie("the value is that of the reward alone", value=0.0)
@lie("comparisons say how large rewards are", constant=1.0)
@lie("comparisons depend on the ratio of rewards", margin=torch.div)
def preferences_move_a_policy(draw, prior=1.0, power=-1.0, value=1.0, constant=0.0, margin=torch.sub, dpo=DPO):
    """All answers of two prompts can be listed: 2,000 other policies, exact comparisons, a GPT and a reward model."""
    beta, rewards = float(draw.uniform(1, low=0.5, high=0.9)), draw.uniform(PROMPTS, ANSWERS, low=1.0, high=3.0)
    model = dpo.of(small(draw, GPT), beta)
    prompts = ANSWERS + torch.arange(PROMPTS)
    reference = model.reference(prompts[:, None])[:, 0, :ANSWERS].log_softmax(-1)  # (prompt, answer)
    best = (prior * reference + beta**power * rewards).softmax(-1)
    found = aligned_distribution(reference.exp(), rewards, beta)

    def objective(policy):
        divergence = (policy * (policy.log() - reference)).sum(-1)
        return (policy * rewards).sum(-1) - value * beta * divergence

    others = draw.normal(2000, PROMPTS, ANSWERS).mul(3).softmax(-1)
    first, second = torch.tensor([(i, j) for i in range(ANSWERS) for j in range(ANSWERS) if i != j]).unbind(1)
    chances = torch.sigmoid(margin(rewards[:, first], rewards[:, second]))  # (prompt, pair)
    texts = torch.cartesian_prod(prompts, torch.arange(ANSWERS))  # (prompts answers, 2)
    answer = torch.tensor([False, True]).expand(len(texts), 2)
    scorer = small(draw, RewardModel)
    nn.init.normal_(scorer.head.weight, std=0.25, generator=draw.generator)

    def explained(read):
        """The mean loss of the comparisons, each as often as it comes."""
        r = read(texts, answer).view(PROMPTS, ANSWERS)
        return functional.binary_cross_entropy_with_logits(r[:, first] - r[:, second], chances)

    at_minimum(model.policy.parameters(), lambda: explained(model.rewards))
    at_minimum(scorer.parameters(), lambda: explained(scorer))
    policy = model(prompts[:, None])[:, 0, :ANSWERS].softmax(-1).detach()
    read = [r.detach().view(PROMPTS, ANSWERS) for r in (model.rewards(texts, answer), scorer(texts, answer))]
    centred = rewards + (constant - 1) * rewards.mean(1, keepdim=True)
    return all_of(
        close(found, best, ulps=256),
        close(objective(found), beta * (reference + rewards / beta).logsumexp(-1), ulps=256),
        at_most((objective(others) - objective(found)).flatten(), 0.0, detail="2,000 other policies"),
        close(policy, best, within=1e-3, detail="the policy of a GPT"),
        *(close(r - r.mean(1, keepdim=True), centred, within=1e-3, detail="rewards that were read") for r in read),
        close(preference_loss(read[1][:, 0], read[1][:, 1]), preference_loss(*(read[1] + draw.normal(2, 1)).mT[:2])),
    )
