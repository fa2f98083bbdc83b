"""The roofline: the larger of two times, at rates that are measured."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lemmata.bench.registry import Seconds
from lemmata.bench.workloads import roofline as rooflines
from lemmata.bench.workloads.attention_heads import heads, least_time
from lemmata.bench.workloads.model_steps import block_operations
from lemmata.bench.workloads.roofline import roofline
from lemmata.transformers import TransformerBlock


@pytest.fixture
def rates(monkeypatch):
    """Every call takes a second: a product of side 8 has 1,024 operations, the largest copy moves 2 x 8,192 bytes."""
    monkeypatch.setattr(rooflines, "SIDES", {"cpu": (4, 8)})
    monkeypatch.setattr(rooflines, "BYTES", {"cpu": (4096, 8192)})
    monkeypatch.setattr(rooflines, "_least_seconds", lambda device, call, *given: call(*given) is None or 1.0)


@pytest.mark.parametrize(("operations", "moved", "seconds"), [(4096, 0, 4), (1024, 32768, 2), (10240, 16384, 10)])
def test_the_larger_of_operations_and_bytes(rates, operations, moved, seconds):
    found = roofline(operations, moved, "cpu", torch.float32)()
    assert isinstance(found, Seconds)
    assert found == seconds


def test_causal_attention_counts_the_pairs_that_meet_and_training_three_times_as_many(rates):
    shape = (2, 3, 100, 8)
    found = [least_time(heads(shape, torch.float32, case, "cpu"))() for case in ("full", "causal", "causal_training")]
    full = 2 * 2 * 2 * 3 * 100 * 100 * 8 / 1024  # two products
    assert found == pytest.approx([full, full * 101 / 200, 3 * full * 101 / 200])


def test_a_block_has_the_operations_that_torch_counts():
    block, x = TransformerBlock(16, 2, hidden=40), torch.randn(3, 10, 16)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        block(x)
    assert counter.get_total_flops() == block_operations(3, 10, 16, 40, pairs=3 * 10 * 10)


def test_a_real_rate_is_finite(monkeypatch):
    monkeypatch.setattr(rooflines, "SIDES", {"cpu": (64,)})
    assert 0 < roofline(1e6, 1e3, "cpu", torch.float32)() < 10
