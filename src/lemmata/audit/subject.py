r"""What is audited: a model, its data, its loss and how it is trained, in one form that every probe can ask."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.audit.clock import Clock
from lemmata.audit.labels_read import read_as_classes, why_unusable
from lemmata.audit.sample import Sample
from lemmata.data.columns import taken_by_name

__all__ = []  # for probes

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": functional.cross_entropy,
    "nll": functional.nll_loss,
    "bce": functional.binary_cross_entropy_with_logits,
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "huber": functional.huber_loss,
}
OUTPUTS = ("logits", "out", "output", "outputs", "prediction", "predictions", "pred", "preds", "scores")  # by name
CHUNK = 256  # examples that go through the network at once, fewer where they would take long
ROOM = 2**29  # bytes of outputs that are had at once: those of a language model can be many


@dataclass(frozen=True)
class Training:
    """How the model is trained, as far as it was said: None is unknown."""

    lr: float | None = None
    optimizer: str | None = None
    momentum: float = 0.0
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    batch_size: int | None = None
    running: torch.optim.Optimizer | None = None  # the optimiser itself, with its state, where it was given


class Network(nn.Module):
    """The model with its outputs as one tensor, classes on the second axis as torch's losses want them.

    Shapes:
        inputs: (batch, ...) each    returns: (batch, classes, ...), (batch, numbers) or (batch,)
    """

    def __init__(self, model: nn.Module, names: Sequence[str], named: bool, forward: Callable[..., Any] | None):
        super().__init__()
        self.model = model
        self.names, self.named, self.adapter = tuple(names), named, forward
        self.class_axis = 1
        self.clock: Clock | None = None  # no pass begins that would end after it
        self.seconds = self.overhead = 0.0  # of one more example, and of any pass

    def forward(self, *inputs: Tensor) -> Tensor:
        output = as_tensor(self.answer(*inputs))
        return output if self.class_axis == 1 else output.movedim(self.class_axis, 1)

    def answer(self, *inputs: Tensor) -> Any:
        """What the model itself returns."""
        if self.clock is not None:
            # Backwards takes about twice as long as forwards.
            times = 3 if torch.is_grad_enabled() else 1
            if inputs[0].is_cuda:  # what was begun there counts when it is done
                torch.cuda.synchronize(inputs[0].device)
            self.clock.need(times * (self.overhead + len(inputs[0]) * self.seconds), "a pass through the network")
        given = dict(zip(self.names, inputs, strict=True))
        if self.adapter is not None:
            return self.adapter(self.model, given)
        return self.model(**given) if self.named else self.model(*inputs)

    def as_answered(self, outputs: Tensor) -> Tensor:
        """Outputs with their axes in the model's own order."""
        return outputs if self.class_axis == 1 else outputs.movedim(1, self.class_axis)


def as_tensor(output: Any) -> Tensor:
    """The tensor of a model's output: itself, its logits, or the first of several."""
    if isinstance(output, Mapping):
        output = _named_output(output)
    elif hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, list | tuple) and output:
        output = output[0]
    if not isinstance(output, Tensor) or not output.is_floating_point():
        told = type(output).__name__ if not isinstance(output, Tensor) else f"a tensor of {output.dtype}"
        cure = "give forward=lambda model, batch: ..., which returns the logits"
        raise TypeError(f"the model must return a tensor of real numbers or have .logits, got {told}: {cure}")
    return output


def _named_output(output: Mapping[Any, Any]) -> Any:
    """The entry that is compared with targets: the one so called, or the only one there is."""
    tensors = {key: value for key, value in output.items() if isinstance(value, Tensor) and value.is_floating_point()}
    called = next((key for key in OUTPUTS if key in tensors), None)
    if called is None and len(tensors) > 1:
        names = ", ".join(map(str, tensors))
        cure = 'give forward=lambda model, batch: model(batch["x"])["..."]'
        raise TypeError(f"the model returns {names}, and none of them is called logits: {cure}")
    return next(iter(tensors.values()), None) if called is None else tensors[called]


class Subject:
    r"""A model that is audited.

    - `network(*inputs)` gives outputs as one tensor: (batch, classes), (batch, classes, ...), (batch, numbers)
    - `loss(outputs, targets)` is the mean over a batch
    - `task` is "classes", "binary" or "numbers", and "" where there are no targets
    - `train` and `test` are samples on the model's device; `test` may be None
    - `was_training` says in which mode the model was found, `modes` in which each of its parts; inside the audit it is
      in evaluation mode
    - `unusable` says in words why no loss of the targets can be had, and is empty where it can: probes that need
      targets are not asked then
    - `labels_were` says what class labels were kept as, where they had to be read: "float32", "a column of int64"
    - `seconds` is the time of one example, forwards; `chunk`, how many may go through the network at once; `room`, of
      how many the outputs may be held
    """

    def __init__(
        self,
        model: nn.Module,
        train: Sample,
        test: Sample | None = None,
        loss: "str | Callable[[Any, Any], Tensor] | None" = None,
        forward: Callable[..., Any] | None = None,
        training: Training | None = None,
        name: str = "",
        budget: float = math.inf,
    ):
        place = next((p for p in [*model.parameters(), *model.buffers()] if p.is_floating_point()), torch.empty(0))
        if place.is_meta:
            raise ValueError("model must hold numbers, got parameters on the meta device: load it on another one")
        broken = [
            name for name, p in model.named_parameters() if p.is_floating_point() and not bool(p.isfinite().all())
        ]
        if broken:
            more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
            raise ValueError(f"weights must be finite, found NaN or infinity in {broken[0]}{more}: load them again")
        self.model, self.name = model, name or type(model).__name__
        self.device, self.dtype = place.device, place.dtype
        self.training = training or Training()
        self.was_training = model.training
        self.modes = [(part, part.training) for part in model.modules()]
        self.given = train, test  # as they came: not rounded to the model's dtype
        self.train, self.test = train.to(self.device, self.dtype), test and test.to(self.device, self.dtype)
        by_name = forward is None and taken_by_name(model, list(train.inputs), "forward")
        self.network = Network(model, list(train.inputs), by_name, forward)
        self.given_loss = loss
        model.eval()
        outputs = self._first_outputs()
        self.room = max(ROOM // (outputs[0].numel() * max(outputs.itemsize, 4)), 1)
        self.seconds, self.chunk = self._measure_time(budget)
        self.labels_were = ""
        self._read_targets(outputs)
        self.task = self._task_of_loss(outputs, loss)
        self.classes = outputs.shape[1] if self.task == "classes" else 2 if self.task == "binary" else 0
        parts = [part.targets for part in (self.train, self.test) if part is not None and part.targets is not None]
        reasons = [why_unusable(self.task, targets, outputs, loss, self._ask_own_loss) for targets in parts]
        self.unusable = next((reason for reason in reasons if reason), "")
        self.labels = self.train.targets  # all of them: to look at them takes no pass
        self._thin_parts(budget)
        self._kept: dict[int, tuple[Sample, Tensor]] = {}

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch, in a form that no shape can spoil: targets are brought to the outputs' shape."""
        loss = self.given_loss
        if callable(loss):
            return self._ask_own_loss(loss, outputs, targets)
        name = loss or {"classes": "cross_entropy", "binary": "bce", "numbers": "mse"}[self.task]
        if self.task == "classes":
            return LOSSES[name](outputs.float() if outputs.dtype.itemsize < 4 else outputs, targets)
        return LOSSES[name](outputs, targets.to(outputs.dtype).reshape(outputs.shape))

    def _ask_own_loss(self, loss: Callable[[Any, Any], Tensor], outputs: Tensor, targets: Tensor) -> Tensor:
        """A loss of one's own, given outputs as the model gives them."""
        with warnings.catch_warnings():
            # Shapes that torch broadcasts are a finding of their own, told once.
            warnings.filterwarnings("ignore", "Using a target size")
            return loss(self.network.as_answered(outputs), targets)

    def _takes_outputs(self, loss: Any, outputs: Tensor) -> bool:
        """Whether a loss of one's own takes these outputs of the first examples."""
        targets = self.train.targets
        assert targets is not None
        try:
            return bool(self._ask_own_loss(loss, outputs, targets[: len(outputs)]).isfinite().all())
        except (RuntimeError, IndexError, TypeError, ValueError):
            return False

    def counted(self, targets: Tensor) -> Tensor:
        """Which labels name a class; the others are places that the loss leaves out, such as padding."""
        if self.task != "classes" or targets.is_floating_point():
            return torch.ones_like(targets, dtype=torch.bool)
        return (targets >= 0) & (targets < self.classes)

    def outputs(self, sample: Sample) -> Tensor:
        """The outputs for a sample in evaluation mode, without gradients; remembered."""
        if id(sample) not in self._kept:
            self.network.eval()
            with torch.no_grad():
                parts = [self.network(*part.tensors) for part in self.batches(sample, self.chunk)]
            self._kept[id(sample)] = sample, torch.cat(parts)
        return self._kept[id(sample)][1]

    def batches(self, sample: Sample, size: int, whole: bool = False) -> Iterator[Sample]:
        """The examples in their order, parts of a size; with `whole`, without a smaller last part."""
        for first in range(0, len(sample), size):
            part = sample[first : first + size]
            if len(part) == size or not whole:
                yield part

    def some(self, number: int, sample: Sample | None = None) -> Sample:
        """That many examples of the training part (or of another), drawn by a fixed seed."""
        sample = self.train if sample is None else sample
        if number >= len(sample):
            return sample
        order = torch.randperm(len(sample), generator=torch.Generator().manual_seed(0))[:number]
        return sample[order.to(sample.x.device)]

    def pairs(self, sample: Sample, size: int) -> "list[tuple[tuple[Tensor, ...], Tensor]]":
        """Batches as estimators of curvature take them: (inputs, targets), all of one size."""
        if sample.targets is None:
            raise ValueError("data must hold targets beside the inputs")
        return [(part.tensors, part.targets) for part in self.batches(sample, size, whole=True)]  # type: ignore[misc]

    @staticmethod
    def plain(name: str) -> str:
        """The name of a parameter or layer as the model's owner knows it."""
        return name.removeprefix("model.") or "the model"

    def _first_outputs(self) -> Tensor:
        first = self.train[:2] if len(self.train) > 1 else self.train
        try:
            with torch.no_grad():
                outputs = self.network(*first.tensors)
        except Exception as error:  # whatever a model of the user's own raises
            if isinstance(error, TypeError) and "give forward=" in str(error):
                raise
            shapes = ", ".join(f"{name} {tuple(x.shape)} {str(x.dtype)[6:]}" for name, x in first.inputs.items())
            told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            bytes_ = any(x.dtype == torch.uint8 for x in first.inputs.values())
            cure = "; bytes must be given as real numbers: x / 255" if bytes_ else self._whole_alone()
            raise ValueError(f"the model cannot take a batch of {shapes}: {told}{cure}") from error
        targets = first.targets
        if targets is not None and _classes_last(outputs, targets):
            self.network.class_axis = -1
            outputs = outputs.movedim(-1, 1)
        if outputs.ndim == 0 or len(outputs) != len(first):
            raise ValueError(
                f"the model must give one output an example, got shape {tuple(outputs.shape)} for {len(first)} examples"
            )
        return outputs

    def _whole_alone(self) -> str:
        """What to do with a model that takes all examples at once and no part of them, as those on the nodes of a
        graph.
        """
        try:
            with torch.no_grad():
                whole = len(self.train) > 2 and len(self.network(*self.train.tensors)) == len(self.train)
        except Exception:  # whatever a model of the user's own raises
            return ""
        cure = "give all of it as one example, (x[None], y[None]), and forward=lambda model, batch: model(batch['x'][0]"
        return f"; it takes no part of the data, such as some nodes of a graph: {cure}, ...)[None]" if whole else ""

    def _read_targets(self, outputs: Tensor) -> None:
        """Class labels in the form that torch's losses take."""
        for name, sample in (("train", self.train), ("test", self.test)):
            if sample is not None and sample.targets is not None:
                targets, were = read_as_classes(sample.targets, outputs, self.given_loss)
                setattr(self, name, replace(sample, targets=targets))
                self.labels_were = self.labels_were or were

    def _measure_time(self, budget: float) -> tuple[float, int]:
        """The time of an example in a large batch, and how many make a batch that takes at most 2 % of the budget."""
        few = min(2, len(self.train))
        short = self._forward_seconds(few, budget)
        many = max(few, int(min(CHUNK, self.room, len(self.train), few * budget / 50 / max(short, 1e-9))))
        long, most = short, min(CHUNK, self.room)
        while many > few:
            try:
                long = self._forward_seconds(many, budget)
                break
            except torch.OutOfMemoryError:
                many = most = max(many // 2, few)
        # A pass takes overhead + examples * seconds; of one size alone, all is put down to the examples.
        network = self.network
        network.seconds = max(long - short, 0.0) / (many - few) if many > few else long / many
        network.overhead = max(long - many * network.seconds, 0.0)
        chunk = min(most, (budget / 50 - network.overhead) / max(network.seconds, 1e-9))
        return long / many, max(int(chunk), 1)

    def _thin_parts(self, budget: float) -> None:
        """Keep of each part what goes through the network in a tenth of the time, so that every probe can use it."""
        most = max(int(min(budget / 10 / max(self.seconds, 1e-9), 1e9)), 2)
        if len(self.train) > most:
            self.train = replace(self.some(most), whole=False)
        if self.test is not None and len(self.test) > most:
            self.test = replace(self.some(most, self.test), whole=False)

    def _forward_seconds(self, number: int, budget: float) -> float:
        """How long so many examples take, forwards: the quickest of up to three passes, as far as a hundredth of the
        budget goes. The first of a size loads kernels on a GPU, and any may meet a machine that is busy.
        """
        passes: list[float] = []
        while not passes or (len(passes) < 3 and sum(passes) < budget / 100):
            started = time.perf_counter()
            with torch.no_grad():
                self.network(*self.train[:number].tensors)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            passes.append(time.perf_counter() - started)
        return min(passes)

    def _task_of_loss(self, outputs: Tensor, loss: Any) -> str:
        targets = self.train.targets
        if targets is None:
            return ""
        shape, wanted = tuple(outputs.shape[1:]), tuple(targets.shape[1:])
        if isinstance(loss, str) and loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)} or a function, got {loss!r}")
        said = (
            {"cross_entropy": "classes", "nll": "classes", "bce": "binary"}.get(loss) if isinstance(loss, str) else None
        )
        if said is None and isinstance(loss, str):
            said = "numbers"
        whole = not targets.is_floating_point()
        if said == "classes" or (said is None and whole and len(shape) == len(wanted) + 1 and shape[0] > 1):
            if len(shape) != len(wanted) + 1 and not (targets.is_floating_point() and shape == wanted):
                raise ValueError(_unfit_reason(outputs, targets, loss))
            return "classes"
        if math.prod(shape) != math.prod(wanted):
            if isinstance(loss, str | None) or not self._takes_outputs(loss, outputs):
                raise ValueError(_unfit_reason(outputs, targets, loss))
            return "numbers"  # several outputs for one target: a mean and a variance, or quantiles
        if said is not None:
            return said
        two = bool(((targets == 0) | (targets == 1)).all())
        return "binary" if whole and two else "numbers"


def _classes_last(outputs: Tensor, targets: Tensor) -> bool:
    """Whether classes stand last, (batch, time, classes), as in language models, and cannot stand second."""
    if targets.is_floating_point() or not outputs.ndim == targets.ndim + 1 > 2:
        return False
    return outputs.shape[:1] + outputs.shape[2:] != targets.shape == outputs.shape[:-1]


def _unfit_reason(outputs: Tensor, targets: Tensor, loss: Any) -> str:
    seen = f"outputs (batch, {', '.join(map(str, outputs.shape[1:]))}) with targets (batch, "
    seen += f"{', '.join(map(str, targets.shape[1:]))})".replace("(batch, )", "(batch)")
    cure = "give loss=..., or forward=lambda model, batch: ..., which returns the logits"
    if not targets.is_floating_point() and isinstance(loss, str):
        if targets.shape[1:] == outputs.shape[1:]:
            cure = "give one-hot targets as real numbers, y.float(), or classes, y.argmax(1)"
        elif targets.ndim + 1 == outputs.ndim:
            cure = "class labels want loss='cross_entropy'"
    by = f" by {loss}" if isinstance(loss, str) else ""
    return f"cannot compare {seen} of {str(targets.dtype)[6:]}{by}: {cure}".replace("(batch, )", "(batch)")
