"""Diagnostics of chains: arviz's numbers, what is known exactly, and a named reason where nothing can be said."""

import math
import warnings

import pytest
import torch

from lemmata.measure import diagnose_chains, effective_sample_size


def autoregressive(chains, draws, keep, seed=0, dimension=1):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(draws, chains, dimension, generator=generator, dtype=torch.float64)
    values = [noise[0]]
    for z in noise[1:]:
        values.append(keep * values[-1] + math.sqrt(1 - keep**2) * z)
    return torch.stack(values, dim=1)


CASES = {
    "independent": autoregressive(4, 500, 0.0),
    "slow": autoregressive(3, 401, 0.95),
    "alternating": autoregressive(2, 300, -0.9),
    "one chain": autoregressive(1, 1000, 0.5),
    "apart": autoregressive(4, 200, 0.3) + torch.arange(4.0).double()[:, None, None],
    "heavy tails": autoregressive(4, 300, 0.2).pow(5),
    "ties": autoregressive(4, 300, 0.4).round(),
    "few draws": autoregressive(2, 4, 0.0),
    "five draws": autoregressive(3, 5, 0.0),
    "seven draws": autoregressive(3, 7, 0.6),
    "random walk": autoregressive(2, 120, 0.0).cumsum(1),
    "two values": (autoregressive(3, 100, 0.7) > 0).double(),
    "eight draws against each other": autoregressive(2, 8, -0.9, seed=3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_those_of_arviz(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
    values = CASES[name]
    array = values[..., 0].numpy()
    found = diagnose_chains(values)
    expected = {
        "bulk": arviz.ess(array, method="bulk"),
        "tail": arviz.ess(array, method="tail"),
        "r_hat": arviz.rhat(array, method="rank") if len(array) > 1 else found.r_hat.item(),  # it asks for two
        "mcse": arviz.mcse(array, method="mean"),
    }
    for key, value in expected.items():
        assert getattr(found, key).item() == pytest.approx(float(value), rel=1e-10), key
    whole = arviz.ess(array, method="identity")
    assert effective_sample_size(values[..., 0]) == pytest.approx(float(whole), rel=1e-10)


RECORDED = {  # arviz 0.23.4 on the cases above: bulk, tail, R-hat, MCSE
    "independent": [1834.750672, 1894.529233, 1.001115321, 0.02325237239],
    "slow": [17.1291838, 66.8080254, 1.149928579, 0.2318105],
    "alternating": [1666.89075, 183.9604703, 1.024607245, 0.02419006956],
    "apart": [7.3286741, 43.18930058, 1.554371183, 0.5755235827],
    "ties": [531.5548952, 701.8817574, 1.003894663, 0.04519078429],
    "two values": [86.69972236, 86.69972236, 1.011133122, 0.05355330811],
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_numbers_are_those_that_were_recorded(name):
    found = diagnose_chains(CASES[name])
    numbers = [found.bulk.item(), found.tail.item(), found.r_hat.item(), found.mcse.item()]
    assert numbers == pytest.approx(RECORDED[name], rel=1e-6)


def test_the_size_is_that_of_an_autoregression():
    for keep in (0.0, 0.5, 0.9):
        values = autoregressive(8, 20_000, keep)
        expected = 160_000 * (1 - keep) / (1 + keep)
        assert effective_sample_size(values[..., 0]) == pytest.approx(expected, rel=0.1)


def test_every_dimension_is_diagnosed_by_itself():
    values = torch.cat([CASES["independent"], CASES["independent"].cumsum(1)], dim=2)
    together = diagnose_chains(values)
    for k in range(2):
        alone = diagnose_chains(values[..., k])
        assert [column[k].item() for column in together[:-1]] == [column.item() for column in alone[:-1]]


def test_ranks_make_the_bulk_blind_to_increasing_maps():
    values = CASES["independent"]
    assert diagnose_chains(values.exp()).bulk == diagnose_chains(values).bulk
    assert diagnose_chains(3 * values + 2).mcse.item() == pytest.approx(3 * diagnose_chains(values).mcse.item())


def test_chains_that_disagree_in_place_or_in_spread_are_noticed_and_so_is_a_drift():
    assert diagnose_chains(CASES["apart"]).r_hat > 1.2
    spread = CASES["independent"] * torch.tensor([1.0, 1.0, 1.0, 3.0]).double()[:, None, None]
    assert diagnose_chains(spread).r_hat > 1.05
    drift = autoregressive(1, 400, 0.0) + torch.linspace(0, 3, 400).double()[None, :, None]
    assert diagnose_chains(drift).r_hat > 1.2


def test_what_never_moves_has_a_named_reason():
    values = torch.stack(
        [torch.full((3, 50), 1.5), torch.arange(3.0)[:, None].expand(3, 50), torch.randn(3, 50)], dim=2
    )
    found = diagnose_chains(values)
    assert found.reasons == ("every draw is 1.5", "every chain stands still where it started", "")
    assert found.bulk.isnan().tolist() == found.r_hat.isnan().tolist() == [True, True, False]
    assert found.mean.tolist()[:2] == [1.5, 1.0]


def test_single_precision_and_size_extremes():
    values = CASES["slow"]
    assert diagnose_chains(values.float()).bulk.item() == pytest.approx(diagnose_chains(values).bulk.item(), rel=1e-4)
    assert diagnose_chains(values * 1e-150).bulk.item() == pytest.approx(diagnose_chains(values).bulk.item(), rel=1e-9)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0], TypeError, "values must be a tensor, got list"),
        (torch.zeros(2, 3), ValueError, "at least 4 draws of each chain, got 3"),
        (torch.zeros(8), ValueError, r"must be a \(chains, draws, dimension\) tensor, got shape \(8,\)"),
        (torch.zeros(0, 8), ValueError, "values must not be empty"),
        (torch.tensor([[1.0, 2.0, math.nan, 3.0]]), ValueError, "found 1 NaN value"),
    ],
)
def test_bad_values_are_refused_in_a_sentence(unchecked, values, error, message):
    with pytest.raises(error, match=message):
        diagnose_chains(values)
