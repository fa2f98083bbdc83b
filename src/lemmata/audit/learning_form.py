r"""The network as gradients see it while it learns, but without random draws, and the examples it is measured on."""

import contextlib
import copy
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata.audit.operation_count import affordable
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.gradient_differences import DifferencedHessian
from lemmata.measure.random_parts import draws

__all__ = []  # for probes of curvature and of gradients

SMALLEST = 16  # examples below which a loss says little
LARGEST = 2048  # examples beyond which its curvature hardly changes
BYTES = 2**31  # of vectors that are kept
FRESH = 256  # examples that what was found is tested on, where there are as many
CHUNK = 256  # examples that go through the network at once, where no batch size was given
SAME = 1e-3  # relative difference of two passes that rounding alone can cause, also in half precision sums on a GPU


@dataclass(frozen=True)
class LearningForm:
    """A network that learns, in at least single precision, on batches of one sample.

    `words` say in which mode it is, `mixes` whether its outputs depend on which examples share a batch, `twice` whether
    it can be differentiated twice; `fresh` are other examples, for testing what was found on the sample.
    """

    network: nn.Module
    subject: Subject
    sample: Sample
    fresh: Sample | None
    words: str
    size: int
    mixes: bool
    twice: bool = True

    @property
    def batches(self) -> list[tuple[tuple[Tensor, ...], Tensor]]:
        """The sample in batches as they are trained on."""
        return self.batches_of(self.sample, self.size)

    def batches_of(self, sample: Sample, size: int) -> list[tuple[tuple[Tensor, ...], Tensor]]:
        """Batches of one size; the examples beyond the last whole one are left out, unless there is no whole one."""
        size = min(size, len(sample))
        return self.subject.pairs(sample, size)

    def hessian(self, names: Iterable[str] | None = None, sample: Sample | None = None) -> HessianOperator:
        """The Hessian of the loss on the sample, or on another one, in all parameters or in some."""
        batches = self.batches if sample is None else self.batches_of(sample, self.size)
        matrix = HessianOperator if self.twice else DifferencedHessian
        return matrix(self.network, self.subject.loss, batches, names)

    def within(self, seconds: float, products: int) -> "LearningForm":
        """The form with as few examples as so many products of its Hessian in these seconds want, by timing one."""
        hessian = self.hessian()
        vector = hessian.start()
        hessian(vector)  # the first one may prepare what others share
        began = time.perf_counter()
        hessian(vector).sum().item()  # a number waits for the device
        share = seconds / max(products * (time.perf_counter() - began), 1e-9)
        kept = max(int(share * len(self.sample)), min(SMALLEST, len(self.sample)))
        if kept >= len(self.sample):
            return self
        rest = self.sample[kept:] if self.fresh is None else self.fresh
        fresh = rest if len(rest) >= SMALLEST else None
        return replace(self, sample=self.sample[:kept], fresh=fresh, size=min(self.size, kept))

    def original(self, name: str) -> nn.Parameter:
        """The parameter of the model itself that has this name in the network."""
        return self.subject.network.get_parameter(name)


@contextlib.contextmanager
def learning_form(subject: Subject, examples: int) -> Iterator[LearningForm]:
    r"""The network with batch statistics where it learns with them, and without dropout.

    In evaluation mode batch normalisation divides by numbers that do not depend on the weights: another function, with
    a Hessian whose largest eigenvalue can be a hundred times that of the one that is trained. Draws, in contrast, must
    be left out, as two passes would be of two functions. Where a network draws and no part of it says so, all of it is
    measured in evaluation mode. Kernels that have no second derivative are kept out.
    """
    network, size = subject.network, subject.training.batch_size or affordable(subject, CHUNK, 2 * SMALLEST)
    narrow = any(value.is_floating_point() and value.itemsize < 4 for value in network.parameters())
    if narrow:
        network = copy.deepcopy(network).float()
    wanted = [flag for _, flag in subject.modes]
    if not any(wanted):  # found finished: it learned in training mode
        wanted = [True] * len(wanted)
    network.training = True
    for part, mode in zip(network.model.modules(), wanted, strict=True):
        part.training = mode
        part.training = mode and not draws(part)
    sample, fresh = _choose_examples(subject, examples)
    if narrow:
        sample = sample.to(subject.device, torch.float32)
        fresh = fresh and fresh.to(subject.device, torch.float32)
    with _differentiable_twice(network):
        words = "as it learns, without dropout"
        if not _passes_repeat(network, sample[: max(2, min(len(sample), SMALLEST))]):
            network.eval()
            words = "in evaluation mode"
        size = min(size, len(sample))
        form = LearningForm(network, subject, sample, fresh, words, size, _mixes_examples(network, sample[:SMALLEST]))
        yield form if _has_two_derivatives(form) else replace(form, twice=False)


def vectors_for(size: int, most: int) -> int:
    """How many vectors of so many numbers an iteration may keep: all that it wants, or what memory has room for."""
    return max(min(most, BYTES // (4 * size)), 2)


def examples_for(subject: Subject, seconds: float, passes: float, most: int = LARGEST) -> int:
    """How many examples can be gone through in these seconds, if each takes the time of so many passes forwards."""
    affordable = int(seconds / max(passes * subject.seconds, 1e-12))
    return max(min(affordable, most, len(subject.train)), min(SMALLEST, len(subject.train)))


def _choose_examples(subject: Subject, examples: int) -> tuple[Sample, Sample | None]:
    """Examples for measuring, and as many others for testing what was found, unless these are all there are."""
    train = subject.train
    if examples >= len(train):
        if train.whole or len(train) < 2 * SMALLEST:
            return train, None
        examples = len(train) // 2
    # A test takes a product, finding takes many: where finding can afford few examples, more are tested.
    both = subject.some(min(examples + max(examples, min(4 * examples, FRESH)), len(train)))
    return both[:examples], both[examples:] if len(both) - examples >= SMALLEST else None


def _passes_repeat(network: nn.Module, sample: Sample) -> bool:
    """Whether two passes of the same examples give the same."""
    try:
        return _is_same_output(_outputs_counted(network, sample), _outputs_counted(network, sample))
    except (RuntimeError, ValueError):  # a single example has no batch statistics
        return False


def _mixes_examples(network: nn.Module, sample: Sample) -> bool:
    """Whether an example is answered differently in a smaller batch."""
    half = (len(sample) + 1) // 2
    return half > 1 and not _is_same_output(
        _outputs_counted(network, sample)[:half], _outputs_counted(network, sample[:half])
    )


def _outputs_counted(network: nn.Module, sample: Sample) -> Tensor:
    """The outputs, with batch statistics counted in copies."""
    with torch.no_grad():
        buffers = {name: value.clone() for name, value in network.named_buffers()}
        return functional_call(network, buffers, sample.tensors)


def _is_same_output(first: Tensor, second: Tensor) -> bool:
    return bool((first - second).abs().max() <= SAME * first.abs().max())


def _has_two_derivatives(form: LearningForm) -> bool:
    hessian = form.hessian(sample=form.sample[:SMALLEST])
    try:
        hessian(hessian.start())
    except (RuntimeError, NotImplementedError):  # as custom kernels and compiled networks say it
        return False
    return True


@contextlib.contextmanager
def _differentiable_twice(network: nn.Module) -> Iterator[None]:
    """Fused attention and the recurrent kernels of a GPU have one derivative only; what is written out has two."""
    recurrent = any(isinstance(part, nn.RNNBase) for part in network.modules())
    with contextlib.ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if recurrent:
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield
