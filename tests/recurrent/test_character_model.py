"""The model of text and the layers it is made of: streaming, writing, modes, names of cells, bad choices."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.recurrent import (
    CELLS,
    CharacterModel,
    MinGRU,
    ResidualBlock,
    SequenceReader,
    recurrent_layer,
)  # fmt: skip

TEXT = torch.randint(11, (3, 20), generator=torch.Generator().manual_seed(0))


def small(cell, **more):
    torch.manual_seed(1)
    return CharacterModel(vocab_size=11, cell=cell, width=6, hidden=5, memory=10, **more).double()


@pytest.mark.parametrize("cell", CELLS)
def test_a_text_read_in_pieces_or_step_by_step_is_the_text_read_at_once(cell):
    model = small(cell)
    whole, end = model(TEXT)
    first, state = model(TEXT[:, :7])
    second, last = model(TEXT[:, 7:], state)
    assert torch.allclose(torch.cat([first, second], 1), whole, rtol=1e-10, atol=1e-12)
    by_steps, _ = model.layer.by_steps(model.embed(TEXT))
    assert torch.allclose(model.read(by_steps), whole, rtol=1e-10, atol=1e-12)
    flat = [leaves(state) for state in (end, last)]
    assert all(torch.allclose(a, b) for a, b in zip(*flat, strict=True))


def leaves(state):
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("cell", CELLS)
def test_no_character_sees_those_after_it(cell):
    model, changed = small(cell), TEXT.clone()
    changed[:, 12:] = (changed[:, 12:] + 1) % 11
    assert torch.equal(model(TEXT)[0][:, :12], model(changed)[0][:, :12])
    assert not torch.allclose(model(TEXT)[0][:, 12:], model(changed)[0][:, 12:])


@pytest.mark.parametrize("cell", ["lru", "lstm"])
def test_writing_carries_the_state_instead_of_reading_again(cell):
    model, written = small(cell), TEXT
    for _ in range(5):
        written = torch.cat([written, model(written)[0][:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(model.sample(TEXT, 5, temperature=0), written[:, 20:])


def test_writing_depends_on_the_generator_and_leaves_the_mode_alone():
    model = small("mingru", dropout=0.5).train()
    first, same, other = (model.sample(TEXT, 30, 1.0, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert model.training
    with pytest.raises(ValueError, match=r"temperature must be >= 0, got -1"):
        model.sample(TEXT, 1, temperature=-1)
    assert model.training


def test_bits_are_those_of_the_probabilities():
    model = small("gru")
    shares = model(TEXT[:, :-1])[0].softmax(-1).gather(2, TEXT[:, 1:, None])
    assert model.bits(TEXT[:, :-1], TEXT[:, 1:]).item() == pytest.approx(-shares.log2().mean().item())
    nn.init.zeros_(model.readout.weight)
    nn.init.zeros_(model.readout.bias)
    assert model.bits(TEXT[:, :-1], TEXT[:, 1:]).item() == pytest.approx(math.log2(11))


@pytest.mark.parametrize("cell", CELLS)
def test_logits_and_likelihoods_are_those_of_the_parts(cell):
    model = small(cell, depth=2)
    x, y = TEXT[:, :-1], TEXT[:, 1:]
    wanted, states = layer_by_layer(model, functional.embedding(x, model.embedding.weight))
    nll = -functional.softmax(wanted, -1).gather(2, y[..., None])[..., 0].log()
    assert [state.shape for state in states] == [(3, 5)] * (4 if cell == "lstm" else 2)
    assert len(model.layer.layers[0].network[1].weight) == 12  # twice the width
    torch.testing.assert_close(model(x)[0], wanted)
    torch.testing.assert_close(model.nll(x, y), nll)
    torch.testing.assert_close(model.nll(x[:, 4:], y[:, 4:], model(x[:, :4])[1]), nll[:, 4:])


def test_the_vectors_of_characters_start_with_variance_one():
    many = CharacterModel(2000, "elman", width=4, hidden=5).embedding.weight.detach()
    assert float(many.square().mean()) == pytest.approx(1.0, abs=0.15)  # nine times the spread of such a mean


@pytest.mark.parametrize(("cell", "depth"), [("lstm", 1), ("lru", 3)])
@pytest.mark.parametrize("temperature", [0, 0.3, 1.0])
def test_a_model_in_training_writes_what_one_that_reads_all_again_would(cell, depth, temperature):
    model = small(cell, depth=depth, expansion=1, dropout=0.5)
    written = model.sample(TEXT, 5, temperature, torch.Generator().manual_seed(2))
    assert (model.training, len(model.layer.layers)) == (True, depth)
    model.eval()
    generator, text = torch.Generator().manual_seed(2), TEXT
    for _ in range(5):
        logits = model(text)[0][:, -1]
        chances = functional.softmax(logits / (temperature or 1), 1)
        last = chances.multinomial(1, generator=generator) if temperature else logits.argmax(1, keepdim=True)
        text = torch.cat([text, last], 1)
    assert torch.equal(written, text[:, 20:])


def layer_by_layer(model, x):
    """The outputs of the last layer, one layer after another, at mean 0 and variance 1, and read; all states."""
    states = []
    for layer in model.layer.layers:
        x, state = layer(x)
        states += state if isinstance(state, tuple) else [state]
    return functional.layer_norm(x, x.shape[-1:]) @ model.readout.weight.T + model.readout.bias, states


@pytest.mark.parametrize("cell", CELLS)
def test_every_parameter_learns(cell):
    model = small(cell)
    model.bits(TEXT[:, :-1], TEXT[:, 1:]).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


# --- Layers and cells ---


def test_a_block_adds_to_its_input():
    block = ResidualBlock(MinGRU(4, 3))
    for last in (block.project, block.network[-1]):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    x = torch.randn(2, 5, 4)
    assert torch.equal(block(x)[0], x)


def test_memories_start_as_long_as_asked_for():
    keep = recurrent_layer("mingru", 4, 50, memory=200).gates(torch.zeros(1, 4))[0]
    assert 100 < float(1 / (1 - keep.detach().max())) < 200
    modulus = recurrent_layer("lru", 4, 500, memory=200).eigenvalues.detach().abs().max()
    assert 100 < float(1 / (1 - modulus)) < 200


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_name_the_fix():
    with pytest.raises(ValueError, match="cell must be one of elman, lstm, gru, mingru, minlstm, lru, got 'ltsm'"):
        recurrent_layer("ltsm", 4, 4)
    with pytest.raises(ValueError, match="memory must be >= 2, got 1"):
        recurrent_layer("lru", 4, 4, memory=1)
    with pytest.raises(TypeError, match="layer must be a recurrent layer, got Linear"):
        ResidualBlock(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got 1"):
        ResidualBlock(MinGRU(2, 2), dropout=1)
    with pytest.raises(ValueError, match="expansion must be >= 0, got -1"):
        ResidualBlock(MinGRU(2, 2), expansion=-1)
    with pytest.raises(ValueError, match="depth must be >= 1, got 0"):
        CharacterModel(5, depth=0)
    with pytest.raises(ValueError, match="depth must be >= 1, got 0"):
        SequenceReader(2, 1, depth=0)
    with pytest.raises(ValueError, match="x must hold tokens from 0 to 10, got"):
        small("gru")(TEXT + 5)


# --- Answers at the end ---


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("depth", [1, 2])
def test_an_answer_with_its_states_is_the_answer(cell, depth):
    torch.manual_seed(0)
    reader = SequenceReader(2, 3, cell, width=6, hidden=5, depth=depth).double()
    x = torch.randn(4, 9, 2, dtype=torch.float64)
    answers, states = reader.with_states(x)
    assert torch.allclose(answers, reader(x), rtol=1e-10, atol=1e-12)
    assert len(states) == 10


def test_tokens_are_read_as_well_as_numbers():
    reader = SequenceReader(1, 3, "gru", width=6, hidden=5, vocab_size=11)
    assert reader(TEXT).shape == (3, 3)
    assert reader(TEXT[:1, :1]).shape == (1, 3)
    with pytest.raises(TypeError, match="x must hold tokens as integers"):
        reader(TEXT.double())
