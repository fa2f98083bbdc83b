"""Which models a run's record can build again: systems whose members tell all their arguments, and no others."""

import pytest
import torch
from torch import nn

from lemmata.convolution import LeNet5
from lemmata.feedforward import MLP
from lemmata.recurrent import GRU, LRU, LSTM, SequenceReader
from lemmata.train.saved import told_arguments
from lemmata.transformers import GPT, Bert, Transformer, TransformerEncoder, ViT


@pytest.mark.parametrize(
    "model",
    [
        MLP(3, 2, widths=(4, 5), activation="tanh", dropout=0.25, bias=False),
        GRU(3, 4),
        GRU(3, 4, bias=False),
        LSTM(3, 4, cell_matrix=True),
        LRU(3, 4, outputs=2, width=5, gain="learnt"),
        SequenceReader(2, 3, cell="gru", width=8, hidden=6, depth=2),
        SequenceReader(2, 3, vocab_size=11),
        LeNet5(activation="relu", padding=2),
        GPT(11, 8, 1, 2, max_length=6, dropout=0.2),  # its method and its embeddings have names of parameters
        Bert(11, 8, 1, 2, 16, pooling=False),
        ViT(3, 8, 4, width=8, depth=1, heads=2, hidden=16),
        TransformerEncoder(8, 1, 2, positions="learned"),
        Transformer(9, 5, 8, 1, 2, tied=False),
    ],
)
def test_the_members_of_a_system_tell_its_arguments(model):
    twin = type(model)(**told_arguments(model))
    twin.load_state_dict(model.state_dict())
    assert repr(twin) == repr(model)
    assert told_arguments(twin) == told_arguments(model)


class Wider(MLP):
    """A class of one's own that looks like one of ours."""


def test_what_cannot_be_told_is_not_guessed():
    assert told_arguments(nn.Linear(2, 2)) is None
    assert told_arguments(Wider(2, 2)) is None
    assert told_arguments(object()) is None
    grown = MLP(2, 2, widths=(3,))
    grown.layers.append(nn.Linear(2, 2))  # no longer what its arguments build
    assert told_arguments(grown) is None
    bent = MLP(2, 2, widths=(3,))
    bent.inputs = torch.tensor(2)
    assert told_arguments(bent) is None
