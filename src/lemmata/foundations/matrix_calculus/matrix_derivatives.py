r"""The table of derivatives: every row by its name or as it is written."""

import difflib

from lemmata.foundations.analysis.elementary_derivatives import ELEMENTARY
from lemmata.foundations.matrix_calculus.by_matrix import BY_MATRIX
from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow
from lemmata.foundations.matrix_calculus.scalar_by_vector import SCALAR_BY_VECTOR
from lemmata.foundations.matrix_calculus.vector_by_vector import VECTOR_BY_VECTOR
from lemmata.marks import system

__all__ = ["derivative_of", "derivative_table"]


def derivative_table() -> tuple[DerivativeRow, ...]:
    r"""All rows, by what is differentiated by what.

    $$ \frac{\partial}{\partial x}[\mathrm{function}] = \mathrm{derivative} $$

    Shapes:
        returns: one row for each identity, with its shapes and its layout

    Claims: matcalc.layout

    >>> for row in derivative_table()[4:8]:
    ...     print(f"{row.kind:18} {row.written:10} {row.formula:20} {row.layout}")
    scalar by vector   u(x) v(x)  u\,\frac{\partial v}{\partial x} + v\,\frac{\partial u}{\partial x} denominator
    scalar by vector   u(v(x))    u'(v(x))\,\frac{\partial v}{\partial x} denominator
    scalar by vector   f(x)^T g(x) J_f\,g + J_g\,f      denominator
    scalar by vector   f(x)^T A g(x) J_f A g + J_g A^\top f denominator
    """
    return (*ELEMENTARY, *SCALAR_BY_VECTOR, *VECTOR_BY_VECTOR, *BY_MATRIX)


@system("derivative_table", title="Table of derivatives", kind="function")
def derivative_of(name: str) -> DerivativeRow:
    r"""Look up a derivative by the name of its row, or by the function as one would type it.

    $$ x^\top A x \;\mapsto\; (A + A^\top)\,x $$

    Shapes:
        name: a row's `name` or `written`, in any case and spacing    returns: the row

    Claims: matcalc.quadratic_form, matcalc.product_scalar

    >>> row = derivative_of("x^T A x")
    >>> row.formula, row.layout, row.kind
    ('(A + A^\\top)\\,x', 'denominator', 'scalar by vector')
    >>> row.at(torch.tensor([1.0, 0.0]), A=torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    tensor([2., 2.])
    """
    # Case tells X^T from x^T: as written it counts, only names ignore it.
    rows = {_plain(row.name).lower(): row for row in derivative_table()}
    rows |= {_plain(row.written): row for row in derivative_table()}
    found = rows.get(_plain(name)) or rows.get(_plain(name).lower())
    if found is None:
        known = [text for row in derivative_table() for text in (row.name, row.written)]
        near = difflib.get_close_matches(name, known, 3, 0.4)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see derivative_table() for all rows"
        raise ValueError(f"there is no row {name!r}: {hint}")
    return found


def _plain(text: str) -> str:
    return "".join(text.split())
