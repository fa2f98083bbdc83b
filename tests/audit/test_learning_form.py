"""The network as it learns: batch statistics stay, draws go, precision is enough, and nothing of the model changes."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit.learning_form import FRESH, SMALLEST, examples_for, learning_form, vectors_for
from lemmata.audit.sample import Sample, as_sample
from lemmata.audit.subject import Subject, Training
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.gradient_differences import DifferencedHessian
from lemmata.train.as_found import kept_as_found


class HiddenDropout(nn.Module):
    """Draws, and no part of it says so."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(functional.dropout(x, 0.5, self.training))


class OnceOnly(torch.autograd.Function):
    """A tanh whose derivative has no derivative, as in many kernels."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient * (1 - ctx.saved_tensors[0] ** 2)


class Kernel(nn.Module):
    def forward(self, x):
        return OnceOnly.apply(x)


def subject_of(model: nn.Module, number: int = 64, **training) -> Subject:
    torch.manual_seed(0)
    return Subject(model, as_sample((torch.randn(number, 4), torch.arange(number) % 2)), training=Training(**training))


def normalised() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def test_batch_statistics_stay_and_draws_go():
    model = normalised().eval()  # found finished
    subject = subject_of(model)
    with kept_as_found(model), learning_form(subject, 64) as form:
        assert model[1].training
        assert not model[3].training
        assert form.words == "as it learns, without dropout"
        assert form.mixes
        outputs = form.network(subject.train.x)
        by_hand = model[4](functional.relu(functional.batch_norm(model[0](subject.train.x), None, None, model[1].weight,
                                                                 model[1].bias, True)))  # fmt: skip
        assert torch.allclose(outputs, by_hand)
    assert not any(part.training for part in model.modules())


def test_parts_that_were_found_frozen_stay_frozen():
    model = normalised().train()
    model[1].eval()
    subject = subject_of(model)
    with learning_form(subject, 64):
        assert not model[1].training
        assert model[0].training


def test_draws_that_no_part_admits_lead_to_evaluation_mode():
    model = HiddenDropout()
    with learning_form(subject_of(model), 64) as form:
        assert form.words == "in evaluation mode"
        assert not any(part.training for part in form.network.modules())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_measured_in_a_single_precision_copy(dtype: torch.dtype):
    model = normalised().to(dtype)
    subject = subject_of(model)
    with learning_form(subject, 64) as form:
        hessian = form.hessian()
        assert hessian.dtype == torch.float32
        assert hessian(hessian.start()).isfinite().all()
        assert form.original("model.0.weight") is model[0].weight
    assert model[0].weight.dtype == dtype


def test_parts_of_half_precision_are_enough_for_a_copy():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2, dtype=torch.bfloat16))
    model[1].register_forward_pre_hook(lambda layer, x: (x[0].to(layer.weight.dtype),))
    with learning_form(subject_of(model), 64) as form:
        assert form.hessian().dtype == torch.float32
    assert model[1].weight.dtype == torch.bfloat16


def test_one_derivative_is_enough():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    kernel = nn.Sequential(plain[0], Kernel(), plain[2])
    with learning_form(subject_of(kernel), 64) as form:
        found = form.hessian()
        assert isinstance(found, DifferencedHessian)
    exact = HessianOperator(plain, functional.cross_entropy, (form.sample.x, form.sample.targets)).dense()
    assert (found.dense() - exact).norm() < 5e-3 * exact.norm()  # differences keep three digits


def test_attention_without_a_second_derivative_is_written_out():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            x = self.layer(x)[:, None]
            return functional.scaled_dot_product_attention(x, x, x)[:, 0]

    with learning_form(subject_of(Attends()), 64) as form:
        assert form.twice
        assert not form.mixes
        hessian = form.hessian()
        assert hessian(hessian.start()).isfinite().all()


def test_examples_are_kept_for_testing_unless_all_are_measured():
    subject = subject_of(nn.Linear(4, 2), 1000)
    with learning_form(subject, 100) as form:
        assert form.fresh is not None
        assert (len(form.sample), len(form.fresh)) == (100, FRESH)
        both = torch.cat([form.sample.x, form.fresh.x])
        assert len(both.unique(dim=0)) == 100 + FRESH
    with learning_form(subject, 1000) as form:
        assert form.fresh is None
    subject.train = Sample(subject.train.inputs, subject.train.targets, whole=False)  # the first of more
    with learning_form(subject, 1000) as form:
        assert form.fresh is not None
        assert len(form.sample) + len(form.fresh) == 1000


def test_fewer_examples_where_products_are_slow():
    subject = subject_of(nn.Linear(4, 2), 1000)
    with learning_form(subject, 1000) as form:
        assert form.within(1e3, 1) is form
        short = form.within(0.0, 1)
    assert len(short.sample) == short.size == SMALLEST
    assert short.fresh is not None
    subject.seconds = 1e-3
    assert examples_for(subject, 10.0, 100.0) == 100
    assert examples_for(subject, 0.0, 100.0) == SMALLEST
    assert examples_for(subject, 1e9, 100.0) == 1000


def test_large_networks_keep_fewer_vectors():
    assert vectors_for(1000, 40) == 40
    assert vectors_for(10**8, 40) == 5
    assert vectors_for(10**10, 40) == 2
