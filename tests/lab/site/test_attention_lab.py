"""The attention lab: its maps are those of the trained model, and temperature and mask do what they say."""

import json

import pytest
import torch

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import attention_lab as lab
from lemmata.lab.site.work import lab as work

HEADS = [f"{block}.{head}" for block in (1, 2) for head in (1, 2, 3, 4)]


@pytest.fixture(autouse=True)
def untaught(monkeypatch):
    """Weights that were never trained, but are far from even: what is tested holds for all weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = lab.GPT(len(lab._play_vocabulary()), width=64, depth=2, heads=4, max_length=64).eval()
    with torch.no_grad():
        for values in model.parameters():
            values *= 5 if values.ndim > 1 else 1
    monkeypatch.setattr(lab, "_trained_model", lambda: model)


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def test_the_maps_are_those_of_the_model():
    characters, weights, chances, cost = lab.looks(state(text="to be"))
    assert characters == ["t", "o", "␣", "b", "e"]
    assert list(weights) == HEADS
    model, numbers = lab._trained_model(), lab.numbers_of("to be", lab._play_vocabulary())
    first = model.blocks[0]
    with torch.no_grad():
        h = model.tokens(numbers) + model.positions(torch.arange(5))
        expected = first.self_attention.weights(first.self_attention_norm(h))[0]
        logits = model(numbers)[0].double()
    torch.testing.assert_close(torch.stack([weights[f"1.{k}"] for k in (1, 2, 3, 4)]), expected)
    torch.testing.assert_close(chances.double(), logits[-1].softmax(-1), rtol=1e-4, atol=1e-6)
    told = logits.log_softmax(-1)[range(4), numbers[0, 1:]].mean() / -torch.log(torch.tensor(2.0, dtype=torch.float64))
    assert cost == pytest.approx(float(told), rel=1e-4)


@pytest.mark.parametrize("mask", ["causal", "none"])
def test_rows_add_up_to_one_and_the_mask_hides_what_is_to_come(mask):
    _, weights, _, _ = lab.looks(state(mask=mask))
    for each in weights.values():
        torch.testing.assert_close(each.sum(1), torch.ones(len(each)))
        assert bool((each.triu(1) > 0).any()) == (mask == "none")
    told = lab.show(state(mask=mask, place=3))
    assert (told["ahead"] > 0) == (mask == "none")


def test_a_temperature_divides_the_scores():
    # The first block reads the same at every temperature, so its scores are those at 1, divided.
    once, warm = (lab.looks(state(temperature=t))[1]["1.2"] for t in (1, 3))
    torch.testing.assert_close(warm, (once.log() / 3).softmax(-1), rtol=1e-4, atol=1e-5)
    spreads = [lab.show(state(temperature=t, head="1.2"))["spread"] for t in (0.1, 1, 5)]
    assert spreads == sorted(spreads)
    assert spreads[0] < spreads[-1] <= 20 + 1e-3


def test_the_model_itself_stays_as_it_is():
    before = {name: values.clone() for name, values in lab._trained_model().state_dict().items()}
    lab.show(state(temperature=2, mask="none"))
    assert all(torch.equal(values, before[name]) for name, values in lab._trained_model().state_dict().items())
    assert lab._trained_model().blocks[0].self_attention.causal


@pytest.mark.parametrize(
    ("text", "characters", "place"), [("", ["↵"], 1), ("t", ["t"], 1), ("a/b", ["a", "↵", "b"], 3)]
)
def test_short_texts(text, characters, place):
    told = lab.show(state(text=text))
    assert told["characters"] == characters
    assert told["place"] == place
    assert (told["bits"] is None) == (len(characters) == 1)


def test_a_character_that_no_play_has_is_named():
    with pytest.raises(ValueError, match="the plays have no 'ß'"):
        lab.show(state(text="Straße"))


@pytest.mark.parametrize("brief", ["wide", "narrow"])
def test_answers_are_short_while_something_is_dragged(brief):
    told = work.perform({"lab": "attention", "state": {"mask": "none", "temperature": "2"}, "brief": brief}, print)
    assert len(json.dumps(told)) < 32_000


@pytest.mark.parametrize("given", [{"text": "t" * 21}, {"place": 0}, {"head": "3.1"}, {"temperature": 0}])
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("given", [{}, {"temperature": 2, "mask": "none", "head": "2.3"}])
def test_the_python_gives_the_same_map(given, monkeypatch, capsys, tmp_path):
    import copy
    import runpy

    import lemmata

    monkeypatch.setattr(lemmata, "load", lambda folder: copy.deepcopy(lab._trained_model()), raising=False)
    script = tmp_path / "script.py"
    script.write_text(lab.python(state(text="to be", **given)), encoding="utf-8")
    runpy.run_path(str(script))
    shown = lab.looks(state(text="to be", **given))[1][given.get("head", "1.1")]
    assert str(shown) in capsys.readouterr().out
