"""Additive attention: bad input, empty memories, padding that holds anything, gradients, dtypes."""

import pytest
import torch

from lemmata.recurrent import AdditiveAttention


def made(dtype=torch.float64):
    torch.manual_seed(0)
    return AdditiveAttention(queries=3, annotations=4, hidden=5).to(dtype)


def drawn(dtype=torch.float64, batch=2, positions=6):
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(batch, 3, generator=generator, dtype=dtype)
    return query, torch.randn(batch, positions, 4, generator=generator, dtype=dtype)


def test_what_pads_a_memory_may_be_anything():
    query, annotations = drawn()
    lengths = torch.tensor([6, 2])
    spoilt = annotations.clone()
    spoilt[1, 2:] = float("nan")
    spoilt.requires_grad_()
    for found, expected in zip(made()(query, spoilt, lengths), made()(query, annotations, lengths), strict=True):
        assert torch.equal(found, expected)
        found.sum().backward(retain_graph=True)
    assert spoilt.grad.isfinite().all()


def test_an_empty_memory_has_the_context_zero_and_a_gradient():
    attention = made()
    query, annotations = drawn()
    context, weights = attention(query, annotations, torch.tensor([0, 6]))
    assert not context[0].any()
    assert not weights[0].any()
    context.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())


def test_a_memory_without_positions_has_the_context_zero():
    query, annotations = drawn(positions=0)
    context, weights = made()(query, annotations)
    assert torch.equal(context, torch.zeros(2, 4, dtype=torch.float64))
    assert weights.shape == (2, 0)


def test_the_gradients_are_those_of_the_values():
    query, annotations = (each.requires_grad_() for each in drawn())
    lengths = torch.tensor([6, 3])
    assert torch.autograd.gradcheck(lambda q, a: made()(q, a, lengths), (query, annotations))


def test_a_memory_in_a_batch_is_seen_as_if_it_were_alone():
    (query, annotations), lengths = drawn(batch=3), torch.tensor([6, 1, 4])
    context, weights = made()(query, annotations, lengths)
    for row, n in enumerate(lengths.tolist()):
        alone = made()(query[row : row + 1], annotations[row : row + 1, :n])
        assert torch.allclose(context[row], alone[0][0], rtol=1e-12)
        assert torch.allclose(weights[row, :n], alone[1][0], rtol=1e-12)
        assert not weights[row, n:].any()


def test_the_order_of_a_memory_does_not_matter():
    query, annotations = drawn()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    straight, turned = made()(query, annotations), made()(query, annotations[:, order])
    assert torch.allclose(turned[0], straight[0], rtol=1e-12)
    assert torch.allclose(turned[1], straight[1][:, order], rtol=1e-12)


def test_a_memory_is_remembered_once_and_asked_many_times():
    attention = made()
    query, annotations = drawn()
    memory = attention.remember(annotations)
    for turn in (1.0, -2.0):
        assert torch.equal(attention.attend(turn * query, memory)[0], attention(turn * query, annotations)[0])


@pytest.mark.usefixtures("unchecked")
def test_bad_shapes_name_the_fix():
    attention = made()
    query, annotations = drawn()
    with pytest.raises(ValueError, match=r"query must be \(2, 3\), one for each memory, got shape \(1, 3\)"):
        attention(query[:1], annotations)
    with pytest.raises(ValueError, match=r"lengths must hold one number for each of 2 sequences, got shape \(1,\)"):
        attention(query, annotations, torch.tensor([3]))
    with pytest.raises(ValueError, match="lengths must be from 0 to 6, got 3 to 7"):
        attention(query, annotations, torch.tensor([3, 7]))
    with pytest.raises(TypeError, match=r"lengths must hold integers, got torch.float32"):
        attention(query, annotations, torch.tensor([3.0, 6.0]))
    for word in ("queries", "annotations", "hidden"):
        sizes = {"queries": 3, "annotations": 4, "hidden": 5, word: 0}
        with pytest.raises(ValueError, match=f"{word} must be >= 1, got 0"):
            AdditiveAttention(**sizes)
