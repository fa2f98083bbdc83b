"""Sequence to sequence: bad input, edges of sizes and lengths, gradients, other cells, saving; decoding's options."""

import pytest
import torch

from lemmata.recurrent import LRU, SequenceToSequence, beam_decode, greedy_decode, sample_decode
from lemmata.train import checkpoint

TARGET = torch.tensor([[5, 6, 3, 0], [4, 3, 0, 0]])


def made(**words):
    torch.manual_seed(0)
    return SequenceToSequence(12, 10, embedding=4, hidden=5, **words)


def source(rows=2, places=6):
    return torch.randint(4, 12, (rows, places), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("attention", [False, True])
def test_an_empty_target_has_probability_one(attention):
    model = made(attention=attention)
    empty = torch.zeros(2, 0, dtype=torch.int64)
    assert model(source(), empty).shape == (2, 0, 10)
    assert torch.equal(model.log_probability(source(), empty), torch.zeros(2))


def test_the_alignment_of_an_empty_target_has_no_rows():
    assert made(attention=True).alignment(source(), torch.zeros(2, 0, dtype=torch.int64)).shape == (2, 0, 6)


@pytest.mark.parametrize("cell", ["gru", "lstm", "elman"])
def test_an_empty_source_is_a_source_too(cell):
    model = made(cell=cell, attention=True, bidirectional=True)
    both = source()
    logits = model(both, TARGET, torch.tensor([6, 0]))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_what_pads_source_and_target_does_not_matter():
    model = made(attention=True)
    lengths = torch.tensor([6, 3])
    other = source().clone()
    other[1, 3:] = 7
    changed = TARGET.clone()
    changed[1, 2:] = 9
    first, second = model.log_probability(source(), TARGET, lengths), model.log_probability(other, changed, lengths)
    assert torch.equal(first, second)


@pytest.mark.parametrize("attention", [False, True])
def test_the_gradient_is_that_of_the_values(attention):
    model = made(attention=attention, bidirectional=True).double()
    weight = model.readout.weight

    def loss(values):
        named = {**dict(model.named_parameters()), "readout.weight": values}
        return torch.func.functional_call(_Loss(model), {f"model.{k}": v for k, v in named.items()}, (source(), TARGET))

    assert torch.autograd.gradcheck(loss, (weight.detach().clone().requires_grad_(),))


class _Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, target):
        return self.model.loss(source, target)


KINDS = [{}, {"attention": True}, {"cell": "lstm", "attention": True, "bidirectional": True}, {"tied": True}]


@pytest.mark.parametrize("kind", KINDS)
def test_probability_loss_and_alignment_are_those_of_the_steps(kind):
    model, lengths, sizes = made(**kind).double(), torch.tensor([6, 2]), [3, 2]
    assert model.counted(TARGET).sum(1).tolist() == sizes
    steps, blurred = [], []
    for row, (n, size) in enumerate(zip(lengths.tolist(), sizes, strict=True)):
        state, memory = model.encode(source()[row : row + 1, :n])
        last = torch.tensor([model.start])
        for place in range(size):
            logits, state, weights = model.step(last, state, memory)
            last = TARGET[row, place : place + 1]
            steps.append(logits[0].log_softmax(0)[last[0]])
            blurred.append(0.7 * steps[-1] + 0.3 * logits[0].log_softmax(0).mean())
            if weights is not None:
                looked = model.alignment(source(), TARGET, lengths)[row, place]
                assert torch.allclose(looked[:n], weights[0], rtol=1e-12)
                assert not looked[n:].any()
    steps, blurred = torch.stack(steps), torch.stack(blurred)
    assert torch.allclose(model.loss(source(), TARGET, lengths), -steps.mean(), rtol=1e-12)
    assert torch.allclose(model.loss(source(), TARGET, lengths, smoothing=0.3), -blurred.mean(), rtol=1e-12)
    totals = torch.stack([part.sum() for part in steps.split(sizes)])
    assert torch.allclose(model.log_probability(source(), TARGET, lengths), totals, rtol=1e-12)


def test_there_is_no_memory_without_attention():
    assert made().encode(source()).memory is None


def test_every_parameter_learns():
    for words in ({}, {"attention": True, "bidirectional": True}, {"tied": True}):
        model = made(**words)
        model.loss(source(), TARGET).backward()
        silent = [name for name, parameter in model.named_parameters() if parameter.grad is None]
        assert silent == []


def test_tied_models_have_fewer_parameters_and_the_same_interface():
    tied, free = made(tied=True), made()
    assert sum(map(torch.numel, free.parameters())) - sum(map(torch.numel, tied.parameters())) == 10 * 4
    assert tied(source(), TARGET).shape == free(source(), TARGET).shape


def test_tied_vectors_learn_from_the_logits_too():
    model = made(tied=True)
    model.loss(source(), TARGET).backward()
    assert 9 not in TARGET  # never read by the decoder: what moves its vector is that it was not the answer
    assert model.of_target.weight.grad[9].abs().max() > 1e-3


def test_a_model_comes_back_from_its_checkpoint(tmp_path):
    model = made(tied=True, attention=True)
    checkpoint.save(tmp_path, 1, {"system": dict(model.state_dict())})
    torch.manual_seed(5)
    other = SequenceToSequence(12, 10, embedding=4, hidden=5, tied=True, attention=True)
    other.load_state_dict(checkpoint.newest(tmp_path).state["system"])
    assert torch.equal(model(source(), TARGET), other(source(), TARGET))


def test_dropout_is_for_training_only():
    model = made(dropout=0.5, attention=True)
    assert not torch.equal(model(source(), TARGET), model(source(), TARGET))
    model.eval()
    assert torch.equal(model(source(), TARGET), model(source(), TARGET))


def test_a_batch_of_one_is_its_row():
    model = made(attention=True).double()
    whole = model(source(3), TARGET[[0, 1, 0]])
    assert torch.allclose(model(source(3)[1:2], TARGET[1:2])[0], whole[1], rtol=1e-12)


def test_only_attention_has_an_alignment():
    with pytest.raises(ValueError, match="no attention to show: make it with attention=True"):
        made().alignment(source(), TARGET)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"cell": "gruu"}, "cell must be one of gru, lstm, elman, got 'gruu'"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"start": 10}, "start must be <= 9, got 10"),
        ({"end": -1}, "end must be >= 0, got -1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_choices_name_the_fix(words, message):
    with pytest.raises(ValueError, match=message):
        made(**words)


@pytest.mark.parametrize("word", ["attention", "bidirectional", "tied"])
@pytest.mark.usefixtures("unchecked")
def test_flags_are_true_or_false(word):
    with pytest.raises(TypeError, match=f"{word} must be True or False, got 1"):
        made(**{word: 1})


def test_states_of_complex_numbers_are_refused():
    with pytest.raises(TypeError, match=r"cell must have states of real \(batch, hidden\), got torch.complex64"):
        SequenceToSequence(12, 10, embedding=4, hidden=5, cell=LRU)


@pytest.mark.usefixtures("unchecked")
def test_layers_of_another_kind_are_refused():
    with pytest.raises(TypeError, match=r"cell must make layers of lemmata.recurrent, got GRU"):
        SequenceToSequence(12, 10, embedding=4, hidden=5, cell=torch.nn.GRU)


def test_the_loss_takes_short_whole_numbers():
    model = made()
    assert torch.equal(model.loss(source().int(), TARGET.int()), model.loss(source(), TARGET))


@pytest.mark.usefixtures("unchecked")
def test_bad_tokens_name_the_fix():
    model = made()
    with pytest.raises(TypeError, match=r"source must hold tokens as integers, got torch.float32: use source.long\(\)"):
        model(source().float(), TARGET)
    with pytest.raises(ValueError, match=r"target must be a \(batch, tokens\) tensor, got shape \(4,\)"):
        model(source(), TARGET[0])
    with pytest.raises(ValueError, match="target must hold one row for each of 2 sources, got 1"):
        model(source(), TARGET[:1])
    with pytest.raises(ValueError, match="lengths must be from 0 to 6, got 2 to 7"):
        model(source(), TARGET, torch.tensor([2, 7]))
    with pytest.raises(ValueError, match="source must hold tokens from 0 to 11, got 12"):
        model(torch.full((2, 3), 12), TARGET)
    with pytest.raises(ValueError, match="target must hold tokens from 0 to 9, got -1 to"):
        model(source(), -torch.ones(2, 3, dtype=torch.int64))


def test_a_step_with_attention_needs_its_memory():
    model = made(attention=True)
    state, _ = model.encode(source())
    with pytest.raises(ValueError, match="memory must be the one that encode returned"):
        model.step(torch.tensor([2, 2]), state)


# --- Decoding ---


def test_samples_follow_the_generator():
    model = made(attention=True)
    draws = [
        sample_decode(model, source(20), max_length=8, generator=torch.Generator().manual_seed(seed)).tokens
        for seed in (0, 0, 1)
    ]
    assert torch.equal(draws[0], draws[1])
    assert draws[0].shape != draws[2].shape or not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("decode", [greedy_decode, sample_decode, beam_decode])
def test_nothing_is_longer_than_asked_and_everything_after_the_end_is_the_end(decode):
    model = made(attention=True, bidirectional=True)
    made_up = decode(model, source(30), max_length=4).tokens
    assert made_up.shape[1] <= 4
    assert made_up.shape[1] == model.counted(made_up).sum(1).max()  # and no longer than the longest of them
    after = (made_up == 3).long().cumsum(1) > 0
    assert (made_up[after] == 3).all()


@pytest.mark.parametrize("decode", [greedy_decode, sample_decode, beam_decode])
def test_a_model_that_does_not_end_is_stopped(decode):
    model = made(attention=True)
    model.output_bias.data[3] = -1e9
    assert decode(model, source()).tokens.shape == (2, 100)


@pytest.mark.parametrize("decode", [greedy_decode, sample_decode, beam_decode])
def test_decoding_does_not_depend_on_the_mode_and_leaves_it_alone(decode):
    model = made(attention=True, bidirectional=True, dropout=0.5)
    model.encoder.eval()  # a part that somebody froze
    modes = [part.training for part in model.modules()]
    torch.manual_seed(7)  # of which sample_decode may draw, and dropout must not
    found = decode(model, source(20), max_length=6)
    assert [part.training for part in model.modules()] == modes
    torch.manual_seed(7)
    expected = decode(model.eval(), source(20), max_length=6)
    assert torch.equal(found.tokens, expected.tokens)
    assert torch.equal(found.log_probability, expected.log_probability)
    assert not model.training
    with pytest.raises(ValueError, match="source must hold tokens"):
        decode(model.train(), source(20) + 20)
    assert model.training


@pytest.mark.parametrize("decode", [greedy_decode, sample_decode, beam_decode])
def test_decoding_leaves_no_graph_and_takes_a_batch_of_one(decode):
    found = decode(made(cell="lstm", bidirectional=True), source(1), torch.tensor([2]), max_length=3)
    assert found.log_probability.shape == (1,)
    assert not found.log_probability.requires_grad


def test_more_beams_than_sequences_are_no_trouble():
    torch.manual_seed(0)
    model = SequenceToSequence(5, 4, embedding=2, hidden=2)
    found = beam_decode(model, source(2).clamp(max=4), max_length=2, beams=50)
    assert found.log_probability.isfinite().all()


@pytest.mark.usefixtures("unchecked")
def test_bad_decoding_options_name_the_fix():
    model = made()
    with pytest.raises(ValueError, match="max_length must be >= 1, got 0"):
        greedy_decode(model, source(), max_length=0)
    with pytest.raises(ValueError, match="temperature must be > 0, got 0"):
        sample_decode(model, source(), temperature=0)
    with pytest.raises(ValueError, match="beams must be >= 1, got 0"):
        beam_decode(model, source(), beams=0)
    with pytest.raises(ValueError, match="length_power must be finite, got nan"):
        beam_decode(model, source(), length_power=float("nan"))
