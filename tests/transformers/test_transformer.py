"""The transformer: probabilities and searches, steps, masks, alignments, dtypes, devices, compile, bad input."""

import itertools

import pytest
import torch

from lemmata.recurrent import beam_decode, greedy_decode, sample_decode
from lemmata.transformers import KeyValueCache, Transformer

SOURCE = torch.randint(4, 9, (4, 5), generator=torch.Generator().manual_seed(2))
LENGTHS = torch.tensor([5, 1, 3, 4])
CLOSE = 1e-10  # sums of a few terms of size ten in double precision


def wild(seed=0, **settings):
    """A model with opinions: weights so large that searches disagree."""
    torch.manual_seed(seed)
    model = Transformer(9, 5, width=8, depth=2, heads=2, dtype=torch.float64, **settings).eval()
    for values in model.parameters():
        torch.nn.init.normal_(values, std=0.5)
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_the_probabilities_of_all_sequences_add_up_to_one(tied):
    model = wild(tied=tied)
    ended = [(*body, 3) for n in range(3) for body in itertools.product((0, 1, 2, 4), repeat=n)]
    cut = [(*body,) for body in itertools.product((0, 1, 2, 4), repeat=3)]
    rows = torch.tensor([(*row, *[3] * (3 - len(row))) for row in [*ended, *cut]])
    with torch.no_grad():
        chances = model.log_probability(SOURCE[:1].expand(len(rows), -1), rows).exp()
    assert abs(float(chances.sum()) - 1) < CLOSE


def test_a_wide_beam_finds_the_best_of_all_sequences_in_every_row():
    model = wild()
    found = beam_decode(model, SOURCE, LENGTHS, max_length=3, beams=80)
    ended = [(*body, 3) for n in range(3) for body in itertools.product((0, 1, 2, 4), repeat=n)]
    rows = torch.tensor([(*r, *[3] * (3 - len(r))) for r in [*ended, *itertools.product((0, 1, 2, 4), repeat=3)]])
    sizes = model.counted(rows).sum(1)
    for row, length in enumerate(LENGTHS.tolist()):
        with torch.no_grad():
            known = model.log_probability(SOURCE[row : row + 1, :length].expand(len(rows), -1), rows)
        best = rows[(known / sizes).argmax()]
        made = torch.nn.functional.pad(found.tokens[row], (0, 3 - found.tokens.shape[1]), value=3)
        assert made.tolist() == best.tolist()
        assert abs(float(found.log_probability[row] - known[(known / sizes).argmax()])) < CLOSE


def test_searches_say_the_probability_that_the_model_gives():
    model = wild(1)
    for found in (
        greedy_decode(model, SOURCE, LENGTHS, 6),
        sample_decode(model, SOURCE, LENGTHS, 6, generator=torch.Generator().manual_seed(0)),
        beam_decode(model, SOURCE, LENGTHS, 6, beams=3),
    ):
        with torch.no_grad():
            known = model.log_probability(SOURCE, found.tokens, LENGTHS)
        assert torch.allclose(found.log_probability, known, rtol=0, atol=CLOSE)


def test_steps_are_the_logits_of_the_whole_and_padding_changes_nothing():
    model, target = wild(), torch.randint(0, 5, (4, 6))
    state, memory = model.encode(SOURCE, LENGTHS)
    told = torch.cat([torch.full((4, 1), model.start), target[:, :-1]], 1)
    steps = torch.stack([model.step(token, state, memory)[0] for token in told.unbind(1)], 1)
    whole = model(SOURCE, target, LENGTHS)
    assert torch.allclose(steps, whole, rtol=0, atol=CLOSE)
    alone = torch.cat([model(SOURCE[k : k + 1, :n], target[k : k + 1]) for k, n in enumerate(LENGTHS.tolist())])
    assert torch.allclose(alone, whole, rtol=0, atol=CLOSE)


def test_the_loss_is_that_of_the_tokens_up_to_the_end():
    model, target = wild(), torch.tensor([[0, 1, 3, 2], [3, 1, 1, 1], [4, 4, 4, 4], [1, 3, 3, 3]])
    counted = model.counted(target)
    assert counted.sum(1).tolist() == [3, 1, 4, 2]
    mean = -model.log_probability(SOURCE, target, LENGTHS).sum() / counted.sum()
    assert torch.allclose(model.loss(SOURCE, target, LENGTHS), mean)
    even = -model(SOURCE, target, LENGTHS).log_softmax(-1)[counted].mean()
    assert torch.allclose(model.loss(SOURCE, target, LENGTHS, smoothing=0.2), 0.8 * mean + 0.2 * even)


def test_tokens_are_read_at_the_size_of_the_positions_that_are_added():
    torch.manual_seed(0)
    model, target = Transformer(2000, 2000, width=64, depth=1, heads=2, tied=False), torch.tensor([[7, 3]])
    read = []
    for part in (model.encoder, model.decoder):
        part.register_forward_pre_hook(lambda part, given: read.append(given[0]))
    model.loss(SOURCE[:1], target)
    torch.testing.assert_close(read[0], 8 * model.of_source.weight[SOURCE[:1]])  # 8 is the root of the width
    torch.testing.assert_close(read[1], 8 * model.of_target.weight[torch.tensor([[model.start, 7]])])
    for table in (model.of_source.weight, model.of_target.weight, model.output_weight):
        # The deviation of n normal values has that of itself over the root of 2 n: six of these.
        assert abs(8 * table.std().item() - 1) < 6 / (2 * table.numel()) ** 0.5


def test_alignments_are_the_mean_of_heads_and_blocks():
    model, target = wild(), torch.randint(0, 5, (4, 6))
    for layer in (0, -1, None):
        looked = model.alignment(SOURCE, target, LENGTHS, layer=layer)
        assert looked.shape == (4, 6, 5)
        assert torch.allclose(looked.sum(-1), torch.ones(4, 6, dtype=torch.float64))
        assert not looked[1, :, 1:].any()
    assert not torch.allclose(model.alignment(SOURCE, target, layer=0), model.alignment(SOURCE, target, layer=1))
    one, other = (model.alignment(SOURCE, target, layer=k) for k in (0, 1))
    assert torch.allclose(model.alignment(SOURCE, target), (one + other) / 2)
    with pytest.raises(IndexError):
        model.alignment(SOURCE, target, layer=2)
    assert not model.decoder.blocks[0].cross_attention._forward_pre_hooks


def test_a_cache_is_put_in_order_as_far_as_it_is_filled():
    cache = KeyValueCache(4)
    cache.reorder(torch.tensor([1, 0]))  # nothing yet
    keys = torch.arange(2.0)[:, None, None, None].expand(2, 1, 3, 1)
    cache.append(keys, 10 * keys)
    cache.reorder(torch.tensor([1, 1]))
    keys, values = cache.append(torch.zeros(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    assert keys[..., 0].tolist() == [[[1, 1, 1, 0]]] * 2
    assert values[..., 0].tolist() == [[[10, 10, 10, 0]]] * 2
    cache.reorder(torch.tensor([0, 0, 1]))
    assert cache.append(torch.zeros(3, 1, 0, 1), torch.zeros(3, 1, 0, 1))[0].shape == (3, 1, 4, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_is_written_has_a_probability_of_the_models_dtype(dtype):
    model = Transformer(9, 5, 8, 1, 2, tied=False, positions="learned", dtype=dtype)
    assert greedy_decode(model, SOURCE[:1], max_length=3).log_probability.dtype == dtype


def test_the_original_on_the_meta_device():
    original = Transformer(37_000, 37_000, norm_first=False, hidden=2048, device="meta")
    blocks = sum(p.numel() for part in (original.encoder, original.decoder) for p in part.parameters())
    assert blocks == 6 * 3_152_384 + 6 * 4_204_032  # as torch.nn.Transformer without its last norms
    assert original.output_weight is None


def test_it_compiles_to_one_graph_with_its_gradient(unchecked):
    model, target = Transformer(9, 5, 8, 1, 2), torch.tensor([[0, 1, 3, 2]] * 4)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    both = []
    for each in (model, compiled):
        model.zero_grad()
        each(SOURCE, target, LENGTHS).square().mean().backward()
        both.append(model.of_source.weight.grad.clone())
    assert torch.allclose(*both, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(SOURCE[0, :4], SOURCE % 5), ValueError, r"source must be a \(batch, tokens\) tensor, got"),
        (lambda m: m(SOURCE + 9, SOURCE % 5), ValueError, "source must hold tokens from 0 to 8, got"),
        (lambda m: m(SOURCE, SOURCE), ValueError, "target must hold tokens from 0 to 4, got"),
        (lambda m: m(SOURCE, SOURCE[:1] % 5), ValueError, "one row for each of 4 sources, got 1"),
        (
            lambda m: m(SOURCE, SOURCE % 5, LENGTHS[:2]),
            ValueError,
            "lengths must hold one number for each of 4 sources",
        ),
        (
            lambda m: m(SOURCE, SOURCE % 5, LENGTHS + 99),
            ValueError,
            r"lengths must be from 0 to \d+, the positions of source, got",
        ),
        (lambda m: m(SOURCE, SOURCE % 5, LENGTHS - 99), ValueError, "lengths must be from 0 to"),
        (lambda m: Transformer(0, 5), ValueError, "source_vocab_size must be >= 1, got 0"),
        (lambda m: Transformer(9, 3, 8, 1, 2), ValueError, "end must be <= 2, got 3"),
        (lambda m: Transformer(9, 5, 7, 1, 1), ValueError, "width must be even"),
        (lambda m: greedy_decode(m, SOURCE, max_length=0), ValueError, "max_length must be >= 1"),
    ],
)
def test_bad_input_is_named(call, error, message, unchecked):
    model = Transformer(9, 5, 8, 1, 2, max_length=16)
    with pytest.raises(error, match=message):
        call(model)
