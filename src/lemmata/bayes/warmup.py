r"""What happens to a kernel while its chains warm up: step, mass and length are set, and then left alone."""

from typing import Any

import torch

from lemmata.bayes.chees import ALONE, ChEES, LengthAdaptation
from lemmata.bayes.hmc import HamiltonianMonteCarlo
from lemmata.bayes.step_adaptation import DualAveraging, PooledCovariance, mass_windows
from lemmata.bayes.transition import Random, Transition

__all__ = []  # for sample

DOUBLINGS = 60  # from 1e-18 to 1e18
MASSES = ("diagonal", "dense", "kept")


class Warmup:
    """Moves chains with a kernel that changes as they go; what cannot be tuned is only stepped."""

    def __init__(self, kernel: Any, transitions: int, dimension: int, mass: str) -> None:
        self.kernel = kernel
        step = getattr(kernel, "step_length", None)
        self.averaging: DualAveraging | None = None
        if step is not None and hasattr(kernel, "target_acceptance") and transitions > 0:
            self.averaging = DualAveraging(step, kernel.target_acceptance)
        tunable = self.averaging is not None
        self.length = LengthAdaptation(kernel.length) if tunable and isinstance(kernel, ChEES) else None
        has_mass = tunable and isinstance(kernel, HamiltonianMonteCarlo) and kernel.mass.matrix is None
        self.windows = mass_windows(transitions) if has_mass and mass != "kept" else []
        self.covariance = PooledCovariance(dimension, dense=mass == "dense")
        self.transitions, self.done = transitions, 0

    def step(self, state: Any, generator: Random) -> tuple[Any, Transition]:
        """One transition of every chain, and what is learnt from it."""
        averaging = self.averaging
        if averaging is None:
            self.done += 1
            return self.kernel.step(state, generator)
        if self.done == 0:
            self._begin_step(averaging, state, generator)
        if self.length is not None:
            state, transition, slope = self.kernel.step_and_slope(state, generator)
            if len(state.position) > 1:  # a chain differs from its own mean by rounding alone
                self.length.update(slope, shortest=self.kernel.step_length)
        else:
            state, transition = self.kernel.step(state, generator)
        averaging.update(float(transition.acceptance.mean()))
        self.done += 1
        self._collect_positions(averaging, state, generator)
        self.kernel = self._tuned_kernel(averaging, last=self.done == self.transitions)
        return state, transition

    def _begin_step(self, averaging: DualAveraging, state: Any, generator: Random) -> None:
        """A step at which about as many proposals are accepted as should be, by doubling or halving."""
        step = self._reasonable_step(averaging, state, generator)
        if self.length is not None:
            self.length = LengthAdaptation(step)
        averaging.restart(step)
        self.kernel = self._tuned_kernel(averaging)

    def _reasonable_step(self, averaging: DualAveraging, state: Any, generator: Random) -> float:
        step, grows = averaging.averaged, None
        for _ in range(DOUBLINGS):
            _, trial = _single_chain(self.kernel, step).step(state, generator)
            enough = float(trial.acceptance.mean()) > averaging.target
            grows = enough if grows is None else grows
            if enough != grows:
                break
            step *= 2.0 if grows else 0.5
        return step

    def _collect_positions(self, averaging: DualAveraging, state: Any, generator: Random) -> None:
        """Positions after the first window; at the end of each later one a new mass, and a step that goes with it."""
        if not self.windows or self.done <= self.windows[0] or self.done > self.windows[-1]:
            return
        self.covariance.update(state.position)
        if self.done not in self.windows:
            return
        self.kernel = self.kernel.tuned(mass=self.covariance.mass())
        self.covariance.clear()
        averaging.restart(self._reasonable_step(averaging, state, generator))
        if self.length is not None:
            # With this mass a quarter of a period takes about as long as 1, from where many chains climb.
            self.length = LengthAdaptation(ALONE if len(state.position) == 1 else 1.0)

    def _tuned_kernel(self, averaging: DualAveraging, last: bool = False) -> Any:
        settings = {"step": averaging.averaged if last else averaging.step}
        if self.length is not None:
            settings["length"] = self.length.averaged if last else self.length.length
        return self.kernel.tuned(**settings)

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on."""
        return {
            "done": self.done,
            "step": getattr(self.kernel, "step_length", None) if self.averaging else None,
            "chosen_length": self.kernel.length if self.length else None,
            "mass": self.kernel.mass.matrix if isinstance(self.kernel, HamiltonianMonteCarlo) else None,
            "averaging": self.averaging.state_dict() if self.averaging else None,
            "length": self.length.state_dict() if self.length else None,
            "covariance": self.covariance.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Go on from there."""
        self.done = state["done"]
        self.covariance.load_state_dict(_move_state(device, state["covariance"]))
        if self.averaging is None:
            return
        self.averaging.load_state_dict(state["averaging"])
        settings = {"step": state["step"]}
        if self.length is not None:
            self.length.load_state_dict(state["length"])
            settings["length"] = state["chosen_length"]
        if state["mass"] is not None:
            settings["mass"] = state["mass"].to(device)
        self.kernel = self.kernel.tuned(**settings)


def _single_chain(kernel: Any, step: float) -> Any:
    return kernel.single(step) if hasattr(kernel, "single") else kernel.tuned(step=step)


def _move_state(device: torch.device, state: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in state.items()}
