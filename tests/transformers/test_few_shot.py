"""Few-shot prompts: what they say, and that the likelihood of answers is that of the model, one at a time."""

import pytest
import torch

from lemmata.transformers.few_shot import answer_log_probabilities, few_shot_prompt
from lemmata.transformers.gpt import GPT

PAIRS = [("sea", "Meer"), ("house", "Haus")]


def test_prompts_show_examples_and_end_where_the_answer_is_due():
    assert few_shot_prompt(PAIRS, "tree") == "Q: sea\nA: Meer\n\nQ: house\nA: Haus\n\nQ: tree\nA:"
    assert few_shot_prompt([], "tree", "Translate.") == "Translate.\n\nQ: tree\nA:"
    assert few_shot_prompt(PAIRS[:1], "tree", before="", between=" = ", after="; ") == "sea = Meer; tree ="


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"question": ""}, "question must be a text"),
        ({"examples": ["ab"]}, "pairs of a question and its answer, got 'ab' at 0"),
        ({"examples": [*PAIRS, ("a", "b", "c")]}, "at 2"),
        ({"examples": [("a", 3)]}, r"pairs of a question and its answer, got \('a', 3\) at 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_prompts_that_cannot_be_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        few_shot_prompt(**({"examples": PAIRS, "question": "tree"} | words))


def test_answers_of_any_length_are_as_likely_as_each_is_alone():
    torch.manual_seed(0)
    model = GPT(20, 16, 2, 4, 24, dropout=0.5, dtype=torch.float64).train()
    for values in model.parameters():
        values.data.mul_(8.0)
    prompt, answers = torch.randint(20, (5,)), [torch.randint(20, (n,)) for n in (1, 4, 2)]
    found = answer_log_probabilities(model, prompt, answers)
    assert model.training
    model.eval()
    alone = []
    for answer in answers:
        steps = model(torch.cat([prompt, answer])[None])[0].log_softmax(-1)
        alone.append(sum(steps[4 + place, token] for place, token in enumerate(answer.tolist())))
    torch.testing.assert_close(found, torch.stack(alone), rtol=1e-10, atol=1e-10)
    mean = answer_log_probabilities(model, prompt, answers, per_token=True)
    torch.testing.assert_close(mean * torch.tensor([1, 4, 2]), found)


@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
def test_a_model_in_bfloat16_is_summed_in_float32():
    torch.manual_seed(0)
    model, answers = GPT(20, 16, 1, 2, 24, dtype=torch.bfloat16), [torch.randint(20, (n,)) for n in (7, 12)]
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled=False):
        found = answer_log_probabilities(model, torch.randint(20, (5,)).int(), answers)
    assert found.dtype is torch.float32
    # A fresh model holds all tokens for nearly equally likely.
    torch.testing.assert_close(found, -torch.tensor([7.0, 12.0]) * torch.tensor(20.0).log(), rtol=0.05, atol=0)


def test_answers_that_cannot_be_are_refused(unchecked):
    model, prompt = GPT(20, 16, 1, 2, 8), torch.tensor([1, 2])
    for bad in ([], [torch.tensor([], dtype=torch.long)], [torch.tensor([[1]])]):
        with pytest.raises(ValueError, match="answers must be"):
            answer_log_probabilities(model, prompt, bad)
    with pytest.raises(ValueError, match="answers must hold tokens from 0 to 19, got 20 to 20"):
        answer_log_probabilities(model, prompt, [prompt, torch.tensor([20])])
    with pytest.raises(ValueError, match="prompt must be"):
        answer_log_probabilities(model, prompt[:0], [prompt])
    with pytest.raises(ValueError, match="at most 8 tokens"):
        answer_log_probabilities(model, prompt, [torch.ones(8, dtype=torch.long)])
