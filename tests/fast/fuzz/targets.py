"""What is called, with which arguments, and what the answer must be."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tests.fast.fuzz import answers

from lemmata import fast
from lemmata.fast.glove_sweep import WordTables
from lemmata.fast.scan_compiled import NUMBERS
from lemmata.fast.skip_gram_sweep import alias_negatives, alias_table
from lemmata.fast.sparse import neighbour_attention, neighbour_extreme, neighbour_sum, reference
from lemmata.fast.sparse.paths import sparse_path
from lemmata.fast.sparse.rows import Rows, rows_of
from lemmata.fast.wavenet_steps import StepWeights

OPS = torch.ops.lemmata


class Target(NamedTuple):
    call: Callable[..., Any]
    given: Callable[[random.Random], dict[str, Any]]
    answer: Callable[..., Any] | None = None  # of the same arguments, as they were; None: any that is no crash
    seen: Callable[[Any, dict[str, Any]], Any] = lambda found, _: found  # what of the call is compared


# --- Arguments as they should be ---


def _scan(draw: random.Random, back: bool = False, out: bool = False, start: bool = True) -> dict[str, Any]:
    dtype = draw.choice(list(NUMBERS))
    shape = [draw.choice((1, 2, 3)), draw.choice((1, 2, 5, 17)), draw.choice((1, 3, 4, 33))]
    x = torch.randn(shape, dtype=dtype)
    a = 0.9 * torch.randn(shape if draw.random() < 0.6 else (shape[0], shape[2]), dtype=dtype).sgn()
    z0 = torch.randn(shape[0], shape[2], dtype=dtype) if draw.random() < 0.5 else None
    given = {"a": a, "z": x, "z0": z0, "grad": torch.randn(shape, dtype=dtype)} if back else {"a": a, "b": x, "z0": z0}
    given |= {"reverse": draw.random() < 0.5}
    return given | ({"out": torch.empty_like(x)} if out else {})


def _patterns(draw: random.Random) -> tuple[Rows, Rows]:
    nodes, others, edges = draw.choice((1, 3, 9)), draw.choice((1, 4, 8)), draw.choice((0, 1, 7, 40))
    r, c = torch.randint(nodes, (edges,)), torch.randint(others, (edges,))
    made = rows_of(r, c, nodes), rows_of(c, r, others)
    if draw.random() < 0.5:  # by hand
        made = Rows(*(part.clone() for part in made[0])), Rows(*(part.clone() for part in made[1]))
    return made


def real(draw: random.Random) -> torch.dtype:
    return draw.choice((torch.float32, torch.float64))


def sums_given(draw: random.Random, op: bool = False) -> dict[str, Any]:
    rows, turned = _patterns(draw)
    dtype, features = real(draw), draw.choice((1, 8, 19, 70))
    weights = torch.randn(len(rows.columns), dtype=dtype) if draw.random() < 0.5 else None
    given = {"x": torch.randn(turned.number, features, dtype=dtype), "weights": weights, "rows": rows}
    return given if op else given | {"transposed": turned}


def _dots(draw: random.Random, op: bool = False) -> dict[str, Any]:
    rows, turned = _patterns(draw)
    dtype, features = real(draw), draw.choice((1, 8, 19, 70))
    given = {
        "a": torch.randn(rows.number, features, dtype=dtype),
        "b": torch.randn(turned.number, features, dtype=dtype),
    }
    return given | {"rows": rows} | ({} if op else {"transposed": turned})


def _extremes(draw: random.Random, op: bool = False) -> dict[str, Any]:
    rows, turned = _patterns(draw)
    x = torch.randn(turned.number, draw.choice((1, 8, 19, 70)), dtype=real(draw))
    return (
        {"x": x, "sign": draw.choice((1.0, -1.0)), "rows": rows}
        if op
        else {"x": x, "rows": rows, "transposed": turned, "largest": draw.random() < 0.5}
    )


def _attention(draw: random.Random, turned: bool = True) -> dict[str, Any]:
    rows, transposed = _patterns(draw)
    dtype, heads, width = real(draw), *draw.choice(((1, 1), (1, 8), (3, 5), (8, 8), (9, 2)))
    given = {
        "to": torch.randn(rows.number, heads, dtype=dtype),
        "source": torch.randn(transposed.number, heads, dtype=dtype),
        "more": torch.randn(len(rows.columns), heads, dtype=dtype) if draw.random() < 0.5 else None,
        "values": torch.randn(transposed.number, heads, width, dtype=dtype),
        "slope": 0.2,
        "rows": rows,
    }
    return given | ({"transposed": transposed} if turned else {})


def _attention_back(draw: random.Random) -> dict[str, Any]:
    given = _attention(draw)
    first = [given[name] for name in ("to", "source", "more", "values", "slope")]
    y, softmax = OPS.row_attention(*first, *given["rows"])
    return given | {"softmax": softmax, "y": y, "grad": torch.randn_like(y)}


def _back_by_autograd(softmax: Any, y: Any, grad: Any, **given: Any) -> Any:
    leaves = {name: given[name].detach().double().requires_grad_() for name in ("to", "source", "values")}
    entries = len(answers.entries_of(given["rows"], len(given["values"]), given["transposed"]))
    answers.attention(**given)
    heads = given["values"].shape[1]
    more = (
        torch.zeros(entries, heads, dtype=torch.float64) if given["more"] is None else given["more"].detach().double()
    )
    leaves["more"] = more.requires_grad_()
    answers.demand(grad.shape == y.shape == (len(given["rows"].pointers) - 1, *given["values"].shape[1:]))
    answers.demand(softmax.shape == (len(y), 2, heads))
    true, _ = reference.gathered_attention(
        leaves["to"], leaves["source"], more, leaves["values"], float(given["slope"]), given["rows"]
    )
    kept = OPS.row_attention(*(given[name] for name in ("to", "source", "more", "values", "slope")), *given["rows"])
    if not all(answers.same(mine, theirs) for mine, theirs in zip((y, softmax), kept, strict=True)):
        raise answers.Anything  # of another call: whose they are nobody can tell
    wanted = [leaves[name] for name in ("to", "source", "more", "values")]
    return torch.autograd.grad(true, wanted, grad.double(), allow_unused=True, materialize_grads=True)


def _sweep(draw: random.Random) -> dict[str, Any]:
    points, features, dtype = draw.choice((0, 1, 9, 150)), draw.choice((1, 2, 17, 40)), draw.choice(("f4", "f8"))
    source = np.random.default_rng(draw.randrange(2**31))
    x = source.integers(-3, 4, (points, features)).astype(dtype)  # sums without a rounding
    y = source.choice([-1, 1], points).astype(dtype)
    return {"x": x, "y": y, "state": source.integers(-2, 3, features + 1).astype(dtype), "bias": draw.random() < 0.5}


def _pairs(draw: random.Random) -> dict[str, Any]:
    words, dimensions = draw.choice((1, 2, 9)), draw.choice((1, 5, 16, 21))
    vectors = [
        torch.randn(words, dimensions, dtype=draw.choice((torch.float32,) * 3 + (torch.float64,))) for _ in range(2)
    ]
    vectors[1] = vectors[1].to(vectors[0].dtype)
    return {
        "given": vectors[0],
        "predicted": vectors[1],
        "pairs": torch.randint(words, (draw.choice((1, 2, 13)), 2)),
        "table": alias_table(torch.rand(words) + 0.01),
        "lr": 0.05,
        "samples": draw.choice((1, 5)),
        "batch_size": draw.choice((1, 4, 100)),
        "seed": draw.randrange(2**64),
    }


def _entries(draw: random.Random) -> dict[str, Any]:
    words, dimensions, entries = draw.choice((1, 2, 9)), draw.choice((1, 5, 16, 21)), draw.choice((1, 2, 13))
    dtype = draw.choice((torch.float32,) * 3 + (torch.float64,))
    shapes = [(words, dimensions)] * 2 + [(words,)] * 2
    return {
        "vectors": WordTables(*(torch.randn(shape, dtype=dtype) for shape in shapes)),
        "squares": WordTables(*(torch.rand(shape, dtype=dtype) + 0.1 for shape in shapes)),
        "pairs": torch.randint(words, (entries, 2)),
        "targets": torch.randn(entries, dtype=dtype),
        "weights": torch.rand(entries, dtype=dtype),
        "lr": 0.05,
        "batch_size": draw.choice((1, 4, 100)),
    }


def _steps(draw: random.Random) -> dict[str, Any]:
    channels, skips, levels, layers = (draw.choice(sizes) for sizes in ((1, 3, 33), (1, 5), (2, 40), (1, 3)))
    taps, batch = draw.choice((1, 2)), draw.choice((1, 2))
    dilation = torch.tensor([draw.choice((1, 2, 4)) for _ in range(layers)])

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64) / shape[-1] ** 0.5

    weights = StepWeights(
        normal(levels, channels),
        normal(layers, taps * channels, 2 * channels),
        normal(layers, channels, 2 * channels),
        normal(layers, 2 * channels),
        normal(layers, channels, channels),
        normal(layers, channels),
        normal(layers * channels, skips),
        normal(skips),
        normal(skips, skips),
        normal(skips),
        normal(skips, levels),
        normal(levels),
        dilation,
    )
    memory, last = normal(int(weights.slots.sum()), batch, channels), normal(batch, channels)
    chance = torch.rand(draw.choice((0, 1, 9)), batch, dtype=torch.float64)
    return {
        "weights": weights,
        "memory": memory,
        "last": last,
        "position": draw.choice((0, 5)),
        "temperature": 1.0,
        "chance": chance,
    }


def _without(make: Callable[..., dict[str, Any]], *names: str) -> Callable[[random.Random], dict[str, Any]]:
    return lambda draw: {name: value for name, value in make(draw).items() if name not in names}


def _of_sweep(found: Any, given: dict[str, Any]) -> Any:
    return None if found is None else (found[0] if isinstance(found, tuple) else found, given["state"])


def _extreme_at(x: Any, sign: Any, rows: Any) -> Any:
    """What the operator tells are columns: their values are compared."""
    answers.demand(sign in (1, -1))
    return answers.extremes(x, rows, sign == 1)


def _extreme_seen(found: torch.Tensor, given: dict[str, Any]) -> Any:
    x = given["x"].double()
    return x.gather(0, found.clamp(min=0)).masked_fill(found < 0, 0) if len(x) else torch.zeros_like(found).double()


def _as_torch_reads(flag: Any) -> Any:
    """Schemas take None and numbers for False and True."""
    return bool(flag) if flag is None or isinstance(flag, int | float) else flag


def opened(op: Callable[..., Any]) -> Callable[..., Any]:
    """An operator takes a pattern in three parts."""

    def call(*, rows: Any, transposed: Any = None, **given: Any) -> Any:
        rest = {name: given.pop(name) for name in ("softmax", "y", "grad") if name in given}
        if not isinstance(rows, tuple) or len(rows) != 3 or not all(isinstance(part, torch.Tensor) for part in rows):
            raise TypeError("rows must be three tensors")  # torch's own check of a schema
        try:
            return op(*given.values(), *rows, *(() if transposed is None else transposed), *rest.values())
        except RuntimeError as error:
            if "Expected a value of type" in str(error) or "Unable to cast" in str(error) or "lemmata::" in str(error):
                raise TypeError("arguments must be of the types of the schema") from None
            raise

    return call


TARGETS = {
    "linear_scan": Target(fast.linear_scan, _scan, answers.scan),
    "ops.linear_scan": Target(
        lambda a, b, z0, reverse: opened(lambda *g: OPS.linear_scan(a, b, z0, reverse))(rows=(torch.ones(1),) * 3),
        _scan,
        lambda reverse, **g: answers.scan(**g, reverse=_as_torch_reads(reverse)),
    ),
    "ops.linear_scan_backward": Target(
        lambda a, z, z0, grad, reverse: opened(lambda *g: OPS.linear_scan_backward(a, z, z0, grad, reverse))(
            rows=(torch.ones(1),) * 3
        ),
        lambda draw: _scan(draw, back=True),
        lambda reverse, **g: answers.scan_back(**g, reverse=_as_torch_reads(reverse)),
    ),
    "compiled_forward": Target(fast.compiled_forward, lambda draw: _scan(draw, out=True), answers.scan),
    "compiled_backward": Target(fast.compiled_backward, lambda draw: _scan(draw, back=True), answers.scan_back),
    "chunked_forward": Target(fast.chunked_forward, lambda draw: _scan(draw, out=draw.random() < 0.5), answers.scan),
    "chunked_backward": Target(fast.chunked_backward, lambda draw: _scan(draw, back=True), answers.scan_back),
    "scan_by_steps": Target(fast.scan_by_steps, _scan, answers.scan),
    "scan_by_doubling": Target(
        lambda a, b, compose: fast.scan_by_doubling((a, b), compose),
        lambda draw: _without(_scan, "z0", "reverse")(draw) | {"compose": fast.compose_steps},
    ),
    "scan_by_halving": Target(
        lambda steps: fast.scan_by_halving(steps), lambda draw: {"steps": (torch.rand(2, 5, 3), torch.rand(2, 5, 3))}
    ),
    "compose_steps": Target(
        fast.compose_steps,
        lambda draw: {"later": (torch.rand(2, 3), torch.rand(2, 3)), "earlier": (torch.rand(2, 3), torch.rand(2, 3))},
    ),
    "sweep_entries": Target(fast.sweep_entries, _entries),
    "sweep_entries_compiled": Target(fast.sweep_entries_compiled, _entries),
    "sweep_entries_in_torch": Target(fast.sweep_entries_in_torch, _entries),
    "scan_path": Target(fast.scan_path, _without(_scan, "a", "z0", "reverse")),
    "why_not_compiled": Target(
        fast.why_not_compiled, lambda draw: {"dtype": draw.choice((torch.float32, torch.int8, None, "float32", []))}
    ),
    "row_sums": Target(neighbour_sum.row_sums, sums_given, answers.sums),
    "ops.row_sums": Target(opened(OPS.row_sums), lambda draw: sums_given(draw, op=True), answers.sums),
    "gathered_sums": Target(reference.gathered_sums, lambda draw: sums_given(draw, op=True), answers.sums),
    "entry_dots": Target(neighbour_sum.entry_dots, _dots, answers.dots),
    "ops.entry_dots": Target(opened(OPS.entry_dots), lambda draw: _dots(draw, op=True), answers.dots),
    "gathered_dots": Target(reference.gathered_dots, lambda draw: _dots(draw, op=True), answers.dots),
    "row_extremes": Target(neighbour_extreme.row_extremes, _extremes, answers.extremes),
    "ops.row_extremes": Target(
        opened(OPS.row_extremes), lambda draw: _extremes(draw, op=True), _extreme_at, _extreme_seen
    ),
    "gathered_extremes": Target(
        reference.gathered_extremes, lambda draw: _extremes(draw, op=True), _extreme_at, _extreme_seen
    ),
    "row_attention": Target(neighbour_attention.row_attention, _attention, lambda **g: answers.attention(**g)[0]),
    "ops.row_attention": Target(
        opened(OPS.row_attention),
        lambda draw: _attention(draw, turned=False),
        lambda **g: answers.attention(**g)[0],
        lambda found, _: found[0],
    ),
    "gathered_attention": Target(
        reference.gathered_attention, lambda draw: _attention(draw, turned=False), answers.attention
    ),
    "ops.row_attention_backward": Target(opened(OPS.row_attention_backward), _attention_back, _back_by_autograd),
    "rows_of": Target(
        rows_of,
        lambda draw: {"rows": torch.randint(4, (draw.choice((0, 9)),)), "columns": torch.randint(5, (9,)), "number": 4},
        seen=lambda found, _: answers.entries_of(found, 2**64),
    ),
    "Rows.row_of_each": Target(
        lambda rows: Rows.row_of_each(rows) if isinstance(rows, Rows) else rows_of(rows, rows, 0),
        lambda draw: {"rows": _patterns(draw)[0]},
        lambda rows: torch.tensor([r for r, _, _ in answers.entries_of(rows, 2**64)], dtype=torch.int64),
    ),
    "sparse_path": Target(sparse_path, lambda draw: {"x": torch.rand(3, 2)}),
    "block_sweep": Target(fast.block_sweep, _sweep, answers.perceptron, _of_sweep),
    "compiled_sweep": Target(fast.compiled_sweep, _sweep, answers.perceptron, _of_sweep),
    "quick_sweep": Target(
        lambda earlier, **g: fast.quick_sweep(**g, earlier=earlier),
        lambda draw: _sweep(draw) | {"earlier": draw.choice((0, 499, 600))},
        lambda earlier, **g: answers.perceptron(**g),
        _of_sweep,
    ),
    "fingerprint": Target(fast.fingerprint, lambda draw: {"state": np.ones(3)}),
    "sweep_pairs": Target(
        fast.sweep_pairs, _pairs, answers.pairs, lambda found, g: (found, g["given"], g["predicted"])
    ),
    "sweep_pairs_compiled": Target(
        fast.sweep_pairs_compiled,
        _pairs,
        answers.pairs,
        lambda found, g: answers.pairs(**g) if found is None else (found, g["given"], g["predicted"]),
    ),
    "sweep_pairs_in_torch": Target(
        fast.sweep_pairs_in_torch, _pairs, answers.pairs, lambda found, g: (found, g["given"], g["predicted"])
    ),
    "alias_negatives": Target(
        alias_negatives, lambda draw: {"table": alias_table(torch.rand(5)), "seed": 3, "first": 0, "shape": (2, 3)}
    ),
    "alias_table": Target(alias_table, lambda draw: {"distribution": torch.rand(draw.choice((1, 6)))}),
    "compiled_steps": Target(
        fast.compiled_steps, _steps, answers.steps, lambda found, g: (found, g["memory"], g["last"])
    ),
    "one_step": Target(fast.one_step, _without(_steps, "temperature", "chance")),
    "drawn_level": Target(
        fast.drawn_level,
        lambda draw: {"logits": torch.randn(4, 5), "temperature": 1.0, "chance": torch.rand(4, dtype=torch.float64)},
    ),
    "why_no_compiled_steps": Target(fast.why_no_compiled_steps, lambda draw: {"last": torch.rand(2, 3)}),
    "even_bounds": Target(fast.even_bounds, lambda draw: {"blocks": 9, "threads": 2}),
    "share_work": Target(fast.share_work, lambda draw: {"work": lambda first, last: None, "bounds": [0, 3, 9]}),
    "load_compiled": Target(fast.load_compiled, lambda draw: {"source": Path("none.c"), "defines": ["-DREAL=float"]}),
}
