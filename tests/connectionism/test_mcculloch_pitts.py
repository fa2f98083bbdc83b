"""What the claims about McCulloch-Pitts neurons do not say: bad input, dtypes, state, repr."""

import math

import pytest
import torch

from lemmata.connectionism.mcculloch_pitts import (
    McCullochPittsNetwork,
    McCullochPittsNeuron,
    boolean_inputs,
    boolean_network,
    threshold_gates,
)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_the_answer_has_the_dtype_of_the_input(dtype):
    answer = McCullochPittsNeuron(torch.tensor([1, -1]), 0.5)(boolean_inputs(2).to(dtype))
    assert answer.dtype is dtype
    assert answer.tolist() == [0, 0, 1, 0]


def test_one_input_without_a_batch_is_answered_with_a_scalar():
    assert McCullochPittsNeuron(torch.ones(3), 3)(torch.ones(3)).shape == ()
    assert boolean_network([0, 1, 1, 0])(torch.tensor([1, 0])).item() == 1


def test_leading_axes_of_any_number_are_kept():
    several = McCullochPittsNeuron(torch.tensor([[1, 1], [-1, 1], [1, -1]]), torch.tensor([2, 1, 1]))
    assert several(torch.ones(4, 5, 2)).shape == (4, 5, 3)


def test_the_neuron_keeps_its_own_copy_of_the_synapses():
    synapses = torch.ones(2)
    neuron = McCullochPittsNeuron(synapses, 2)
    synapses.neg_()
    assert neuron(torch.ones(2)).item() == 1


def test_repr_shows_the_neuron():
    assert (
        repr(McCullochPittsNeuron(torch.tensor([1, -1]), 0)) == "McCullochPittsNeuron(synapses=[1, -1], threshold=0.0)"
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: McCullochPittsNeuron(torch.tensor([0, 1]), 1), ValueError, r"synapses must hold only -1 and \+1"),
        (lambda: McCullochPittsNeuron([1, 1], 1), TypeError, "synapses must be a tensor, got list"),
        (lambda: McCullochPittsNeuron(torch.tensor(1), 1), ValueError, r"\(neurons, inputs\) tensor, got shape \(\)"),
        (lambda: McCullochPittsNeuron(torch.ones(1, 1, 1), 1), ValueError, r"got shape \(1, 1, 1\)"),
        (lambda: McCullochPittsNeuron(torch.ones(2), math.nan), ValueError, "threshold must be finite, found 1 NaN"),
        (lambda: McCullochPittsNeuron(torch.ones(3, 2), 1), ValueError, r"threshold must have shape \(3,\) like syn"),
        (lambda: McCullochPittsNeuron(torch.ones(2), 1)(-torch.ones(2)), ValueError, "x must hold only 0 and 1"),
        (lambda: boolean_inputs(0), ValueError, "inputs must be >= 1, got 0"),
        (lambda: threshold_gates(9), ValueError, "inputs must be <= 8, got 9"),
        (lambda: threshold_gates(2.0), TypeError, "inputs must be an integer, got float"),
        (lambda: boolean_network([0, 1, 1]), ValueError, r"2, 4, 8, \.\.\. truth values, got 3"),
        (lambda: boolean_network([1]), ValueError, r"2, 4, 8, \.\.\. truth values, got 1"),
        (lambda: boolean_network([[0, 1], [1, 0]]), ValueError, "truth_table must be one row of truth values"),
        (lambda: boolean_network([0, 2]), ValueError, "truth_table must hold only 0 and 1"),
        (
            lambda: McCullochPittsNetwork(
                McCullochPittsNeuron(torch.ones(3, 2), torch.ones(3)), McCullochPittsNeuron(torch.ones(2), 1)
            ),
            ValueError,
            r"shapes \(neurons, inputs\) and \(neurons,\), got \(3, 2\) and \(2,\)",
        ),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
