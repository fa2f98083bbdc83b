"""What the chapter's claims accepted once and must not, and what they say of the sources."""

import math

import pytest

from lemmata.catalog import load
from lemmata.judge import Evidence
from lemmata.judge.runner import attempt
from lemmata.recurrent.claims.generation_cost import (
    a_step_of_attention_is_linear_in_the_context_and_of_recurrence_constant as cost,
)
from lemmata.recurrent.claims.lru import moduli_are_uniform_by_radius_or_by_area as initialisation
from lemmata.recurrent.claims.output_map import one_layer_serves_three_heads as heads


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
    assert {catalog.settled("rnn.lstm", erratum) for erratum in statement.errata} == {"notation", "convention"}
