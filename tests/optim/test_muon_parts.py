"""Which parameters Muon takes for hidden matrices, which of them together, and by which way to orthogonality."""

import pytest
import torch
from torch import nn

from lemmata.optim import hidden_matrices, muon
from lemmata.optim.muon import STACKED_ENTRIES


@pytest.mark.parametrize("table", [nn.Embedding, nn.EmbeddingBag])
def test_every_kind_of_table_is_left_to_adamw(table):
    model = nn.Sequential(table(10, 4), nn.Linear(4, 4), nn.Linear(4, 10))
    assert [name for name, _ in hidden_matrices(model)] == ["1.weight"]


def test_matrices_alike_are_stacked_as_far_as_memory_goes(monkeypatch):
    monkeypatch.setitem(STACKED_ENTRIES, "cpu", 40)
    alike = [torch.ones(4, 5) for _ in range(5)]
    assert muon._equal_shapes(alike) == [[0, 1], [2, 3], [4]]
    mixed = [alike[0], torch.ones(5, 4), alike[1], torch.ones(4, 5).double(), torch.ones(9, 9), torch.ones(9, 9)]
    assert muon._equal_shapes(mixed) == [[0, 2], [1], [3], [4], [5]]


@pytest.mark.parametrize(
    ("shape", "dtype", "steps", "short"),
    [
        ((6, 12), torch.float32, 5, True),
        ((12, 6), torch.float32, 5, True),
        ((6, 11), torch.float32, 5, False),  # not twice as long: it would take more operations
        ((6, 12), torch.bfloat16, 5, False),  # and here rounding would grow too much
        ((6, 12), torch.float32, 7, False),
        ((6, 12), torch.float64, 7, True),
    ],
)
def test_long_matrices_go_the_short_way_where_it_is_exact_enough(shape, dtype, steps, short, monkeypatch):
    taken = []
    whole, by_gram = muon.newton_schulz, muon._newton_schulz_by_gram
    monkeypatch.setattr(muon, "newton_schulz", lambda *given: taken.append("whole") or whole(*given))
    monkeypatch.setattr(muon, "_newton_schulz_by_gram", lambda *given: taken.append("gram") or by_gram(*given))
    matrices = torch.randn(2, *shape).to(dtype)
    found = muon._nearly_orthogonal(matrices, steps, muon.QUINTIC, 1e-7)
    assert found.shape == matrices.shape
    assert taken == ["gram" if short else "whole"]
