"""Weights that serve twice learn from both uses: their gradient is the sum of those of two that serve once."""

import torch

from lemmata.recurrent import SequenceToSequence

TARGET = torch.tensor([[5, 6, 3, 0], [4, 3, 0, 0]])


def test_the_gradient_of_tied_vectors_is_the_sum_of_both_uses():
    torch.manual_seed(0)
    source = torch.randint(4, 12, (2, 6))
    tied, free = (SequenceToSequence(12, 10, embedding=4, hidden=5, tied=flag).double() for flag in (True, False))
    free.load_state_dict(tied.state_dict() | {"output_weight": tied.of_target.weight.detach()})
    losses = [model.loss(source, TARGET) for model in (tied, free)]
    torch.testing.assert_close(*losses)
    for loss in losses:
        loss.backward()
    reading, writing = free.of_target.weight.grad, free.output_weight.grad
    assert reading.any()
    assert writing.any()
    torch.testing.assert_close(tied.of_target.weight.grad, reading + writing)
