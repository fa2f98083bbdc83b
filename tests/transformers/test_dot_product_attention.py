"""Attention: torch's own answers, masks, queries that may look nowhere, gradients, dtypes, compilation, bad input."""

import itertools
import types

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata.transformers import attention, attention_weights, dot_product_attention

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision


def drawn(queries=5, keys=7, batch=(2, 3), dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    shapes = ((*batch, queries, 4), (*batch, keys, 4), (*batch, keys, 6))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def masks(queries=5, keys=7):
    """Of every shape that may be broadcast; each query may look somewhere."""
    generator = torch.Generator().manual_seed(2)
    shapes = [(queries, keys), (1, keys), (2, 1, queries, keys), (2, 1, 1, keys), (2, 3, queries, keys), (queries, 1)]
    found = [torch.rand(shape, generator=generator) < 0.6 for shape in shapes]
    for mask in found:
        mask[..., :1] = True
    return found


@pytest.mark.parametrize("scale", [None, 0.3, 0.0, -1.0])
@pytest.mark.parametrize("which", range(-1, 6))
def test_outputs_are_those_of_torch_and_of_the_weights(which, scale):
    query, key, value = drawn()
    mask = None if which < 0 else masks()[which]
    theirs = functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    assert torch.allclose(attention(query, key, value, mask, scale=scale), theirs, rtol=0, atol=CLOSE)
    weights = attention_weights(query, key, mask, scale=scale)
    assert torch.allclose(weights @ value, theirs, rtol=0, atol=CLOSE)
    assert torch.allclose(weights.sum(-1), torch.ones((), dtype=torch.float64), rtol=0, atol=CLOSE)
    if mask is not None:
        assert not weights.masked_select(~mask).any()


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (6, 6), (1, 6), (3, 7)])
@pytest.mark.parametrize("masked", [False, True])
def test_the_last_query_of_causal_attention_stands_at_the_last_key(queries, keys, masked):
    query, key, value = drawn(queries, keys)
    mask = masks(queries, keys)[3] if masked else None
    behind = torch.tensor([[t <= s + keys - queries for t in range(keys)] for s in range(queries)])
    allowed = behind if mask is None else behind & mask
    expected = functional.scaled_dot_product_attention(query, key, value, allowed)
    assert torch.allclose(attention(query, key, value, mask, causal=True), expected, rtol=0, atol=CLOSE)
    assert torch.allclose(attention_weights(query, key, mask, causal=True) @ value, expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_a_query_that_may_look_nowhere_finds_zero_and_has_a_gradient(dtype, causal):
    query, key, value = (each.requires_grad_() for each in drawn(5, 5, dtype=dtype))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, 0, 3] = False
    mask[1, 0, :, 0] = False  # the first query looks at no other key when causal
    blind = torch.tensor([[0, 3]] + [[1, 0]] * causal)
    found, weights = attention(query, key, value, mask, causal), attention_weights(query, key, mask, causal)
    assert found.isfinite().all()
    for row, place in blind.tolist():
        assert not found[row, :, place].any()
        assert not weights[row, :, place].any()
    for each in (found, weights):
        gradients = torch.autograd.grad(each.square().sum(), (query, key), retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in gradients)
        assert not gradients[0][0, :, 3].any()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("which", [-1, 4])
def test_gradients_are_those_of_the_values(causal, which):
    query, key, value = (each.requires_grad_() for each in drawn(3, 4))
    mask = None if which < 0 else masks(3, 4)[which]
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, mask, causal), (query, key, value))
    assert torch.autograd.gradcheck(lambda q, k: attention_weights(q, k, mask, causal), (query, key))


def test_scores_too_large_for_an_exponential_look_up_one_key():
    query, key, value = drawn()
    best = (query @ key.mT).argmax(-1, keepdim=True)
    expected = value.gather(-2, best.expand(*best.shape[:-1], 6))
    assert torch.allclose(attention(query * 1e6, key, value), expected, rtol=0, atol=CLOSE)
    assert attention_weights(query * 1e6, key).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_short_numbers_stay_short_and_near(dtype):
    query, key, value = drawn(dtype=dtype)
    mask = masks()[4]
    exact = attention(query.double(), key.double(), value.double(), mask)
    found = attention(query, key, value, mask)
    assert found.dtype == attention_weights(query, key, mask).dtype == dtype
    # Scores, weights and sums are rounded, each by eps of numbers of a few units at most.
    assert (found - exact).abs().max() < 32 * torch.finfo(dtype).eps


def test_no_batch_one_row_and_other_leading_axes():
    query, key, value = drawn()
    for index in itertools.product(range(2), range(3)):
        alone = attention(query[index], key[index], value[index])
        assert torch.allclose(alone, attention(query, key, value)[index], rtol=0, atol=CLOSE)
    assert attention(query[:1, :1], key[:1, :1], value[:1, :1]).shape == (1, 1, 5, 6)
    assert attention(query[:0], key[:0], value[:0]).shape == (0, 3, 5, 6)
    assert attention(query[..., :0, :], key, value).shape == (2, 3, 0, 6)


def test_dropout_leaves_out_weights_and_keeps_their_mean():
    query, key, value = drawn(4, 6, batch=(4000,))
    query, key, value = query[:1].expand_as(query), key[:1].expand_as(key), torch.eye(6).double().expand(4000, 6, 6)
    weights, dropped = attention_weights(query, key)[0], attention(query, key, value, dropout=0.25)
    # With the identity as values the outputs are the weights that are left, each 4/3 as large.
    kept = dropped != 0
    assert torch.allclose(dropped, kept * weights / 0.75, rtol=0, atol=CLOSE)
    # 24 shares of 4,000 coins: each is off by 6.5 deviations of 0.0068 once in a billion times.
    assert (kept.double().mean(0) - 0.75).abs().max() < 0.045
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got 1"):
        attention(query, key, value, dropout=1.0)


@pytest.mark.parametrize("causal", [False, True])
def test_one_graph_and_the_meta_device(causal, unchecked):
    query, key, value = drawn(dtype=torch.float32)
    mask = masks()[3]
    torch.compiler.reset()
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    for told in (None, mask):
        assert torch.allclose(compiled(query, key, value, told, causal), attention(query, key, value, told, causal))
    meta = [each.to("meta") for each in (query, key, value, mask)]
    assert attention(*meta, causal).shape == (2, 3, 5, 6)
    assert attention_weights(meta[0], meta[1], meta[3], causal).is_meta


@pytest.mark.parametrize(
    ("device", "dtype", "capability", "first"),
    [
        ("cuda", torch.bfloat16, (9, 0), True),
        ("cuda", torch.float16, (10, 0), True),
        ("cuda", torch.bfloat16, (8, 9), False),
        ("cuda", torch.float32, (9, 0), False),
    ],
)
def test_cudnn_is_preferred_on_new_gpus_alone(monkeypatch, unchecked, device, dtype, capability, first):
    monkeypatch.setattr(dot_product_attention, "_device_capability", lambda device: capability)
    query = types.SimpleNamespace(device=torch.device(device), dtype=dtype)
    assert dot_product_attention._prefers_cudnn(query) == first


@pytest.mark.parametrize("flash", [False, True])
def test_kernels_change_their_order_while_attention_is_computed_alone(monkeypatch, unchecked, flash):
    """And what somebody has switched off stays off."""
    before = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH] + [SDPBackend.FLASH_ATTENTION] * flash
    seen = []

    def look(*told, **more):
        seen.append((torch._C._get_sdp_priority_order(), torch._C._get_flash_sdp_enabled()))
        raise RuntimeError("out of memory")

    monkeypatch.setattr(functional, "scaled_dot_product_attention", look)
    with sdpa_kernel(before, set_priority=True):
        order = torch._C._get_sdp_priority_order()
        with pytest.raises(RuntimeError, match="out of memory"):
            dot_product_attention._cudnn_first(*drawn())
        assert torch._C._get_sdp_priority_order() == order
    (((first, *others), enabled),) = seen
    assert (first, enabled) == (int(SDPBackend.CUDNN_ATTENTION), flash)
    assert others == [kernel for kernel in order if kernel != first]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_gpu_finds_what_the_cpu_finds(dtype, causal):
    told = [each.repeat(1, 1, 1, 8) for each in drawn(dtype=dtype)]
    mask = masks()[3].clone()
    mask[0] = False
    for given in (None, mask):
        exact = attention(*[each.double() for each in told], given, causal)
        found = attention(*[each.cuda() for each in told], None if given is None else given.cuda(), causal)
        assert (found.cpu() - exact).abs().max() < 64 * torch.finfo(dtype).eps


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"query": torch.zeros(4)}, ValueError, r"query must be \(..., positions, width\), got shape \(4,\)"),
        ({"value": torch.zeros(7)}, ValueError, r"value must be \(..., positions, width\), got shape \(7,\)"),
        ({"query": torch.zeros(5, 3)}, ValueError, "query and key must have one width, got 3 and 4"),
        ({"value": torch.zeros(6, 6)}, ValueError, "every key needs a value, got 7 keys and 6 values"),
        ({"key": torch.zeros(0, 4), "value": torch.zeros(0, 6)}, ValueError, "at least one key to look at, got none"),
        ({"mask": torch.ones(5, 7)}, TypeError, r"mask must be boolean, .* got torch.float32: use mask.bool\(\)"),
        ({"mask": torch.ones(7) > 0}, ValueError, r"mask must be \(..., queries, keys\), got shape \(7,\)"),
        ({"mask": torch.ones(7, 5) > 0}, ValueError, r"mask must be \(..., 5, 7\) or have axes of 1, got \(7, 5\)"),
        (
            {"mask": torch.ones(2, 5, 7) > 0, "query": torch.zeros(3, 5, 4)},
            ValueError,
            r"mask must .* got \(3,\), \(\), \(2,\)",
        ),
        (
            {"value": torch.zeros(3, 7, 6), "key": torch.zeros(2, 7, 4)},
            ValueError,
            "query, key and value must have the same",
        ),
        ({"scale": float("nan")}, ValueError, "scale must be finite, got nan"),
        ({"scale": "0.5"}, TypeError, "scale must be a number, got str"),
        ({"query": torch.zeros(8, 4), "causal": True}, ValueError, "a key for each query, got 8 queries and 7 keys"),
    ],
)
def test_bad_input_is_named(changed, error, message, unchecked):
    told = {"query": torch.zeros(5, 4), "key": torch.zeros(7, 4), "value": torch.zeros(7, 6)} | changed
    with pytest.raises(error, match=message):
        attention(**told)
    if changed.keys() & {"query", "mask", "scale"}:
        with pytest.raises(error, match=message):
            attention_weights(**{name: each for name, each in told.items() if name != "value"})
