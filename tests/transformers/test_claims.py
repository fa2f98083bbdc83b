"""What the checks of this chapter must notice beyond their own lies, and how remarks on the sources are settled."""

import pytest
import torch

from lemmata.catalog import load
from lemmata.judge.runner import attempt
from lemmata.transformers.claims import attention, bert, encoder_decoder, fine_tuned, positions, transformer_block
from lemmata.transformers.key_value_cache import KeyValueCache
from lemmata.transformers.masking import mask_tokens
from lemmata.transformers.positions import rotate
from lemmata.transformers.question_answering import passage_mask
from lemmata.transformers.sentence_pairs import join_pairs
from lemmata.transformers.transformer_block import TransformerBlock


def holds(claim, seed=0, **changed):
    found = attempt(claim, seed, changed)
    if isinstance(found, BaseException):
        raise found
    return found.holds


def still(x, positions):
    return x


def too_fast(x, positions):
    return rotate(x, 3 * positions)


def single_frequencies(x, positions):
    """The exponent of the base is i / d in place of 2i / d."""
    return rotate(x, positions, base=100.0)


@pytest.mark.parametrize("turn", [still, too_fast, single_frequencies])
def test_rotary_positions_turn_at_the_rates_of_the_encoding(turn):
    assert not holds(positions.a_shift_is_a_rotation, turn=turn)


def test_every_lie_of_the_lookup_is_heard_under_every_seed():
    """A gap taken from the worst key made exp overflow."""
    claim = attention.attention_looks_up_the_best_key
    for seed in range(30):
        assert not any(holds(claim, seed, **{lie.argument: lie.value}) for lie in claim.lies)


def everything(segments, mask=None):
    return torch.ones_like(segments, dtype=torch.bool)


def with_its_end(segments, mask=None):
    inside = segments == 1
    return inside if mask is None else inside & mask


def without_its_first(segments, mask=None):
    inside = passage_mask(segments, mask)
    return inside & ((inside.cumsum(-1) > 1) | (inside.sum(-1, keepdim=True) == 1))


@pytest.mark.parametrize("wrong", [everything, with_its_end, without_its_first])
def test_where_the_passage_is_is_known_without_the_library(monkeypatch, wrong):
    monkeypatch.setattr(fine_tuned, "passage_mask", wrong)
    assert not holds(fine_tuned.the_answer_is_the_best_span)


def all_but_the_first(pairs, *tokens):
    joined = join_pairs(pairs, *tokens)
    return joined._replace(segments=joined.mask.long().index_fill(1, torch.tensor([0]), 0))


def late(pairs, *tokens):
    joined = join_pairs(pairs, *tokens)
    return joined._replace(segments=joined.segments.roll(1, 1) * joined.segments)


@pytest.mark.parametrize("join", [all_but_the_first, late])
def test_segments_are_known_without_the_library(join):
    assert not holds(bert.an_encoder_of_pairs, join=join)


def test_a_replaced_token_is_any(monkeypatch):
    def seven(x, vocab_size, mask_token, *given, **named):
        found = mask_tokens(x, vocab_size, mask_token, *given, **named)
        return found._replace(x=found.x.where((found.x == x) | (found.x == mask_token), 7))

    monkeypatch.setattr(bert, "mask_tokens", seven)
    assert not holds(bert.most_chosen_tokens_are_hidden)


@pytest.mark.parametrize("block", [transformer_block.ResidualsAlone, transformer_block.NormsAlone])
@pytest.mark.parametrize("seed", range(4))
def test_residuals_and_norms_are_both_needed(block, seed):
    assert issubclass(block, TransformerBlock)
    assert not holds(transformer_block.parts_are_added_and_normalised, seed, block=block)


def test_a_cache_whose_values_stay_behind_is_noticed(monkeypatch):
    def keys_alone(self, rows):
        keys, _ = self.buffers()
        keys[:, :, : len(self)] = keys[rows, :, : len(self)]

    monkeypatch.setattr(KeyValueCache, "reorder", keys_alone)
    assert not holds(encoder_decoder.a_decoder_writes_step_by_step_what_it_would_at_once)


@pytest.mark.parametrize("id", ["transformer.translation", "bert.model"])
def test_what_no_check_can_refute_is_settled_by_citation(id):
    catalog = load()
    errata = catalog.statements[id].errata
    assert {catalog.settled(id, erratum) for erratum in errata} == {"imprecise"}
    assert any("20" in erratum.imprecise for erratum in errata)
