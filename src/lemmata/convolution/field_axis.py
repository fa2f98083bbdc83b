r"""Which places of an input each unit of a later tensor sees, along one axis and along all."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = []  # for receptive_fields and its rules


@dataclass(frozen=True)
class Reach:
    """The first and the last place that unit u sees; unit u + period sees places that lie `advance` further.

    A convolution has period 1 and advances by its stride. Upsampling gives several phases, each with its own bounds;
    a phase that sees nothing, as between the values that a transposed convolution spreads, has None. What sees the
    same places at every unit advances by 0.
    """

    advance: int
    bounds: tuple[tuple[int, int] | None, ...]

    @property
    def stride(self) -> Fraction:
        """Places by which the field moves from one unit to the next, on average."""
        return Fraction(self.advance, len(self.bounds))

    @property
    def size(self) -> int:
        """Places from the first to the last that a unit sees: those of the widest phase."""
        return max((last - first + 1 for first, last in filter(None, self.bounds)), default=0)

    def at(self, unit: int) -> tuple[int, int] | None:
        """The first and the last place that a unit sees."""
        times, phase = divmod(unit, len(self.bounds))
        bounds = self.bounds[phase]
        return bounds and (bounds[0] + times * self.advance, bounds[1] + times * self.advance)

    def read(self, reads: Callable[[int], Iterable[int]], inputs: int = 1, outputs: int = 1) -> "Reach":
        """The reach of units that read units of this one, where reads(v + outputs) = reads(v) + inputs.

        >>> Reach(1, ((0, 0),)).read(lambda v: range(2 * v - 1, 2 * v + 2), inputs=2)
        Reach(advance=2, bounds=((-1, 1),))
        """
        common = math.gcd(inputs, outputs)
        inputs, outputs = inputs // common, outputs // common
        times = len(self.bounds) // math.gcd(len(self.bounds), inputs)  # after which the phases come back
        advance = self.advance * inputs * times // len(self.bounds)
        return Reach(advance, tuple(hull(self.at(unit) for unit in reads(v)) for v in range(outputs * times)))

    def all(self, size: int) -> "Reach":
        """What the units from 0 to below size see together."""
        return Reach(0, (hull(map(self.at, range(size))),))

    def join(self, other: "Reach") -> "Reach | None":
        """What either sees; None where the fields of the two do not move alike."""
        if self.stride != other.stride:
            return None
        period = math.lcm(len(self.bounds), len(other.bounds))
        advance = self.advance * period // len(self.bounds)
        return Reach(advance, tuple(hull([self.at(u), other.at(u)]) for u in range(period)))


def hull(bounds: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The smallest stretch that holds all of these."""
    seen = [pair for pair in bounds if pair]
    return (min(first for first, _ in seen), max(last for _, last in seen)) if seen else None


# For each axis of the model's input: what is seen along it, and the axis of the tensor along which that moves.
# None in place of an axis means that every unit of the tensor sees the same.
Field = tuple[tuple[Reach, int | None], ...]


def along(field: Field, axis: int, reads: Callable[[int], Iterable[int]], inputs: int = 1, outputs: int = 1) -> Field:
    """The field once units along one axis read others."""
    return tuple((reach.read(reads, inputs, outputs), a) if a == axis else (reach, a) for reach, a in field)


def seen_whole(field: Field, shape: Sequence[int], axes: Iterable[int]) -> Field:
    """The field where every unit sees all that there is along these axes."""
    gone = set(axes)
    return tuple((reach.all(shape[a]), None) if a is not None and a in gone else (reach, a) for reach, a in field)


def moved(field: Field, places: dict[int, int]) -> Field:
    """The same field, with axes of the tensor at other places."""
    return tuple((reach, None if axis is None else places[axis]) for reach, axis in field)


def joined(fields: Iterable[tuple[Field, Sequence[int]]], shape: Sequence[int]) -> Field | None:
    """What a tensor sees that is made, entry by entry, of several with these shapes, which are broadcast."""
    found: Field | None = None
    for field, own in fields:
        more = len(shape) - len(own)
        spread = [axis for axis in range(len(own)) if own[axis] != shape[axis + more]]
        field = moved(seen_whole(field, own, spread), {axis: axis + more for axis in range(len(own))})
        found = (
            field if found is None else tuple(_either_field(*pair, shape) for pair in zip(found, field, strict=True))
        )
    return found


def _either_field(
    one: tuple[Reach, int | None], other: tuple[Reach, int | None], shape: Sequence[int]
) -> tuple[Reach, int | None]:
    """What two tensors see together; all of it at every unit where their fields move differently."""
    both = one[0].join(other[0]) if one[1] == other[1] else None
    if both is not None:
        return both, one[1]
    still = [reach if axis is None else reach.all(shape[axis]) for reach, axis in (one, other)]
    return Reach(0, (hull(reach.at(0) for reach in still),)), None
