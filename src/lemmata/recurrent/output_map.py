r"""Readouts of a recurrent layer: a label for each step, the next token, one label for the whole sequence."""

from typing import Any

import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import activation as activation_named
from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer, checked_lengths, state_at_end
from lemmata.train.evaluation_mode import evaluating

__all__ = ["Autoregressor", "OutputMap", "SequenceClassifier", "Tagger"]


class OutputMap(nn.Module):
    r"""What heads share: any recurrent layer, and a map of its outputs $z_t$ that is the same at every step.

    $$ \hat y_t = \psi(W z_t + c) $$

    With `vocab_size` the inputs are integers below it, each of them a learnt vector; without, they are numbers.

    Shapes:
        x: (batch, time, inputs of the layer), or with `vocab_size` (batch, time)

    Claims: rnn.output_map
    """

    def __init__(
        self,
        layer: RecurrentLayer,
        outputs: int,
        activation: str = "identity",
        vocab_size: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        checked_layer("layer", layer)
        self.layer, self.activation = layer, activation_named(activation).name
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding = None
        if vocab_size is not None:
            self.embedding = nn.Embedding(validate.count("vocab_size", vocab_size), layer.inputs, **factory_kwargs)
        self.readout = nn.Linear(layer.outputs, validate.count("outputs", outputs), **factory_kwargs)

    def embed(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "... inputs"]:
        """The inputs of the layer: x itself, or the vectors of its tokens."""
        if self.embedding is None:
            return x
        return self.embedding(validate.tokens("x", x, self.embedding.num_embeddings))  # (batch, time, inputs)

    def read(self, z: Float[Tensor, "... features"]) -> Float[Tensor, "... outputs"]:
        r"""The map $G$ from outputs of the layer to outputs of the head."""
        return activation_named(self.activation)(self.readout(z))


class Tagger(OutputMap):
    r"""A label for each step: $\hat y_t = \psi(W z_t + c)$ belongs to $x_t$.

    Shapes:
        x: (batch, time, inputs), or (batch, time) tokens    returns: (batch, time, outputs), and the last state

    Claims: rnn.output_map

    >>> from lemmata.recurrent.elman import Elman
    >>> labels, state = Tagger(Elman(3, 8), outputs=2)(torch.randn(5, 7, 3))
    >>> labels.shape
    torch.Size([5, 7, 2])
    """

    def forward(
        self, x: Shaped[Tensor, "batch time *_"], state: State | None = None, lengths: Tensor | None = None
    ) -> tuple[Float[Tensor, "batch time outputs"], State]:
        outputs, state = self.layer(self.embed(x), state, lengths)  # (batch, time, outputs of the layer)
        return self.read(outputs), state  # (batch, time, outputs)


class SequenceClassifier(OutputMap):
    r"""One label for a sequence: $\hat y_T = \psi(W z_T + c)$, read where the sequence ends.

    Shapes:
        x: (batch, time, inputs), or (batch, time) tokens    returns: (batch, outputs)

    Claims: rnn.output_map
    Differs: the backward half of a `Bidirectional` layer has seen only the last input there.

    >>> from lemmata.recurrent.elman import Elman
    >>> SequenceClassifier(Elman(3, 8), outputs=2)(torch.randn(5, 7, 3), lengths=torch.tensor([7, 3, 1, 2, 4])).shape
    torch.Size([5, 2])
    """

    def forward(
        self, x: Shaped[Tensor, "batch time *_"], state: State | None = None, lengths: Tensor | None = None
    ) -> Float[Tensor, "batch outputs"]:
        lengths = checked_lengths(lengths, x)
        outputs, _ = self.layer(self.embed(x), state, lengths)  # (batch, time, outputs of the layer)
        last = state_at_end(outputs, outputs.new_zeros(outputs.shape[0], outputs.shape[-1]), lengths)
        return self.read(last)  # (batch, outputs)


class Autoregressor(OutputMap):
    r"""The next token: $\hat y_t$, read from $x_1, \dots, x_t$, predicts $x_{t+1}$.

    $$ p(x_{t+1} \mid x_1, \dots, x_t) = \mathrm{softmax}(W z_t + c)_{x_{t+1}} $$

    Shapes:
        x: (batch, time) tokens    returns: logits (batch, time, vocab_size), and the last state

    Claims: rnn.output_map
    Differs: `layer.inputs` is the length of the vectors that stand for the tokens.

    >>> from lemmata.recurrent.elman import Elman
    >>> model = Autoregressor(Elman(16, 32), vocab_size=65)
    >>> text = torch.randint(65, (4, 100))
    >>> model(text)[0].shape, model.loss(text).shape, model.sample(text[:, :10], 20).shape
    (torch.Size([4, 100, 65]), torch.Size([]), torch.Size([4, 20]))
    """

    def __init__(
        self,
        layer: RecurrentLayer,
        vocab_size: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(layer, vocab_size, vocab_size=vocab_size, device=device, dtype=dtype)
        if not layer.causal:
            raise ValueError("layer must not look ahead: what it should predict would be among its inputs")

    def forward(
        self, x: Int[Tensor, "batch time"], state: State | None = None, lengths: Tensor | None = None
    ) -> tuple[Float[Tensor, "batch time vocab_size"], State]:
        outputs, state = self.layer(self.embed(x), state, lengths)  # (batch, time, outputs of the layer)
        return self.read(outputs), state  # (batch, time, vocab_size)

    def loss(self, x: Int[Tensor, "batch time"], lengths: Integer[Tensor, " batch"] | None = None) -> Float[Tensor, ""]:
        r"""The mean negative log-likelihood $-\ln p(x_{t+1} \mid x_1, \dots, x_t)$ of the predicted tokens, in nats.

        With `lengths`, from 1 to time, text i ends after `lengths[i]` tokens, and what follows is not predicted.
        """
        if x.ndim != 2 or x.shape[1] < 2:
            raise ValueError(f"x must be (batch, time) with at least 2 steps, got shape {tuple(x.shape)}")
        lengths = checked_lengths(lengths, x, least=1)
        logits, _ = self(x[:, :-1])  # (batch, time - 1, vocab_size)
        target = x[:, 1:]  # (batch, time - 1)
        if lengths is not None:
            beyond = torch.arange(1, x.shape[1], device=x.device) >= lengths[:, None]
            target = target.masked_fill(beyond, -100)  # which cross_entropy leaves out
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)

    def sample(
        self,
        prompt: Int[Tensor, "batch time"],
        length: int,
        temperature: int | float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch length"]:
        """Continue prompts by so many tokens, each drawn given all before it; at temperature 0 the likeliest.

        The state is carried, so that nothing is read twice. Whatever mode the model is in, it writes without dropout.
        """
        if prompt.ndim != 2 or prompt.shape[1] == 0:
            raise ValueError(f"prompt must be (batch, time) with at least 1 step, got shape {tuple(prompt.shape)}")
        validate.number("temperature", temperature, least=0)
        validate.count("length", length)
        with evaluating(self):
            logits, state = self(prompt)
            last, drawn = logits[:, -1], []  # (batch, vocab_size)
            for _ in range(length):
                token = _drawn_tokens(last, temperature, generator)  # (batch,)
                drawn.append(token)
                output, state = self.layer.step(self.embed(token), state)
                last = self.read(output)
        return torch.stack(drawn, dim=1)  # (batch, length)


def _drawn_tokens(logits: Tensor, temperature: int | float, generator: torch.Generator | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(1)
    chances = functional.softmax(logits / temperature, 1)
    return torch.multinomial(chances, 1, generator=generator)[:, 0]
