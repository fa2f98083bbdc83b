"""Proof by enumeration: the judge goes through every case of a domain, and says of which."""

import itertools
import math

import pytest
import torch

from lemmata.judge import Domain, count_is, everywhere, same_everywhere

DOMAINS = [
    (Domain.signs(3), 8, "vectors of 3 signs"),
    (Domain.bits(5), 32, "vectors of 5 bits"),
    (Domain.vectors((0, 1, 2), 4), 81, "vectors of 4 entries from (0, 1, 2)"),
    (Domain.subsets(4), 16, "subsets of 4 things"),
    (Domain.permutations(4), 24, "orders of 4 things"),
    (Domain.range(-2, 5), 7, "integers from -2 to 4"),
    (Domain.listed("a", "b", 3), 3, "of a, b, 3"),
    (Domain.signs(2) * Domain.range(0, 3), 12, "combinations of 4 vectors of 2 signs and 3 integers from 0 to 2"),
    (
        Domain.bits(1) * Domain.range(0, 3) * Domain.subsets(2),
        24,
        "combinations of 2 vectors of 1 bits and 3 integers from 0 to 2 and 4 subsets of 2 things",
    ),
]


@pytest.mark.parametrize(("domain", "size", "words"), DOMAINS)
def test_every_case_is_visited_once(domain, size, words):
    seen = []
    evidence = everywhere(domain, lambda *case: seen.append(case) is None)
    assert (len(seen), len(set(seen)), domain.size) == (size, size, size)
    assert (evidence.holds, evidence.proof, evidence.by) == (True, True, "exact")
    assert (evidence.measured, evidence.predicted, evidence.detail) == (size, size, f"all {size} {words}")


@pytest.mark.parametrize("n", [1, 4, 13])  # 2^13 is two batches
def test_vectorised_conditions_see_the_same_cases(n):
    rows = []

    def condition(bits):
        rows.append(bits)
        return bits.sum(dim=1) <= n

    assert everywhere(Domain.bits(n), condition, vectorised=True).proof
    assert torch.cat(rows).tolist() == [list(bits) for bits in itertools.product((0, 1), repeat=n)]
    both = Domain.signs(2) * Domain.range(0, 3)
    assert everywhere(both, lambda signs, k: (signs.sum(1) + k).abs() <= 4, vectorised=True).proof


def test_one_exception_breaks_the_rule_and_is_named():
    evidence = everywhere(Domain.signs(4), lambda signs: signs != (1, -1, 1, 1))
    assert (evidence.holds, evidence.proof, evidence.measured) == (False, False, 15)
    assert evidence.detail == "all 16 vectors of 4 signs; first fails at (1, -1, 1, 1)"
    late = everywhere(Domain.range(0, 10_000), lambda n: n != 9_000, vectorised=True)
    assert (late.holds, late.detail) == (False, "all 10,000 integers from 0 to 9999; first fails at 9000")


def test_cases_are_counted():
    evidence = count_is(Domain.permutations(4), lambda p: all(p[i] != i for i in range(4)), 9)
    assert (evidence.holds, evidence.proof, evidence.detail) == (True, True, "9 among all 24 orders of 4 things")
    wrong = count_is(Domain.permutations(4), lambda p: all(p[i] != i for i in range(4)), 8)
    assert (wrong.holds, wrong.proof, wrong.measured, wrong.predicted) == (False, False, 9, 8)


def test_functions_are_compared_on_the_whole_domain():
    parity = Domain.bits(6)
    assert same_everywhere(parity, lambda b: sum(b) % 2, lambda b: math.prod(1 - 2 * x for x in b) < 0).proof
    assert same_everywhere(parity, lambda b: b.sum(1), lambda b: b.flip(1).sum(1), vectorised=True).proof
    assert same_everywhere(parity, lambda b: b * 2, lambda b: b + b, vectorised=True).proof
    wrong = same_everywhere(parity, lambda b: b * 2, lambda b: (b + b).clamp(max=1), vectorised=True)
    assert (wrong.holds, wrong.measured) == (False, 1)
    assert wrong.detail.endswith("first fails at (0, 0, 0, 0, 0, 1)")


@pytest.mark.parametrize("vectorised", [True, False])
def test_nan_decides_nothing(vectorised):
    def undefined(n):
        return torch.as_tensor(n) / 0.0 * 0.0

    assert same_everywhere(Domain.range(0, 3), undefined, undefined, vectorised=vectorised).undecided


@pytest.mark.parametrize(
    "domain", [Domain.listed(3), Domain.range(4, 4), Domain.range(9, 4), Domain.bits(0), Domain.subsets(0)]
)
def test_one_case_proves_nothing(domain):
    """`exhaustive=True` on one case was shown as proved exactly."""
    with pytest.raises(ValueError, match="a domain of fewer than two cases proves nothing"):
        everywhere(domain, lambda case: True)


def test_a_list_of_ones_own_is_not_a_domain():
    for cases in ([True], range(3), iter([1, 2])):
        with pytest.raises(TypeError, match="cases must be a Domain such as"):
            everywhere(cases, lambda case: True)


def test_too_many_cases_are_refused_before_they_are_begun():
    with pytest.raises(
        ValueError, match="all 1,099,511,627,776 vectors of 40 bits: more than 100,000,000 are too many"
    ):
        everywhere(Domain.bits(40), lambda bits: True)


def test_a_domain_lists_each_value_once():
    with pytest.raises(ValueError, match="lists each value once"):
        Domain.listed(1, 1)
    with pytest.raises(ValueError, match="lists each value once"):
        Domain.vectors((0, 0), 3)
    with pytest.raises(ValueError, match="kind must be one of vectors"):
        Domain("everything", (1,))
    with pytest.raises(ValueError, match="needs a length >= 0, got -1"):
        Domain.bits(-1)


def test_only_booleans_are_answers():
    with pytest.raises(TypeError, match="a condition must be a boolean, got 1"):
        everywhere(Domain.bits(2), lambda bits: 1)
    for wrong in (lambda b: b, lambda b: True, lambda b: (b > 0).all(), lambda b: b.sum(1)):
        with pytest.raises(TypeError, match="a vectorised condition must answer 4 cases with a boolean each"):
            everywhere(Domain.bits(2), wrong, vectorised=True)
    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(4, 2\)"):
        same_everywhere(Domain.bits(2), lambda b: b.sum(1), lambda b: b, vectorised=True)
