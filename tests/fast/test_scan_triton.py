"""The linear scan on a GPU: against the reference in odd sizes and all number types, to the bit the same twice."""

import itertools

import pytest
import torch

from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_reference import scan_by_steps
from lemmata.fast.scan_triton_plan import Plan, Task, plan_of

CUDA = torch.cuda.is_available()
on_gpu = pytest.mark.skipif(not CUDA, reason="needs an NVIDIA GPU")

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
TILES = {"strips": Plan(32, 2, 4, 2), "relay": Plan(32, 2, 4, 2, group=2)}


def instance(shape, dtype, constant=False, started=True, seed=0):
    """Gates up to one in size, terms, a first state and a gradient."""
    generator = torch.Generator("cuda").manual_seed(seed)
    batch, _, channel = shape

    def normal(*size):
        return torch.randn(*size, dtype=WIDE[dtype], device="cuda", generator=generator)

    a = normal(batch, channel) if constant else normal(*shape)
    a = (a / (a.abs() + 0.05)).to(dtype)
    return a, normal(*shape).to(dtype), normal(batch, channel).to(dtype) if started else None, normal(*shape).to(dtype)


def reference(a, b, z0, grad, reverse):
    """States and gradients in double precision, one step after another."""
    inputs = [x.to(WIDE[x.dtype]).detach().requires_grad_() for x in (a, b, z0) if x is not None]
    z = scan_by_steps(inputs[0], inputs[1], inputs[2] if z0 is not None else None, reverse)
    return [z.detach(), *torch.autograd.grad(z, inputs, grad.to(z.dtype))]


def error(found, expected):
    """In units of the last place of the largest number expected."""
    eps = torch.finfo(found.dtype).eps
    return float((found.to(expected.dtype) - expected).abs().max() / expected.abs().max().clamp_min(1e-30) / eps)


@pytest.fixture
def kernels():
    """The kernels' own entry, where Triton is."""
    pytest.importorskip("triton")
    from lemmata.fast import scan_triton

    return scan_triton


@on_gpu
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize(("constant", "reverse"), list(itertools.product([False, True], repeat=2)))
def test_both_kernels_agree_with_the_reference_forward_and_backward(
    monkeypatch, kernels, tile, dtype, constant, reverse
):
    monkeypatch.setattr(kernels, "plan_of", lambda task: TILES[tile])
    # Each pair of choices is met, not each choice with all others: every one is a kernel to compile.
    started, time_last = constant != reverse, (constant + reverse + len(tile)) % 2 == 0
    a, b, z0, grad = instance((2, 333, 7), dtype, constant, started)
    expected = reference(a, b, z0, grad, reverse)
    # The backward pass is told the states as they come, rounded; so is its reference.
    full, z = not constant, expected[0].to(dtype)

    def laid(x):
        return x.mT.contiguous() if time_last else x

    states = kernels.forward(laid(a) if full else a, laid(b), z0, reverse, time_last)
    again = kernels.forward(laid(a) if full else a, laid(b), z0, reverse, time_last)
    da, db, dz0 = kernels.backward(laid(a) if full else a, laid(z), z0, laid(grad), reverse, time_last)
    assert torch.equal(states, again)
    found = [laid(states), laid(da) if full else da, laid(db), *([dz0] if started else [])]
    for name, value, wanted in zip(("z", "da", "db", "dz0")[: len(found)], found, expected, strict=True):
        assert value.dtype == dtype
        # Products with rounded states are rounded themselves: two roundings in half precision, sums in others.
        assert error(value, wanted) < 8, name


@on_gpu
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 5), (1, 5000, 1), (2, 17, 130), (1, 70000, 3), (300, 64, 1)])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("time_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_the_tiles_that_are_chosen_for_a_shape_agree_with_the_reference(shape, constant, time_last, dtype):
    a, b, z0, grad = instance(shape, dtype, constant)
    expected = reference(a, b, z0, grad, False)
    inputs = [a if constant or not time_last else a.mT.contiguous(), b.mT.contiguous() if time_last else b, z0]
    inputs = [x.requires_grad_() for x in inputs]
    z = linear_scan(*inputs, time_last=time_last)
    found = torch.autograd.grad(z, inputs, grad.mT if time_last else grad)
    found = [x.mT if time_last and x.ndim == 3 else x for x in (z.detach(), *found)]
    worst = [error(value, wanted) for value, wanted in zip(found, expected, strict=True)]
    assert max(worst) < 64, worst


@on_gpu
@pytest.mark.parametrize("gate", [0.0, 1.0, -1.0, 1e-30, 1 - 1e-6])
@pytest.mark.parametrize("constant", [False, True])
def test_extreme_gates(gate, constant):
    a, b, z0, grad = instance((1, 30000, 4), torch.float32, constant)
    a = torch.full_like(a, gate)
    expected = reference(a, b, z0, grad, False)
    inputs = [x.requires_grad_() for x in (a, b, z0)]
    z = linear_scan(*inputs)
    found = [z.detach(), *torch.autograd.grad(z, inputs, grad)]
    assert all(torch.isfinite(x).all() for x in found)
    assert max(error(value, wanted) for value, wanted in zip(found, expected, strict=True)) < 64


@on_gpu
@pytest.mark.parametrize("radius", [0.999, 0.99999])
@pytest.mark.parametrize("time_last", [False, True])
def test_a_constant_gate_near_the_circle_keeps_its_place(radius, time_last):
    a = torch.polar(torch.full((1, 8), radius, device="cuda"), torch.linspace(0, 3, 8, device="cuda")[None])
    _, b, z0, grad = instance((1, 60000, 8), torch.complex64)
    expected = reference(a, b, z0, grad, False)[0]
    z = linear_scan(a, b.mT.contiguous() if time_last else b, z0, time_last=time_last)
    assert error(z.mT if time_last else z, expected) < 100


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_gradcheck(dtype, reverse):
    a, b, z0, _ = instance((2, 19, 3), dtype)
    inputs = [x.requires_grad_() for x in (0.8 * a, b, z0)]
    assert torch.autograd.gradcheck(lambda *x: linear_scan(*x, reverse=reverse), inputs)
    constant = [x.detach().requires_grad_() for x in (a[:, 0], b.mT.contiguous(), z0)]
    assert torch.autograd.gradcheck(lambda *x: linear_scan(*x, reverse=reverse, time_last=True), constant)
    assert torch.autograd.gradgradcheck(lambda *x: linear_scan(*x, reverse=reverse), inputs)


@on_gpu
@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 5, 3), (2, 5, 0)])
@pytest.mark.parametrize("constant", [False, True])
def test_nothing_at_all_is_scanned_too(kernels, shape, constant):
    b = torch.ones(*shape, device="cuda")
    a = torch.ones(shape[0], shape[2], device="cuda") if constant else b.clone()
    assert kernels.forward(a, b, None, False, False).shape == shape
    da, db, dz0 = kernels.backward(a, b, None, b, False, False)
    assert (da.shape, db.shape, dz0.shape) == (a.shape, b.shape, (shape[0], shape[2]))
    assert not da.any()


@on_gpu
def test_gates_shared_by_a_batch_and_lazy_conjugates_are_read_as_they_are(kernels):
    _, b, z0, _ = instance((3, 50, 6), torch.complex64)
    a = (0.9 * b[0, :1]).expand(3, 6)  # stride 0 over the batch
    found = kernels.forward(a, b.conj(), z0.conj(), False, False)
    assert torch.equal(found, kernels.forward(a.clone(), b.conj().clone(), z0.conj().clone(), False, False))


@on_gpu
@pytest.mark.parametrize("time_last", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_the_same_input_gives_the_same_bits_even_when_programs_hurry_each_other(time_last, constant):
    a, b, z0, grad = instance((1, 200_000, 12), torch.float32, constant)
    b, grad = (x.mT.contiguous() if time_last else x for x in (b, grad))
    a = a if constant or not time_last else a.mT.contiguous()
    inputs = [x.requires_grad_() for x in (a, b, z0)]

    def everything():
        z = linear_scan(*inputs, time_last=time_last)
        return [z.detach(), *torch.autograd.grad(z, inputs, grad)]

    first = everything()
    for _ in range(10):
        assert all(torch.equal(x, y) for x, y in zip(first, everything(), strict=True))


@on_gpu
def test_forward_and_backward_take_no_more_than_what_goes_in_and_out_and_a_little():
    b = torch.randn(4, 8192, 256, device="cuda")
    inputs = [torch.rand_like(b).requires_grad_(), b.requires_grad_()]
    grad = torch.randn_like(b)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    gradients = torch.autograd.grad(linear_scan(*inputs), inputs, grad)
    size = b.numel() * 4
    assert torch.cuda.max_memory_allocated() - before < 3.2 * size  # z, da, db
    del gradients


@on_gpu
def test_offsets_beyond_32_bits_are_counted_or_refused(kernels):
    if torch.cuda.get_device_properties(0).total_memory < 40e9:
        pytest.skip("needs 40 GB")
    b = torch.ones(3, 64, 2**24, device="cuda", dtype=torch.bfloat16)
    z = kernels.forward(torch.full((3, 2**24), 0.5, device="cuda", dtype=torch.bfloat16), b, None, False, False)
    assert z[2, :3, -1].tolist() == [1.0, 1.5, 1.75]
    huge = torch.ones((), device="cuda").expand(1, 3, 2**31)
    with pytest.raises(NotImplementedError, match="no kernel counts 3 steps of"):
        kernels._launch_plan(Plan(1, 4, 2), huge, huge, None, None, huge, None, False, False)


# --- The choice of tiles needs no GPU ---


TASKS = [
    Task(batch, columns, length, dtype, constant, backward, time_last)
    for batch, columns, length in [(1, 1, 1), (8, 1536, 16384), (1, 32, 1 << 20), (1, 512, 131072), (64, 3, 5)]
    for dtype in WIDE
    for constant, backward, time_last in itertools.product([False, True], repeat=3)
]


def test_tiles_are_powers_of_two_and_fit_their_task():
    for task in TASKS:
        plan = plan_of(task)
        for size in (plan.runs, plan.steps, plan.columns, plan.group or 1, plan.warps):
            assert size & (size - 1) == 0
            assert size >= 1
        assert plan.columns < 2 * task.columns
        assert plan.runs * plan.steps < 2 * task.length or plan.runs * plan.steps == 1
        # More would not fit the registers: 4 bytes each, gates and terms, beside what else is needed.
        assert plan.runs * plan.steps * plan.columns <= 16384


def test_one_tile_needs_no_relay_and_few_long_sequences_do():
    assert plan_of(Task(64, 3, 5, torch.float32, False, False, False)).group == 0
    assert plan_of(Task(1, 32, 1 << 20, torch.float32, False, False, True)).group > 1
    assert plan_of(Task(1, 12288, 16384, torch.float32, False, False, True)).group == 0
