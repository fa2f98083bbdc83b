"""A network whose weights are drawn anew at each pass: any module, with a Gaussian posterior and a prior."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["StochasticNetwork"]

CONVOLUTIONS: dict[type[nn.Module], Any] = {
    nn.Conv1d: functional.conv1d, nn.Conv2d: functional.conv2d, nn.Conv3d: functional.conv3d
}  # fmt: skip


@system("stochastic_network", title="Stochastic network", kind="sampler")  # no two calls give the same
class StochasticNetwork(nn.Module):
    r"""Any network, each of whose parameters is normal, independent of the others, around a mean that is learnt.

    $$ \tilde\theta = \theta + \sigma\odot\varepsilon,\quad \varepsilon\sim\mathcal N(0, I); \qquad
       D_{KL}(q\|p) = \sum_i \ln\frac{\lambda_i}{\sigma_i}
       + \frac{\sigma_i^2 + (\theta_i - \theta^0_i)^2}{2\lambda_i^2} - \frac12 $$

    The means $\theta$ are the parameters of `model` itself; $\log\sigma$ learns beside them. The prior has the means
    $\theta^0$ of `prior`, a module like `model` or its parameters by name, by default `model` as it is now, and the
    variance $\lambda^2$ = `variance`; the posterior begins with that variance.

    `forward` draws. With `local`, each output of a linear layer or a convolution is drawn with the mean and variance
    that the weights give it, example by example: less noise in the gradients, and the distribution that one example
    sees of a layer that meets it once. Places of one image, which share the weights, are then drawn independently, so
    that whatever must be right of the classifier itself, such as `gibbs_error`, draws the weights. Parameters of other
    layers are drawn whole in either case.

    `model` may not be used at two places with `local`, and is changed in place: pass a copy to keep it.

    Shapes:
        x: as `model` takes it    returns: as `model` does

    Claims: pac.training, pac.flatness
    Source: Blundell et al. 2015; Kingma, Salimans and Welling 2015 (local); Dziugaite and Roy 2017.

    >>> network = StochasticNetwork(nn.Linear(2, 1), variance=0.01)
    >>> network(torch.ones(4, 2)).shape, network.kl().item() < 1e-6
    (torch.Size([4, 1]), True)
    """

    prior_examples: Tensor

    def __init__(
        self,
        model: nn.Module,
        prior: nn.Module | Mapping[str, Tensor] | None = None,
        variance: float = 1e-3,
    ) -> None:
        super().__init__()
        validate.module("model", model)
        self.model, self.variance = model, float(validate.positive("variance", variance))
        means = dict(model.named_parameters())
        if not means:
            raise ValueError("model must have parameters, got none: nothing would be random")
        self.names = list(means)
        half_log = math.log(self.variance) / 2
        self.log_std = nn.ParameterList([nn.Parameter(torch.full_like(mean, half_log)) for mean in means.values()])
        self.prior_means = nn.ParameterList(
            [nn.Parameter(m.detach().clone(), requires_grad=False) for m in means.values()]
        )
        self.register_buffer("prior_examples", torch.zeros(0, dtype=torch.int64))
        if prior is not None:
            self.set_prior(prior)

    # --- Prior and posterior ---

    @torch.no_grad()
    def set_prior(
        self, prior: nn.Module | Mapping[str, Tensor] | None = None, learnt_from: tuple[Tensor, Tensor] | None = None
    ) -> None:
        """Put the prior at these means, by default at those of the posterior now.

        `learnt_from` are the inputs and targets that the means depend on: `certify` then refuses these examples.
        """
        found = dict(prior.named_parameters()) if isinstance(prior, nn.Module) else prior
        found = dict(self.model.named_parameters()) if found is None else dict(found)
        if list(found) != self.names:
            odd = sorted({*found} ^ {*self.names}) or ["their order"]
            raise ValueError(f"prior must have the parameters of model, but they differ in {', '.join(odd[:3])}")
        for name, mean, value in zip(self.names, self.prior_means, found.values(), strict=True):
            if mean.shape != value.shape:
                raise ValueError(
                    f"prior must have the shapes of model, got {tuple(value.shape)} for {name}, not {tuple(mean.shape)}"
                )
            mean.copy_(value)
        rows = torch.zeros(0, dtype=torch.int64) if learnt_from is None else _row_digests(*learnt_from)
        self.prior_examples = rows.unique().to(self.prior_examples.device)

    def made_prior(self, x: Tensor, y: Tensor) -> Bool[Tensor, " batch"]:
        """Which of the examples are among those that the prior was learnt from."""
        return torch.isin(_row_digests(x, y), self.prior_examples.cpu())

    def kl(self) -> Float[Tensor, ""]:
        """The divergence of the posterior from the prior in nats, float64: it is a sum over all parameters."""
        prior_log, parts = math.log(self.variance) / 2, []
        for mean, log_std, prior in zip(self.model.parameters(), self.log_std, self.prior_means, strict=True):
            mean, log_std, prior = mean.double(), log_std.double(), prior.double()
            gap = log_std - prior_log  # ln(σ/λ): nothing is lost where it is small
            parts.append((torch.expm1(2 * gap) / 2 - gap + (mean - prior).square() / (2 * self.variance)).sum())
        return torch.stack(parts).sum()

    # --- Passes ---

    def forward(self, *inputs: Any, local: bool = True, generator: torch.Generator | None = None) -> Any:
        local_names = self._local_names() if validate.flag("local", local) else {}
        taken = {name for layer in local_names for name in local_names[layer]}
        weights: dict[str, Tensor] = {
            name: mean if name in taken else mean + log_std.exp() * _like_noise(mean, generator)
            for (name, mean), log_std in zip(self.model.named_parameters(), self.log_std, strict=True)
        }
        with self._with_noise(local_names, generator):
            return functional_call(self.model, weights, inputs)

    def mean(self, *inputs: Any) -> Any:
        """The network at the means of the posterior: another classifier, of which no PAC-Bayes bound speaks."""
        return self.model(*inputs)

    def at_prior(self, *inputs: Any) -> Any:
        """The network at the means of the prior."""
        return functional_call(self.model, dict(zip(self.names, self.prior_means, strict=True)), inputs)

    @torch.no_grad()
    def gibbs_errors(
        self, x: Tensor, y: Tensor, samples: int = 100, generator: torch.Generator | None = None
    ) -> Float[Tensor, " samples"]:
        """The errors of so many networks drawn from the posterior, each on all examples: (samples,), float64.

        Largest of several outputs against classes y; the sign of a single one against y = 0 or 1.
        """
        draws = range(validate.count("samples", samples))
        return torch.stack([count_errors(self(x, local=False, generator=generator), y) for _ in draws]).double() / len(
            y
        )

    def gibbs_error(self, x: Tensor, y: Tensor, samples: int = 100, generator: torch.Generator | None = None) -> float:
        """The mean of `gibbs_errors`: an estimate of the error of a network drawn anew for each example."""
        return float(self.gibbs_errors(x, y, samples, generator).mean())

    # --- What the passes are made of ---

    def _local_names(self) -> dict[nn.Module, dict[str, int]]:
        """Layers whose outputs can be drawn in place of their weights, with the numbers of their parameters."""
        places = {name: number for number, name in enumerate(self.names)}
        every = [name for name, _ in self.model.named_parameters(remove_duplicate=False)]
        if len(every) != len(places):  # tied weights are drawn once for all places
            return {}
        found = {}
        for prefix, layer in self.model.named_modules():
            zero_padded = getattr(layer, "padding_mode", "zeros") == "zeros"
            if (type(layer) is nn.Linear or type(layer) in CONVOLUTIONS) and zero_padded:
                own = [f"{prefix}.{name}" if prefix else name for name, _ in layer.named_parameters(recurse=False)]
                found[layer] = {name: places[name] for name in own}
        return found

    @contextmanager
    def _with_noise(self, layers: dict[nn.Module, dict[str, int]], generator: torch.Generator | None) -> Iterator[None]:
        """Hooks that add to the output of each layer what its weights' noise does to it."""
        met: set[nn.Module] = set()

        def add_noise(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            met.add(layer)
            variances = [(2 * self.log_std[number]).exp() for number in layers[layer].values()]
            spread = _output_variance(layer, inputs[0].square(), variances)
            # The root has no slope at zero, where inputs are all zero and there is no bias.
            return output + spread.clamp(min=torch.finfo(spread.dtype).tiny).sqrt() * _like_noise(output, generator)

        hooks = [layer.register_forward_hook(add_noise) for layer in layers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        if len(met) < len(layers):
            missed = next(name for name, layer in self.model.named_modules() if layer in layers and layer not in met)
            raise ValueError(f"layer {missed} of model was not called, perhaps its weights were read: use local=False")

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """The number of examples that made the prior is part of what is loaded."""
        saved = state_dict.get(prefix + "prior_examples")
        if saved is not None:
            self.prior_examples = torch.zeros_like(saved, device=self.prior_examples.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _output_variance(layer: nn.Module, squares: Tensor, variances: list[Tensor]) -> Tensor:
    """Of each output: the squares of the inputs through the same layer, with variances as weights."""
    weight, bias = variances[0], variances[1] if len(variances) > 1 else None
    if isinstance(layer, nn.Linear):
        return functional.linear(squares, weight, bias)
    options = {name: getattr(layer, name) for name in ("stride", "padding", "dilation", "groups")}
    return CONVOLUTIONS[type(layer)](squares, weight, bias, **options)  # type: ignore[no-any-return]


def _like_noise(like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def count_errors(output: Tensor, y: Tensor) -> Tensor:
    """How many examples are classified wrongly."""
    predicted = output.argmax(1) if output.ndim == 2 and output.shape[1] > 1 else (output.flatten() > 0).long()
    return (predicted != y).sum()


def _row_digests(x: Tensor, y: Tensor) -> Tensor:
    """A number for each example, from its values alone: order, device and precision of a copy do not matter."""
    rows, targets = x.detach().cpu().flatten(1).double().numpy(), y.detach().cpu().double().numpy()
    digests = (
        hashlib.sha256(row.tobytes() + target.tobytes()).digest()[:8] for row, target in zip(rows, targets, strict=True)
    )
    found = [int.from_bytes(digest, "big", signed=True) for digest in digests]
    return torch.tensor(found, dtype=torch.int64)
