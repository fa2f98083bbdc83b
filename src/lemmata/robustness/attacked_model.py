r"""A classifier lent to an attack: asked for logits and gradients, counted, and given back as it was found."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.robustness.goals import Goal, answered_wrongly
from lemmata.robustness.norm_ball import per_example
from lemmata.robustness.threat import Threat
from lemmata.train.as_found import kept_as_found

__all__ = ["Attack"]

Classifier = Callable[[Tensor], Tensor]
NO_GRADIENT = "the model gives no gradient of its logits: use square_attack or transfer_attack, which need none"


@dataclass(frozen=True)
class Attack:
    """What an attack found: where it failed the input stands unchanged, with `success` false."""

    examples: Float[Tensor, "batch ..."]
    """The examples, each verified once more: inside ball and box, and answered as the attack says."""
    success: Bool[Tensor, "batch"]
    """Whether the answer is wrong, or the one wanted; true without a step where it was so at once."""
    norms: Float[Tensor, "batch"]
    """How far each example is from where it began, in the norm of the threat."""
    gradients: Int[Tensor, "batch"]
    """Gradients that were asked for each example."""
    queries: Int[Tensor, "batch"]
    """Answers that were asked for each example, those of the gradients and of the verification among them."""
    flags: tuple[str, ...] = ()
    """Signs that the attack could not do its work, such as gradients that are zero: failure then shows nothing."""

    def __str__(self) -> str:
        far = self.norms[self.success & (self.norms > 0)]
        norm = f", median norm {far.median():.3g}" if len(far) else ""
        told = "".join(f"\nflag: {flag}" for flag in self.flags)
        return f"{int(self.success.sum())} of {len(self.success)} answered wrongly{norm}{told}"


class AttackedModel:
    """The classifier of one attack on one batch. Attacks ask it by rows, so that finished examples cost nothing."""

    def __init__(
        self,
        model: Classifier,
        x: Tensor,
        y: Tensor,
        threat: Threat,
        targets: Tensor | None,
        autocast: torch.dtype | None,
    ):
        self.model, self.x, self.y, self.threat, self.targets = model, x, y, threat, targets
        self.autocast = autocast
        self.gradients = torch.zeros(len(x), dtype=torch.long, device=x.device)
        self.queries = torch.zeros_like(self.gradients)
        self.flags: set[str] = set()
        self.all_rows = torch.arange(len(x), device=x.device)
        self.clean_logits = self._first_logits()
        classes = self.clean_logits.shape[1]
        for name, labels in (("y", y), ("targeted", targets)):
            if labels is not None and int(labels.max()) >= classes:
                raise ValueError(f"{name} must hold classes from 0 to {classes - 1}, got {int(labels.max())}")
        self.fooled = answered_wrongly(self.clean_logits, y, targets)  # (batch,), before any step
        self.rows = self.all_rows[~self.fooled]

    def targets_of(self, rows: Int[Tensor, "rows"]) -> Tensor | None:
        return None if self.targets is None else self.targets[rows]

    def logits(
        self, images: Float[Tensor, "rows ..."], rows: Int[Tensor, "rows"] | None = None
    ) -> Float[Tensor, "rows classes"]:
        """The classifier's answers, without a graph. Rows may repeat, as restarts and candidates in one batch do."""
        self._count_rows(self.queries, rows)
        with torch.no_grad(), self._search_precision(images):
            return self._checked_logits(self.model(images), images)

    def gradient(
        self, images: Float[Tensor, "rows ..."], goal: Goal, rows: Int[Tensor, "rows"] | None = None
    ) -> tuple[Float[Tensor, "rows"], Float[Tensor, "rows ..."], Float[Tensor, "rows classes"]]:
        """Value and gradient of the goal at each image, and its logits; NaN in a gradient is zero, and is told."""
        rows = self.all_rows if rows is None else rows
        self._count_rows(self.queries, rows)
        self._count_rows(self.gradients, rows)
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            with self._search_precision(images):
                logits = self._checked_logits(self.model(images), images)
            if not logits.requires_grad:
                raise ValueError(NO_GRADIENT)
            value = goal(logits, self.y[rows], self.targets_of(rows))  # (rows,)
            (gradient,) = torch.autograd.grad(value.sum(), images, allow_unused=True)
        gradient = torch.zeros_like(images) if gradient is None else gradient
        return value.detach(), self._checked_gradient(gradient, ~self.wrong(logits, rows)), logits.detach()

    def logit_gradients(
        self,
        images: Float[Tensor, "rows ..."],
        classes: Int[Tensor, "rows few"],
        rows: Int[Tensor, "rows"] | None = None,
    ) -> tuple[Float[Tensor, "rows classes"], Float[Tensor, "rows few ..."]]:
        """The logits, and the gradient of each of a few of them, which differ from row to row: one pass forward."""
        rows = self.all_rows if rows is None else rows
        self._count_rows(self.queries, rows)
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            with self._search_precision(images):
                logits = self._checked_logits(self.model(images), images)
            if not logits.requires_grad:
                raise ValueError(NO_GRADIENT)
            chosen = logits.gather(1, classes)  # (rows, few)
            found = []
            for k in range(classes.shape[1]):
                self._count_rows(self.gradients, rows)
                found += torch.autograd.grad(chosen[:, k].sum(), images, retain_graph=True)
        return logits.detach(), self._checked_gradient(torch.stack(found, 1))  # (rows, few, ...)

    def wrong(self, logits: Tensor, rows: Int[Tensor, "rows"] | None = None) -> Bool[Tensor, "rows"]:
        rows = self.all_rows if rows is None else rows
        return answered_wrongly(logits, self.y[rows], self.targets_of(rows))

    def result(self, candidates: Float[Tensor, "batch ..."], *flags: str) -> Attack:
        """Every candidate is brought inside the threat, asked once more, and dropped where it fools nobody."""
        untouched = per_example(self.fooled, self.x)
        examples = torch.where(untouched, self.x, self.threat.inside(self.x, candidates.to(self.x.dtype)))
        self.autocast = None
        success = self.wrong(self.logits(examples)) & self.threat.admits(self.x, examples)
        success |= self.fooled
        examples = torch.where(per_example(success, self.x), examples, self.x)
        norms = self.threat.norms(self.x, examples)
        told = tuple(sorted({*self.flags, *flags}))
        return Attack(examples, success, norms, self.gradients, self.queries, told)

    def _first_logits(self) -> Float[Tensor, "batch classes"]:
        try:
            return self.logits(self.x)
        except RuntimeError as error:
            parameters = self.model.parameters() if isinstance(self.model, nn.Module) else ()
            found = {each.dtype for each in parameters if each.is_floating_point()}
            if len(found) != 1 or self.x.dtype in found:
                raise
            dtype = found.pop()
            raise TypeError(f"x is {self.x.dtype}, and the model's weights are {dtype}: use x.to({dtype})") from error

    def _count_rows(self, counter: Tensor, rows: Tensor | None) -> None:
        if rows is None:
            counter += 1
        else:
            counter.index_add_(0, rows, torch.ones_like(rows))

    def _search_precision(self, images: Tensor) -> contextlib.AbstractContextManager[object]:
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(images.device.type, dtype=self.autocast)

    def _checked_gradient(self, gradient: Tensor, searched: Tensor | None = None) -> Tensor:
        """Finite; a gradient of zero is told of where there is still something to be found."""
        if not torch.isfinite(gradient).all():
            self.flags.add("gradients that are not finite")
            gradient = torch.nan_to_num(gradient, 0.0, 0.0, 0.0)
        zero = (gradient.flatten(1) == 0).all(1)
        if (zero if searched is None else zero & searched).any():
            self.flags.add("gradients that are exactly zero")
        return gradient

    def _checked_logits(self, logits: Tensor, images: Tensor) -> Tensor:
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(images):
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(f"the model must give logits (batch, classes), got {got}")
        if logits.shape[1] < 2:
            cure = "for one output z an example wrap it: torch.cat([-z, z], dim=1)"
            raise ValueError(
                f"the model must tell at least two classes apart, got logits {tuple(logits.shape)}: {cure}"
            )
        if logits.dtype in (torch.bfloat16, torch.float16):
            logits = logits.float()
        if not torch.isfinite(logits.detach()).all():
            raise ValueError("the model's logits must be finite: look for NaN in its weights, or for log(0)")
        return logits


@contextlib.contextmanager
def under_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    threat: Threat,
    targeted: Int[Tensor, "batch"] | int | None = None,
    autocast: torch.dtype | None = None,
) -> Iterator[AttackedModel]:
    """Everything that all attacks check and promise: arguments, evaluation mode, frozen weights, all as found."""
    threat.check(x)
    if isinstance(model, nn.Module) and (training := [name for name, part in model.named_modules() if part.training]):
        where = f" ({training[0]})" if training[0] else ""
        raise ValueError(f"the model is in training mode{where}: call model.eval() before it is attacked")
    y, targets = _checked_classes("y", y, x), None
    if targeted is not None:
        wanted = torch.full_like(y, targeted) if isinstance(targeted, int) else targeted
        targets = _checked_classes("targeted", wanted, x)
        if bool((targets == y).any()):
            raise ValueError("targeted must name another class than y for every example")
    with contextlib.ExitStack() as stack:
        if isinstance(model, nn.Module):
            stack.enter_context(kept_as_found(model))
            for parameter in model.parameters():
                parameter.requires_grad_(False)  # only gradients of the input are wanted
        yield AttackedModel(model, x.detach(), y, threat, targets, autocast)


def _checked_classes(name: str, labels: Tensor, x: Tensor) -> Tensor:
    if validate.tensor(name, labels).is_floating_point() or labels.dtype is torch.bool:
        raise TypeError(f"{name} must hold classes as integers, got {labels.dtype}: use {name}.long()")
    if labels.shape != x.shape[:1]:
        raise ValueError(f"{name} must be ({len(x)},), one class for each example, got shape {tuple(labels.shape)}")
    if int(labels.min()) < 0:
        raise ValueError(f"{name} must hold classes from 0, got {int(labels.min())}")
    return labels.to(x.device).long()


def fixed_generator(generator: torch.Generator | None) -> torch.Generator:
    """The generator that is given, or one that always begins at the same place: an attack repeats itself."""
    return torch.Generator().manual_seed(0) if generator is None else generator
