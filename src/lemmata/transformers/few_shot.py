r"""Few-shot prompts: a task told by examples, and the answer that a model holds likeliest."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.train.evaluation_mode import evaluating
from lemmata.transformers.gpt import GPT

__all__ = ["answer_log_probabilities", "few_shot_prompt"]


def few_shot_prompt(
    examples: Sequence[tuple[str, str]],
    question: str,
    instruction: str = "",
    before: str = "Q: ",
    between: str = "\nA: ",
    after: str = "\n\n",
) -> str:
    r"""A prompt that shows a task by examples and ends where the answer to a question is due.

    No examples make a zero-shot prompt. A blank at the very end is left out: a model whose tokens begin with their
    blank, as GPT-2's do, writes it itself.

    Source: Brown et al. 2020.

    >>> print(few_shot_prompt([("sea", "Meer"), ("house", "Haus")], "tree", "English to German:"))
    English to German:
    <BLANKLINE>
    Q: sea
    A: Meer
    <BLANKLINE>
    Q: house
    A: Haus
    <BLANKLINE>
    Q: tree
    A:
    """
    if not isinstance(question, str) or not question:
        raise ValueError(f"question must be a text that is not empty, got {question!r}")
    for number, example in enumerate(examples):
        if isinstance(example, str) or len(example) != 2 or not all(isinstance(text, str) for text in example):
            raise ValueError(f"examples must be pairs of a question and its answer, got {example!r} at {number}")
    told = [instruction + after] if instruction else []
    shown = [before + asked + between + answer + after for asked, answer in examples]
    return "".join([*told, *shown, before + question + between]).rstrip(" ")


def answer_log_probabilities(
    model: GPT, prompt: Int[Tensor, " time"], answers: Sequence[Int[Tensor, " _"]], per_token: bool = False
) -> Float[Tensor, " answers"]:
    r"""How likely a model holds each of some answers to a prompt; the largest is its choice.

    $$ \ln p(a \mid x) = \sum_i \ln p(a_i \mid x, a_{1:i-1}) $$

    With `per_token` divided by the number of tokens, so that long answers are not the less likely for their length.

    Shapes:
        prompt: (time,) tokens    answers: each (tokens,)    returns: (answers,)

    Source: Brown et al. 2020, section 2.4.

    >>> model = GPT(vocab_size=65, width=32, depth=2, heads=4, max_length=64)
    >>> yes, no = torch.tensor([3, 4]), torch.tensor([5])
    >>> answer_log_probabilities(model, torch.randint(65, (10,)), [yes, no]).shape
    torch.Size([2])
    """
    validate.flag("per_token", per_token)
    if prompt.ndim != 1 or len(prompt) == 0:
        raise ValueError(f"prompt must be (time,) with at least 1 token, got shape {tuple(prompt.shape)}")
    if not answers or any(answer.ndim != 1 or len(answer) == 0 for answer in answers):
        shapes = [tuple(answer.shape) for answer in answers]
        raise ValueError(f"answers must be one or more, each (tokens,) and not empty, got shapes {shapes}")
    for answer in answers:
        validate.tokens("answers", answer, model.vocab_size)
    longest = max(map(len, answers))
    # What stands after a shorter answer is not looked at by what comes before it, so it may be anything.
    rows = prompt.new_zeros(len(answers), len(prompt) + longest, dtype=torch.int64)
    rows[:, : len(prompt)] = prompt
    counted = torch.zeros(len(answers), longest, dtype=torch.bool, device=prompt.device)
    for row, answer in enumerate(answers):
        rows[row, len(prompt) : len(prompt) + len(answer)] = answer
        counted[row, : len(answer)] = True
    with evaluating(model):
        known = model.hidden(rows[:, :-1])[:, len(prompt) - 1 :]  # (answers, longest, width)
        logits = model.logits_of(known)  # (answers, longest, vocab_size)
        # Logarithms in bfloat16 have three digits, too few for sums that are to be compared.
        steps = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    steps = steps.gather(2, rows[:, len(prompt) :, None])[..., 0]  # (answers, longest)
    total = steps.masked_fill(~counted, 0).sum(1)
    return total / counted.sum(1) if per_token else total
