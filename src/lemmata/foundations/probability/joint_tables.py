r"""Distributions of several discrete variables as tables: marginals, conditionals, Bayes, independence, chain rule."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.probability import parameters
from lemmata.marks import system

__all__ = ["JointTable", "bayes_posterior"]

Names = str | Sequence[str]


@system("joint_table", title="Joint probability table", kind="function")
class JointTable:
    r"""The joint distribution of discrete variables: one axis for each of them, in the order of their names.

    $$ P(X) = \sum_y P(X, Y=y), \qquad P(X, Y) = P(Y \mid X)\,P(X), \qquad p(X_{1:n}) = \prod_i p(X_i \mid X_{1:i-1}) $$

    Axes before those of the variables are a batch of tables. Variables are named by strings, several of them by a
    list or by one string with spaces.

    Shapes:
        table: (..., values of the first variable, ..., values of the last)

    Claims: probability.sum_rule, probability.product_rule, probability.chain_rule, probability.independence

    >>> weather = JointTable(torch.tensor([[0.5, 0.1], [0.1, 0.3]]), "rain umbrella")
    >>> weather.marginal("rain")
    tensor([0.6000, 0.4000])
    >>> weather.conditional("umbrella", given="rain")
    tensor([[0.8333, 0.1667],
            [0.2500, 0.7500]])
    >>> weather.independent("rain", "umbrella")
    tensor(False)
    """

    def __init__(self, table: Float[Tensor, "..."], variables: Names) -> None:
        self.variables = _split("variables", variables)
        if len(set(self.variables)) != len(self.variables) or not self.variables:
            raise ValueError(f"variables must be different names, at least one, got {list(self.variables)}")
        validate.floating("table", table)
        if table.ndim < len(self.variables):
            names = ", ".join(self.variables)
            raise ValueError(f"table must be a (..., {names}) tensor, got shape {tuple(table.shape)}")
        self.table = parameters.masses("table", table, tuple(range(-len(self.variables), 0)))

    def marginal(self, keep: Names, keepdim: bool = False) -> Tensor:
        """That of some of the variables: the others are summed out (or, with `keepdim`, keep an axis of size 1)."""
        rest = self._others(keep)
        return self.table.sum(rest, keepdim=keepdim) if rest else self.table

    def conditional(self, of: Names, given: Names, keepdim: bool = False) -> Tensor:
        r"""$P(\text{of} \mid \text{given})$, its axes in the order of the table; all other variables are summed out.

        No distribution is defined where the condition has probability 0: there the entries are 0, so that
        $P(\text{of}\mid\text{given})\,P(\text{given})$ is the joint distribution everywhere.
        """
        targets, conditions = _split("of", of), _split("given", given)
        if both := set(targets) & set(conditions):
            raise ValueError(f"of and given must be different variables, got {sorted(both)} in both")
        joint, condition = self.marginal([*targets, *conditions], keepdim=True), self.marginal(given, keepdim=True)
        law = joint / torch.where(condition > 0, condition, 1.0)
        return law if keepdim else law.squeeze(self._others([*targets, *conditions]))

    def factors(self, order: Names | None = None) -> list[Tensor]:
        r"""The conditionals $p(X_i \mid X_{1:i-1})$ of the chain rule in any order; their product is the table.

        Every factor has all axes of the table, those it does not depend on of size 1.
        """
        names = self.variables if order is None else _split("order", order)
        if sorted(names) != sorted(self.variables):
            raise ValueError(f"order must name each of {list(self.variables)} once, got {list(names)}")
        return [self.conditional(name, given=names[:index], keepdim=True) for index, name in enumerate(names)]

    def independence_gap(self, first: Names, second: Names, given: Names = ()) -> Tensor:
        r"""The largest $|P(X,Y\mid Z) - P(X\mid Z)\,P(Y\mid Z)|$, 0 iff $X \perp Y \mid Z$; one for each table."""
        first, second = _split("first", first), _split("second", second)
        joint = self.conditional([*first, *second], given, keepdim=True)
        product = self.conditional(first, given, keepdim=True) * self.conditional(second, given, keepdim=True)
        return (joint - product).abs().amax(tuple(range(-len(self.variables), 0)))

    def independent(self, first: Names, second: Names, given: Names = (), tolerance: float = 1e-6) -> Tensor:
        r"""Whether $X \perp Y$, or with `given` $X \perp Y \mid Z$, up to the tolerance: one answer for each table."""
        gap = self.independence_gap(first, second, given)
        return gap <= validate.finite_number("tolerance", tolerance)

    def __repr__(self) -> str:
        sizes = self.table.shape[-len(self.variables) :]
        return f"JointTable({', '.join(f'{n}={s}' for n, s in zip(self.variables, sizes, strict=True))})"

    def _others(self, names: Names) -> tuple[int, ...]:
        """The axes, counted from the last, of all variables but these."""
        found = _split("names", names)
        for name in found:
            if name not in self.variables:
                raise ValueError(f"{name!r} must be one of the variables {self.variables}")
        return tuple(i - len(self.variables) for i, name in enumerate(self.variables) if name not in found)


@system("bayes_rule", title="Bayes' rule", kind="function")
def bayes_posterior(
    prior: Float[Tensor, "*#batch hypotheses"], likelihood: Float[Tensor, "*#batch hypotheses"]
) -> Float[Tensor, "... hypotheses"]:
    r"""The probabilities of hypotheses after an observation.

    $$ P(Y \mid X) = \frac{P(X \mid Y)\,P(Y)}{\sum_i P(X \mid Y_i)\,P(Y_i)} $$

    Shapes:
        prior: (..., hypotheses), likelihood: (..., hypotheses), that of the one observation    returns: the same

    Claims: probability.bayes

    >>> bayes_posterior(torch.tensor([0.01, 0.99]), torch.tensor([0.95, 0.05]))  # ill or not; the test is positive
    tensor([0.1610, 0.8390])
    """
    prior = parameters.masses("prior", prior)
    if bool((validate.floating("likelihood", likelihood) < 0).any()):
        raise ValueError(f"likelihood must be >= 0, got {float(likelihood.min()):g}")
    if likelihood.ndim == 0 or likelihood.shape[-1] != prior.shape[-1]:
        wanted = f"each of {prior.shape[-1]} hypotheses"
        raise ValueError(f"likelihood must hold one number for {wanted}, got shape {tuple(likelihood.shape)}")
    joint = likelihood * prior
    evidence = joint.sum(-1, keepdim=True)
    if bool((evidence == 0).any()):
        raise ValueError("likelihood must be > 0 for a hypothesis whose prior is > 0: the observation cannot occur")
    return joint / evidence


def _split(name: str, names: Names) -> list[str]:
    found = names.split() if isinstance(names, str) else list(names)
    if not all(isinstance(each, str) for each in found):
        raise TypeError(f"{name} must hold names of variables, got {found!r}")
    return found
