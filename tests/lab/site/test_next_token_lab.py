"""The next-token lab: its bars are what the model foresees, cut as the sliders say, and odd texts are answered."""

import pytest
import torch

from lemmata.lab.site.work import next_token_lab as lab


def test_bars_are_the_likeliest_of_what_the_model_foresees():
    state = lab.State(text="What is th", temperature=0.5)
    (bars,) = lab.show(state)["figures"]["bars"].marks
    with torch.no_grad():
        wanted = (lab.network()(lab.letters().encode("What is th")[None])[0, -1].double() / 0.5).softmax(-1)
    torch.testing.assert_close(torch.tensor(bars.values).double(), wanted.sort(descending=True).values[: lab.SHOWN])
    assert bars.names[0] == lab.letters().tokens[int(wanted.argmax())]
    assert wanted.max() > 0.2  # it has learnt something: 70 characters alike would have 0.014


def test_sliders_cut_and_temper():
    usual, few, cold, sure = (
        lab.show(lab.State(text="Enter ", **words))
        for words in ({}, {"top_k": 3}, {"temperature": 0.0}, {"top_p": 0.05})
    )
    assert [answer["kept"] for answer in (usual, few, cold, sure)] == [70, 3, 1, 1]
    assert usual["likeliest"] == few["likeliest"] == cold["likeliest"] == sure["likeliest"]
    assert cold["choices"] == sure["choices"] == pytest.approx(1.0)
    assert 1 < few["choices"] < 3 < usual["choices"] < 70


def test_it_goes_on_as_the_seed_says():
    one, same, other = (lab.show(lab.State(seed=seed))["more"] for seed in (0, 0, 1))
    assert one == same != other
    assert len(one) == lab.AHEAD


def test_texts_that_no_play_has_are_answered_and_none_is_a_new_line():
    assert lab.numbers_of("").equal(lab.numbers_of("/"))
    assert lab.letters().decode(lab.numbers_of("a/b")[0]) == "a\nb"
    with pytest.raises(ValueError, match="the plays have no '@'"):
        lab.show(lab.State(text="a@b"))
