r"""What recurrent layers share: a state carried through time, one step after another or a whole sequence at once."""

from typing import Any

import torch
from jaxtyping import Integer, Shaped
from torch import Tensor, nn

from lemmata import validate

__all__ = ["RecurrentLayer", "State"]

State = Any  # a tensor (batch, ...), or a tuple of states


class RecurrentLayer(nn.Module):
    r"""A map applied at every step to the input and to the state that the step before left behind.

    $$ (y_t, z_t) = F(x_t, z_{t-1}), \qquad t = 1, \dots, T $$

    A layer defines `initial_state` and `step`. Calling it runs a whole sequence; where a layer knows a quicker way
    than one step after another it overrides `sequence`, and `by_steps` remains the reference.

    With `lengths`, sequence i ends after `lengths[i]` steps: later outputs are zero, and the state handed back is the
    one at its own end. So sequences of different lengths can share a batch, and what pads them has no influence.

    Shapes:
        x: (batch, time, inputs)    lengths: (batch,) integers from 0 to time
        returns: outputs (batch, time, outputs), and the state after the last step

    Claims: rnn.evolution
    """

    causal: bool = True  # whether no output depends on a later input

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)

    def initial_state(self, batch: int) -> State:
        """The state before the first step."""
        raise NotImplementedError(f"{type(self).__name__} must define initial_state(batch)")

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: the input (batch, inputs) and the state before it give the output (batch, outputs) and the next."""
        raise NotImplementedError(f"{type(self).__name__} must define step(x, state)")

    def forward(
        self,
        x: Shaped[Tensor, "batch time inputs"],
        state: State | None = None,
        lengths: Integer[Tensor, " batch"] | None = None,
    ) -> tuple[Shaped[Tensor, "batch time outputs"], State]:
        self._check_input(x)
        lengths = checked_lengths(lengths, x)
        # What pads a sequence may be infinite or NaN: zeros keep it out of the gradients as well.
        return self.sequence(mask_outputs(x, lengths), self._checked_state(state, x.shape[0]), lengths)

    def sequence(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """Run a whole sequence from a given state."""
        return self.by_steps(x, state, lengths)

    def by_steps(self, x: Tensor, state: State | None = None, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """Run a whole sequence one step after another: the reference for every quicker way."""
        state = self._checked_state(state, x.shape[0])
        outputs = []
        for time, now in enumerate(mask_outputs(x, lengths).unbind(1)):  # (batch, inputs) at each step
            output, after = self.step(now, state)  # (batch, outputs), and a state
            state = after if lengths is None else _state_where(time < lengths, after, state)
            outputs.append(output)
        if not outputs:
            return x.new_empty(x.shape[0], 0, self.outputs), state
        return mask_outputs(torch.stack(outputs, dim=1), lengths), state  # (batch, time, outputs)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if f"{prefix}weight_ih_l0" in state_dict and hasattr(self, "from_torch"):
            rest[-1].append(f"These are weights of a torch module: use {type(self).__name__}.from_torch(module).")

    def _check_input(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"x must be a padded tensor, got {type(x).__name__}: give the lengths beside it")
        if x.ndim != 3 or x.shape[-1] != self.inputs:
            raise ValueError(f"x must be (batch, time, {self.inputs}), got shape {tuple(x.shape)}")
        weight = next(self.parameters(), x)
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"x must be {weight.dtype} like the layer, got {x.dtype}: use x.to({weight.dtype})")

    def _checked_state(self, state: State | None, batch: int) -> State:
        start = self.initial_state(batch)
        if state is None:
            return start
        wanted, given = _state_shapes(start), _state_shapes(state)
        if wanted != given:
            raise ValueError(f"state must have the shape {_shapes_message(wanted)}, got {_shapes_message(given)}")
        return state


def checked_layer(name: str, layer: RecurrentLayer) -> RecurrentLayer:
    """A layer of this chapter, or of a subclass."""
    if not isinstance(layer, RecurrentLayer):
        raise TypeError(f"{name} must be a recurrent layer, got {type(layer).__name__}")
    return layer


def mask_outputs(outputs: Tensor, lengths: Tensor | None) -> Tensor:
    """Outputs (batch, time, features) with zeros after each sequence's end."""
    if lengths is None:
        return outputs
    within = torch.arange(outputs.shape[1], device=outputs.device) < lengths[:, None]  # (batch, time)
    return outputs.masked_fill(~within[..., None], 0)  # not a product: what pads a sequence may be infinite


def state_at_end(states: Tensor, start: Tensor, lengths: Tensor | None) -> Tensor:
    """The last state of each sequence, from all its states (batch, time, features) and the one before them."""
    if states.shape[1] == 0:
        return start
    if lengths is None:
        return states[:, -1]
    each = torch.arange(states.shape[0], device=states.device)
    chosen = states[each, (lengths - 1).clamp(min=0)]  # (batch, features)
    return torch.where(lengths[:, None] > 0, chosen, start)


def _state_where(condition: Tensor, new: State, old: State) -> State:
    if isinstance(new, tuple):
        return tuple(_state_where(condition, a, b) for a, b in zip(new, old, strict=True))
    return torch.where(condition.view(-1, *[1] * (new.ndim - 1)), new, old)


def _state_shapes(state: State) -> Any:
    if isinstance(state, tuple | list):
        return tuple(map(_state_shapes, state))
    if not isinstance(state, Tensor):
        raise TypeError(f"state must be a tensor or a tuple of tensors, got {type(state).__name__}")
    return torch.Size(state.shape)


def _shapes_message(shapes: Any) -> str:
    if isinstance(shapes, torch.Size):
        return str(tuple(shapes))
    return "(" + ", ".join(map(_shapes_message, shapes)) + ")"


def checked_lengths(lengths: Tensor | None, x: Tensor, least: int = 0) -> Tensor | None:
    """The lengths of the sequences in x (batch, time, ...) as int64 beside it, once they can be that."""
    if lengths is None:
        return None
    if not isinstance(lengths, Tensor):
        raise TypeError(f"lengths must be a tensor, got {type(lengths).__name__}: use torch.tensor(lengths)")
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype is torch.bool:
        raise TypeError(f"lengths must hold integers, got {lengths.dtype}: use lengths.long()")
    if lengths.shape != x.shape[:1]:
        wanted, given = x.shape[0], tuple(lengths.shape)
        raise ValueError(f"lengths must hold one number for each of {wanted} sequences, got shape {given}")
    if validate.visible(lengths) and not least <= int(lengths.min()) <= int(lengths.max()) <= x.shape[1]:
        found = f"{int(lengths.min())} to {int(lengths.max())}"
        raise ValueError(f"lengths must be from {least} to {x.shape[1]}, got {found}")
    return lengths.to(x.device, torch.int64)


def transformed() -> bool:
    """Whether a transform of `torch.func` is active, which torch's kernels for whole sequences do not know."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()
