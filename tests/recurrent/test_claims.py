"""What the chapter's claims accepted once and must not, and what they say of the sources."""

import math

import pytest
import torch

from lemmata.catalog import load
from lemmata.judge import Draw, Evidence
from lemmata.judge.runner import attempt
from lemmata.recurrent.claims import lru
from lemmata.recurrent.claims.generation_cost import (
    a_step_of_attention_is_linear_in_the_context_and_of_recurrence_constant as cost,
)
from lemmata.recurrent.claims.gru import the_placement_matters_unless_matrix_and_gate_commute as placement
from lemmata.recurrent.claims.lru import a_stable_diagonal_system_read_by_a_network as unit_claim
from lemmata.recurrent.claims.lru import moduli_are_uniform_by_radius_or_by_area as initialisation
from lemmata.recurrent.claims.lru import modulus_and_phase_give_every_number_inside_the_circle as polar_form
from lemmata.recurrent.claims.lstm import the_cell_is_kept_written_and_shown_by_gates as lstm_claim
from lemmata.recurrent.claims.output_map import one_layer_serves_three_heads as heads
from lemmata.recurrent.gru import GRU, GRUGates
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.lstm import LSTM


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        (initialisation, {"power": 1.3}),
        (initialisation, {"turn": 1.1 * 2 * math.pi}),
        (cost, {"attention_step": 1.05}),
        (cost, {"attention_total": 1.9}),
        (heads, {"shift": 2}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value.id,
)
def test_what_is_nearly_true_is_rejected(claim, changed):
    found = attempt(claim, 0, changed)
    assert isinstance(found, Evidence)
    assert [found.holds, found.undecided, found.weak] == [False, False, ""]


def test_the_lstm_agrees_with_itself():
    catalog = load()
    statement = catalog.statements["rnn.lstm"]
    assert r"\tanh(Uz_t)" in statement.statement
    assert {catalog.settled("rnn.lstm", erratum) for erratum in statement.errata[:3]} == {"notation", "convention"}


class HalfBefore(GRU):
    """The mean of both placements, which agrees with each wherever they agree."""

    def kernel(self):
        return None

    def _gate_values(self, projected, state):
        reset, update, candidate = super()._gate_values(projected, state)
        if self.inner_bias is not None:  # reset after the product
            weight, driven = self.recurrent_weight[2 * self.hidden :], projected[..., 2 * self.hidden :]
            before = (reset * state) @ weight.T + reset * self.inner_bias
            candidate = torch.tanh((candidate.atanh() + driven + before) / 2)
        return GRUGates(reset, update, candidate)


class ShowsTheCellItself(LSTM):
    """Without a matrix U the hidden state is the cell behind its gate, with no tanh."""

    def kernel(self):
        return None

    def advance(self, projected, state):
        hidden, (_, cell) = super().advance(projected, state)
        hidden = hidden if self.cell_matrix else hidden / torch.tanh(cell) * cell
        return hidden, (hidden, cell)


class OneEigenvalue(LRU):
    """Stable whatever the parameters, because they are not looked at."""

    @property
    def eigenvalues(self):
        return 0 * super().eigenvalues + 0.5


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        (placement, {"gru": HalfBefore}),
        (lstm_claim, {"lstm": ShowsTheCellItself}),
        (unit_claim, {"unit": OneEigenvalue}),
    ],
    ids=lambda value: value.id if hasattr(value, "id") else None,
)
def test_what_only_resembles_the_layer_is_rejected(claim, changed):
    assert not claim(Draw(claim.id), **changed).holds


def test_a_modulus_is_what_its_formula_says_and_not_what_the_inverse_undoes(monkeypatch):
    polar, log_rate = lru.polar, lru.log_rate
    monkeypatch.setattr(lru, "polar", lambda nu, phase: polar(nu + math.log(2), phase))
    monkeypatch.setattr(lru, "log_rate", lambda modulus: log_rate(modulus) - math.log(2))
    assert not polar_form(Draw(polar_form.id)).holds
