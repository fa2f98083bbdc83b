"""What the claims about tables do not say: bad input, names, dtypes, batches, gradients."""

import math

import pytest
import torch

from lemmata.foundations import JointTable, bayes_posterior

TABLE = torch.tensor([[0.5, 0.1], [0.1, 0.3]])
HALF = torch.tensor([0.5, 0.5])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_floating_dtype_is_kept(dtype):
    joint = JointTable(torch.full((2, 2), 0.25, dtype=dtype), "a b")
    for value in (
        joint.marginal("a"),
        joint.conditional("a", given="b"),
        *joint.factors(),
        joint.independence_gap("a", "b"),
    ):
        assert value.dtype is dtype
    assert bayes_posterior(HALF.to(dtype), HALF.to(dtype)).dtype is dtype


def test_axes_before_the_variables_are_a_batch():
    joint = JointTable(TABLE.expand(3, 1, 2, 2), "a b")
    assert joint.marginal("b").shape == (3, 1, 2)
    assert joint.conditional("b", given="a").shape == (3, 1, 2, 2)
    assert joint.independent("a", "b").shape == (3, 1)
    assert bayes_posterior(HALF, torch.rand(4, 2)).shape == (4, 2)


def test_a_single_variable_is_a_table_too():
    joint = JointTable(HALF, "coin")
    assert joint.marginal("coin").equal(HALF)
    assert joint.factors()[0].equal(HALF)
    assert repr(joint) == "JointTable(coin=2)"


def test_names_may_be_a_list_and_the_axes_keep_the_order_of_the_table():
    joint = JointTable(torch.rand(2, 3, 4).div_(1).softmax(-1) / 6, ["a", "b", "c"])
    assert joint.marginal(["c", "a"]).shape == (2, 4)
    assert joint.conditional("c", given=["b"], keepdim=True).shape == (1, 3, 4)


def test_tables_have_gradients():
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def conditional(logits):
        return JointTable(logits.flatten().softmax(0).reshape(2, 3), "a b").conditional("b", given="a")

    assert torch.autograd.gradcheck(conditional, logits)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: JointTable(TABLE, "a"), ValueError, r"table must sum to 1 over its axis -1, got 0.6\d*: use table"),
        (
            lambda: JointTable(TABLE, "a b c"),
            ValueError,
            r"table must be a \(..., a, b, c\) tensor, got shape \(2, 2\)",
        ),
        (lambda: JointTable(TABLE, "a a"), ValueError, "variables must be different names"),
        (lambda: JointTable(TABLE, ""), ValueError, "variables must be different names, at least one"),
        (lambda: JointTable(TABLE, [1, 2]), TypeError, "variables must hold names of variables"),
        (lambda: JointTable(TABLE * 2 - 0.25, "a b"), ValueError, "table must hold probabilities, got -0.05"),
        (lambda: JointTable(TABLE * math.nan, "a b"), ValueError, "table must be finite"),
        (lambda: JointTable(TABLE.long(), "a b"), TypeError, "table must be floating point"),
        (lambda: JointTable(TABLE, "a b").marginal("z"), ValueError, "'z' must be one of the variables"),
        (lambda: JointTable(TABLE, "a b").conditional("a", given="a"), ValueError, "of and given must be different"),
        (lambda: JointTable(TABLE, "a b").factors("a"), ValueError, "order must name each of"),
        (
            lambda: JointTable(TABLE, "a b").independent("a", "b", tolerance=math.nan),
            ValueError,
            "tolerance must be finite",
        ),
        (lambda: bayes_posterior(HALF, -HALF), ValueError, "likelihood must be >= 0, got -0.5"),
        (lambda: bayes_posterior(2 * HALF, HALF), ValueError, "prior must sum to 1"),
        (lambda: bayes_posterior(HALF, 0 * HALF), ValueError, "likelihood must be > 0 for a hypothesis"),
        (lambda: bayes_posterior(HALF, HALF[:1].expand(3)), ValueError, "likelihood must hold one number for each"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.fixture
def three():
    """A generic table of three variables."""
    table = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return JointTable(table / table.sum(), "x y z")


def test_marginals_are_sums_over_the_other_axes(three):
    torch.testing.assert_close(three.marginal("x z", keepdim=True), three.table.sum(1, keepdim=True))
    assert torch.equal(three.marginal("x y z"), three.table)
    batch = JointTable(torch.stack([three.table, three.table.flip(0)]), "x y z")
    torch.testing.assert_close(batch.marginal("y x"), torch.stack([three.table, three.table.flip(0)]).sum(-1))


def test_conditionals_sum_to_one(three):
    torch.testing.assert_close(three.conditional("y z", given="x").sum((-1, -2)), torch.ones(3, dtype=torch.float64))


def test_a_condition_that_cannot_occur_has_a_row_of_zeros():
    absent = JointTable(torch.tensor([[0.5, 0.5], [0.0, 0.0]]), "a b")
    assert absent.conditional("b", given="a").tolist() == [[0.5, 0.5], [0.0, 0.0]]


def test_factors_are_conditionals_in_the_order_of_the_table(three):
    first, second, third = three.factors()
    torch.testing.assert_close(first * second * third, three.table)
    torch.testing.assert_close(second[:, :, 0], three.conditional("y", given="x"))


def test_posteriors_broadcast(three):
    likelihood = three.conditional("x", given="y")
    one_by_one = torch.stack([bayes_posterior(three.marginal("y"), row) for row in likelihood])
    torch.testing.assert_close(bayes_posterior(three.marginal("y"), likelihood[:, None]), one_by_one[:, None])


def test_the_gap_to_independence_is_symmetric_and_forgets_other_variables(three):
    pair = JointTable(three.table.sum(-1), "x y")
    torch.testing.assert_close(three.independence_gap("x", "y"), pair.independence_gap("y", "x"))
    coins = torch.zeros(2, 2, 2, dtype=torch.float64)
    coins[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25  # two fair coins, and whether they differ
    assert float(JointTable(coins, "x y z").independence_gap("x y", "z")) == 0.125
