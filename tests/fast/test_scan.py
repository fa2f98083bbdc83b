"""The linear scan beyond its claim: bad input, numbers, layouts, strides, second derivatives, transforms, memory."""

import os
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from lemmata.fast import scan_paths
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_backward, chunked_forward
from lemmata.fast.scan_paths import scan_path
from lemmata.fast.scan_reference import scan_by_doubling, scan_by_halving, scan_by_steps

REAL, COMPLEX = torch.float64, torch.complex128


def instance(time=9, batch=2, channel=3, dtype=REAL):
    shape = batch, time, channel
    return (
        0.7 * torch.randn(shape, dtype=dtype),
        torch.randn(shape, dtype=dtype),
        torch.randn(batch, channel, dtype=dtype),
    )


# --- Bad input ---


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"a": [1.0]}, TypeError, "a must be a tensor, got list"),
        ({"b": None}, TypeError, "b must be a tensor, got NoneType"),
        (
            {"b": torch.ones(2, 9, 3, dtype=torch.int64)},
            TypeError,
            "b must be floating point or complex, got torch.int64",
        ),
        ({"z0": torch.ones(2, 3, dtype=torch.bool)}, TypeError, "z0 must be floating point or complex, got torch.bool"),
        ({"b": torch.ones(9, 3)}, ValueError, r"b must be a \(batch, time, channel\) tensor, got shape \(9, 3\)"),
        (
            {"a": torch.ones(9, 3)},
            ValueError,
            r"a must have the shape \(2, 9, 3\) of b, or \(2, 3\) or \(3,\) if it is",
        ),
        ({"a": torch.ones(())}, ValueError, r"a must have the shape .* got \(\)"),
        ({"z0": torch.ones(3)}, ValueError, r"z0 must be a \(batch, channel\) tensor of shape \(2, 3\), got \(3,\)"),
        ({"reverse": 1}, TypeError, "reverse must be True or False, got 1"),
        ({"time_last": None}, TypeError, "time_last must be True or False, got None"),
        ({"a": torch.ones(2, 9, 3, device="meta")}, ValueError, "a must be on the device of b, cpu, got meta"),
    ],
)
def test_what_cannot_be_scanned_is_refused(change, error, message):
    given = {"a": torch.ones(2, 9, 3), "b": torch.ones(2, 9, 3), "z0": torch.ones(2, 3)} | change
    with pytest.raises(error, match=message):
        linear_scan(**given)


def test_with_time_last_the_message_names_the_axes_in_that_order():
    with pytest.raises(ValueError, match=r"b must be a \(batch, channel, time\) tensor"):
        linear_scan(torch.ones(3), torch.ones(3), time_last=True)
    with pytest.raises(ValueError, match=r"a must have the shape \(2, 3, 9\) of b, or \(2, 3\) or \(3,\)"):
        linear_scan(torch.ones(9), torch.ones(2, 3, 9), time_last=True)


# --- Sizes and numbers ---


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 5, 3), (2, 5, 0)])
@pytest.mark.parametrize("time_last", [False, True])
def test_nothing_at_all_is_scanned_too_with_gradients(shape, time_last):
    batch, time, channel = shape
    b = torch.ones(batch, channel, time) if time_last else torch.ones(*shape)
    inputs = [torch.ones(channel), b, torch.ones(batch, channel)]
    z = linear_scan(*[x.requires_grad_() for x in inputs], time_last=time_last)
    assert z.shape == b.shape
    z.sum().backward()
    assert [x.grad.abs().sum() for x in inputs] == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("time_last", [False, True])
def test_half_precision_is_computed_in_single_and_rounded_once(monkeypatch, dtype, time_last):
    monkeypatch.setattr(scan_paths, "PIECE", 40)  # several pieces along batch and channel
    a, b, z0 = (x.to(dtype) for x in instance(time=30, channel=5, dtype=torch.float32))
    a, b, grad = (x.mT.contiguous() if time_last else x for x in (a, b, torch.randn_like(b)))
    half = [x.clone().requires_grad_() for x in (a, b, z0)]
    wide = [x.float().requires_grad_() for x in (a, b, z0)]
    z = linear_scan(*half, time_last=time_last)
    expected = linear_scan(*wide, time_last=time_last)
    assert z.dtype == dtype
    assert torch.equal(z, expected.to(dtype))
    found = torch.autograd.grad(z, half, grad)
    for mine, exact in zip(found, torch.autograd.grad(expected, wide, grad.float()), strict=True):
        assert mine.dtype == dtype
        torch.testing.assert_close(mine.float(), exact, rtol=2e-2, atol=2e-2)


def test_different_kinds_of_numbers_meet_in_the_wider_one():
    a, b, z0 = instance()
    phases = torch.tensor([1j, -1, 1], dtype=torch.complex64, requires_grad=True)
    z = linear_scan(phases, b, z0.float())
    assert z.dtype == COMPLEX
    (found,) = torch.autograd.grad(z.real.sum(), phases)
    assert found.dtype == torch.complex64
    assert linear_scan(a.bfloat16(), b.float()).dtype == torch.float32


def test_infinite_and_missing_values_stay_in_their_own_sequence():
    a, b, _ = instance(channel=8)
    b[0, 3, 2] = float("nan")
    a[1, 4, 5] = float("inf")
    z = linear_scan(a, b)
    assert z[0, 3:, 2].isnan().all()
    assert z.isfinite().sum() == z.numel() - 6 - 5


@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_gates_may_overflow_where_no_state_does(reverse):
    a, b = torch.full((1, 50, 9), 1e30), torch.zeros(1, 50, 9)
    b[:, 0 if reverse else -1] = 1.0  # where the scan ends
    for scan in (linear_scan, chunked_forward):
        assert torch.equal(scan(a, b, None, reverse), b)


# --- Layouts and strides ---


@pytest.mark.parametrize("dtype", [torch.float32, REAL, torch.complex64, COMPLEX])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_every_layout_gives_the_same_bits_and_none_is_copied(dtype, reverse, constant):
    a, b, z0 = instance(time=21, channel=11, dtype=dtype)
    a = a[:, 0].contiguous() if constant else a
    grad = torch.randn_like(b)
    z = linear_scan(a, b, z0, reverse)
    gradients = scan_paths.backward(a, z, z0, grad, reverse)
    stored = b.mT.contiguous()
    gates = a if constant else a.mT.contiguous()
    views = [
        (gates, stored, True),
        (gates if constant else gates.mT, stored.mT, False),
        (a if constant else a.repeat_interleave(2, 2)[..., ::2], b.repeat_interleave(2, 1)[:, ::2], False),
    ]
    for gate, term, time_last in views:
        found = linear_scan(gate, term, z0, reverse, time_last=time_last)
        found = found.mT if time_last else found
        assert torch.equal(found, z)
        term = term.mT if time_last else term
        assert scan_paths.time_is_last(found) == scan_paths.time_is_last(term)
        gate = gate.mT if time_last and not constant else gate
        for mine, theirs in zip(scan_paths.backward(gate, found, z0, grad, reverse), gradients, strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("shape", [(1, 7, 1), (9, 7, 1), (9, 7, 3), (1, 7, 300), (3, 1, 17)])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_odd_sizes(shape, dtype):
    batch, time, channel = shape
    inputs = [x.requires_grad_() for x in instance(time, batch, channel, dtype)]
    weight = torch.randn(shape, dtype=dtype)
    ours, loop = linear_scan(*inputs), scan_by_steps(*inputs)
    torch.testing.assert_close(ours, loop)
    expected = torch.autograd.grad(loop, inputs, weight)
    torch.testing.assert_close(torch.autograd.grad(ours, inputs, weight), expected)
    plain = [x.detach() for x in inputs]
    torch.testing.assert_close(chunked_backward(plain[0], loop.detach(), plain[2], weight, False), expected)


def test_conjugated_and_expanded_views_are_read_as_what_they_mean():
    a, b, z0 = instance(dtype=COMPLEX, channel=9)
    expected = scan_by_steps(a.conj().resolve_conj(), b, z0)
    torch.testing.assert_close(linear_scan(a.conj(), b, z0), expected)
    torch.testing.assert_close(linear_scan(a, b.conj(), z0.conj()).conj(), expected)
    gate, term = a[:1, :1].expand_as(a), b[:, :1].expand_as(b)
    torch.testing.assert_close(linear_scan(gate, term), scan_by_steps(gate, term))


# --- Derivatives ---


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_first_and_second_derivatives(dtype, reverse, constant):
    a, b, z0 = instance(time=3, channel=2, dtype=dtype)
    inputs = [x.requires_grad_() for x in (a[:, 0].clone() if constant else a, b, z0)]

    def scan(*inputs):
        return linear_scan(*inputs, reverse)

    assert torch.autograd.gradcheck(scan, inputs)
    assert torch.autograd.gradgradcheck(scan, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda a, b: linear_scan(a, b, None, reverse), inputs[:2], fast_mode=True)


def test_transforms_of_torch_func():
    a, b, z0 = instance(time=4)
    whole = torch.func.jacrev(linear_scan)(a, b, z0)
    torch.testing.assert_close(whole, torch.autograd.functional.jacobian(lambda a: linear_scan(a, b, z0), a))
    torch.testing.assert_close(torch.func.jacfwd(linear_scan)(a, b, z0), whole)
    each = torch.func.vmap(linear_scan, (None, 0))(a, torch.stack([b, 2 * b]))
    torch.testing.assert_close(each[1], linear_scan(a, 2 * b))


def test_tree_scans_have_gradients_too():
    a, b, _ = (x.requires_grad_() for x in instance(time=11))
    expected = torch.autograd.grad(scan_by_steps(a, b).sum(), (a, b))
    for prefixes in (scan_by_doubling, scan_by_halving):
        torch.testing.assert_close(torch.autograd.grad(prefixes((a, b))[1].sum(), (a, b)), expected)


@pytest.mark.parametrize("kind", ["varying", "for each sequence"])
@pytest.mark.parametrize("time_last", [False, True])
def test_without_numbers_it_says_what_they_would_look_like(kind, time_last):
    a, b, z0 = instance()
    a, b = a if kind == "varying" else a[:, 0].contiguous(), b.mT if time_last else b
    inputs = [x.requires_grad_() for x in (a.mT if time_last and a.ndim == 3 else a, b, z0)]
    z = linear_scan(*inputs, time_last=time_last)
    expected = z, *torch.autograd.grad(z, inputs, torch.ones_like(z))
    with FakeTensorMode() as mode:
        inputs = [mode.from_tensor(x) for x in inputs]
        z = linear_scan(*inputs, time_last=time_last)
        found = z, *torch.autograd.grad(z, inputs, torch.ones_like(z))
    for mine, real in zip(found, expected, strict=True):
        assert (mine.shape, mine.stride(), mine.dtype) == (real.shape, real.stride(), real.dtype)


@pytest.mark.long
def test_it_compiles_as_one_graph(tmp_path):
    code = """
import torch
from lemmata.fast.scan import linear_scan

def network(a, b, z0):
    return linear_scan(a.sigmoid(), 2 * b, z0, reverse=True, time_last=True).tanh()

inputs = [torch.randn(s, requires_grad=True) for s in ((2, 3, 9), (2, 3, 9), (2, 3))]
compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
mine, plain = compiled(*inputs), network(*inputs)
torch.testing.assert_close(mine, plain)
torch.testing.assert_close(torch.autograd.grad(mine.sum(), inputs), torch.autograd.grad(plain.sum(), inputs))
tests = ("test_schema", "test_autograd_registration", "test_faketensor")
turned = [x.mT if x.ndim == 3 else x for x in inputs]
torch.library.opcheck(torch.ops.lemmata.linear_scan.default, (*turned, False), test_utils=tests)
"""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LEMMATA_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- Memory ---


class Allocated(TorchDispatchMode):
    """The most bytes held at once by tensors that operations made; views of what was there before are not counted."""

    def __init__(self, *there):
        super().__init__()
        self.there = {x.untyped_storage()._cdata for x in there}
        self.alive, self.peak = {}, 0

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        result = operation(*arguments, **(keywords or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.alive = {key: held for key, held in self.alive.items() if not held[0].expired()}
        self.peak = max(self.peak, sum(size for key, (_, size) in self.alive.items() if key not in self.there))
        return result


@pytest.mark.parametrize("time_last", [False, True])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_forward_and_backward_hold_at_most_twice_inputs_and_outputs_and_a_few_pieces(
    monkeypatch, time_last, compiled, dtype
):
    monkeypatch.setattr(scan_paths, "PIECE", 512)  # against 8,192 numbers
    if not compiled:
        monkeypatch.setattr(scan_paths, "why_not_compiled", lambda dtype: "switched off")
    shape = (2, 64, 64)
    a, b, grad = (torch.rand(shape, dtype=dtype) for _ in range(3))
    order = (lambda x: x.mT) if time_last else (lambda x: x)
    with Allocated(a, b, grad) as allocated:  # not through autograd, which the mode would see only from outside
        z = scan_paths.forward(order(a), order(b), None, False)
        found = scan_paths.backward(order(a), z, None, order(grad), False)
    there = a.nbytes + b.nbytes + grad.nbytes
    pieces = 8 * 4 * scan_paths.PIECE  # eight of them, in single precision
    assert there < allocated.peak + there <= 2 * (a.nbytes + b.nbytes + z.nbytes) + pieces
    assert len(found) == 3


def test_the_path_is_told(monkeypatch):
    b = torch.ones(1, 2, 3)
    monkeypatch.setattr(scan_paths, "why_not_compiled", lambda dtype: "no C compiler found" if dtype == REAL else "")
    assert scan_path(b) == scan_path(b.half()) == "compiled"
    assert scan_path(b.double()) == "chunked: no C compiler found"
    assert scan_path(b.to("meta")) == "chunked: no kernels for meta"
