r"""The Hopfield lab: pictures as memories, a spoilt one to begin with, and every flip of its way down to rest."""

import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.connectionism.hopfield import HopfieldNetwork, Recall
from lemmata.connectionism.recipes import HopfieldConfig, PrototypeLearner, corrupted
from lemmata.data.images import digits, glyphs
from lemmata.figure import Figure, Image, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.lab.words import count as counted

LAB = {
    "title": "Hopfield memory",
    "sentence": "Spoil a picture and watch a network of coupled pixels fall back into what it remembers.",
    "year": 1982,
    "chapter": "connectionism",
    "claims": (
        "hopfield.network",
        "hopfield.energy_descent",
        "hopfield.hebb",
        "hopfield.metastable",
        "hopfield.crosstalk",
        "hopfield.phase_transition",
    ),
    "systems": ("hopfield",),
    "command": "lemmata check 'hopfield.*'",
    "thumbnail": {"noise": "25"},
}

PICTURES = """
heart        smile        house        tree         cat          cup          rocket       note         anchor
.##......##. ....####.... .....##..... .....##..... #..........# ............ .....##..... ....######## ....####....
####....#### ..########.. ....####.... ....####.... ##........## ###########. ....####.... ....######## ....#..#....
#####..##### .##########. ...######... ...######... ###......### ###########. ....####.... ....##....## ....####....
############ .##..##..##. ..########.. ..########.. ############ ############ ...##..##... ....##....## .....##.....
############ ###..##..### .##########. ....####.... ############ ##########.# ...##..##... ....##....## ..########..
############ ############ ############ ...######... ##..####..## ##########.# ...######... ....##....## .....##.....
.##########. ############ ..########.. ..########.. ##..####..## ##########.# ..########.. ....##....## #....##....#
..########.. ##.######.## ..##...##... .##########. ############ ############ .##.####.##. .#####.##### ##...##...##
...######... .##.####.##. ..##...##... ...######... #####..##### .########... ##..####..## ############ ##...##...##
....####.... .###....###. ..##...##... ..########.. .##########. .########... #...####...# ############ .##..##..##.
.....##..... ..########.. ..##...##... ############ ..########.. ..######.... .....##..... .####..####. ..########..
............ ....####.... ..##...##... .....##..... ...######... ############ ....#..#.... ............ ....####....
"""
MOST_OWN = 6
SWEEPS = 60
LIMIT = 0.138  # patterns per unit beyond which Hebb's rule forgets all random patterns at once

Pixels = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,196}$")]
Own = Annotated[str, StringConstraints(max_length=1200, pattern=rf"^([0-9a-f]{{16,196}}(-|$)){{0,{MOST_OWN}}}$")]


class State(LabState):
    """What is stored and how, what recall begins with, and how many flips of it are shown."""

    set: Literal["pictures", "digits", "letters", "random"] = "pictures"
    count: Annotated[int, Field(ge=1, le=60)] = 4
    rule: Literal["hebb", "pseudo-inverse"] = "hebb"
    own: Own = ""  # pictures that the reader stored, beside those of the set
    pick: Annotated[int, Field(ge=0, le=60 + MOST_OWN)] = 0
    picture: Pixels | None = None  # drawn by the reader, instead of the memory `pick`
    noise: Annotated[int, Field(ge=0, le=100)] = 20
    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    at: Annotated[int, Field(ge=0, le=100_000)] = 0


# --- Memories ---


@functools.cache
def collection(name: str) -> tuple[list[str], Tensor]:
    """The pictures of a set as signs, ink +1, with their names."""
    if name == "pictures":
        heads, *rows = [line.split() for line in PICTURES.strip().splitlines()]
        ink = ["".join(row[k] for row in rows) for k in range(len(heads))]
        return list(map(str, heads)), torch.tensor([[1.0 if mark == "#" else -1.0 for mark in each] for each in ink])
    if name == "digits":  # what `lemmata train hopfield` stores: at each pixel the majority of a class
        network = HopfieldNetwork(64)
        PrototypeLearner(network, 10, HopfieldConfig()).step(digits().train, 0.0)
        return [f"digit {k}" for k in range(10)], network.patterns
    if name == "letters":
        data = glyphs()
        places = data.extra["alphabets"].index("Greek"), data.extra["styles"].index("Serif-Black")
        chosen = data.train[(data.train.alphabet == places[0]) & (data.train.style == places[1])]
        return [data.classes[int(letter)] for letter in chosen.y], 2 * chosen.x.flatten(1) - 1
    coins = torch.randint(0, 2, (60, 144), generator=torch.Generator().manual_seed(0))
    return [f"pattern {k + 1}" for k in range(60)], 2.0 * coins - 1


def packed(state: Tensor) -> str:
    """Signs as hexadecimal digits, four pixels each.

    >>> packed(torch.tensor([1.0, -1, -1, -1, 1, 1, 1, 1]))
    '8f'
    """
    return f"{int(''.join('1' if sign > 0 else '0' for sign in state.tolist()), 2):0{len(state) // 4}x}"


def unpacked(text: str, units: int) -> Tensor:
    """The same the other way round."""
    if len(text) != units // 4:
        raise ValueError(f"a picture of this set has {units} pixels: {units // 4} hexadecimal digits")
    return torch.tensor([1.0 if bit == "1" else -1.0 for bit in f"{int(text, 16):0{units}b}"])


# --- Recall ---


def show(state: State) -> dict[str, Any]:
    """Everything the page needs to play the recall forwards and backwards."""
    stored = Stored(state)
    network, names = stored.network, stored.names
    flips, energies, sweeps, end = fall(network, stored.cue, state.seed)
    return {
        "side": int(network.units**0.5),
        "names": names,
        "memories": [packed(memory) for memory in stored.memories],
        "stable": network.is_stable(stored.memories).tolist(),
        "limit": stored.limit,
        "count": min(state.count, stored.limit),
        "pick": None if state.picture else stored.pick,
        "wanted": packed(stored.wanted),
        "cue": packed(stored.cue),
        "turned": int((stored.cue != stored.wanted).sum()),
        "flips": flips,
        "energies": energies,
        "sweeps": sweeps,
        "at": min(state.at, len(flips)),
        "ending": ending(end, names),
        "began": began(state, stored),
        "ended": ended(ending(end, names), "" if state.picture else names[stored.pick], not flips),
        "stored": load(stored),
        "python": python(state, names, stored.cue),
        "figures": {"energy": energy_figure(network, energies, sweeps, end, names)},
    }


def still(state: State) -> Figure:
    """Where recall begins and ends."""
    stored = Stored(state)
    *_, end = fall(stored.network, stored.cue, state.seed)
    side = int(stored.network.units**0.5)
    states = {"given": stored.cue, "recalled": end.states[0]}
    marks = [Image(((1 - state.reshape(side, side)) / 2).tolist(), name) for name, state in states.items()]
    return Figure("A spoilt picture, and what is recalled", marks=marks)


class Stored:
    """The memories of a state, the network that holds them, and the spoilt picture that recall begins with."""

    def __init__(self, state: State) -> None:
        names, memories = collection(state.set)
        units, self.limit = memories.shape[1], len(memories)
        own = [unpacked(text, units) for text in state.own.split("-") if text]
        self.names = names[: state.count] + [f"yours {k + 1}" for k in range(len(own))]
        self.memories = torch.stack([*memories[: state.count], *own]).double()
        self.network = HopfieldNetwork.from_patterns(self.memories, state.rule)
        self.pick = min(state.pick, len(self.names) - 1)
        self.wanted = self.memories[self.pick] if state.picture is None else unpacked(state.picture, units)
        self.cue = corrupted(self.wanted[None].double(), state.noise / 100, seed=state.seed)[0]


def fall(network: HopfieldNetwork, cue: Tensor, seed: int) -> tuple[list[int], list[float], list[int], Recall]:
    """The units that flip, one after another; the energy before and after each; how many had flipped by each sweep."""
    generator, same = (torch.Generator().manual_seed(seed) for _ in range(2))
    state, path, flips, sweeps = cue, [cue], [], []
    for _ in range(SWEEPS):
        end = network.recall(state[None], max_sweeps=1, generator=generator)
        order = torch.randperm(network.units, generator=same)  # the one in which this sweep updated the units
        for unit in order[(end.states[0] != state)[order]].tolist():
            flips.append(unit)
            path.append(path[-1].clone())
            path[-1][unit] *= -1
        if torch.equal(state, end.states[0]):
            break
        state = end.states[0]
        sweeps.append(len(flips))
    return flips, [round(value, 6) for value in network.energy(torch.stack(path)).tolist()], sweeps, end


def ending(end: Recall, names: list[str]) -> dict[str, Any]:
    """What the state of rest is."""
    kinds = {"memory": end.exact, "mirror": end.mirror, "spurious": end.spurious}
    kind = next((kind for kind, holds in kinds.items() if bool(holds[0])), "unfinished")
    return {"kind": kind, "memory": names[int(end.memory[0])], "overlap": round(float(end.overlap[0]), 3)}


# --- Words ---


def began(state: State, stored: Stored) -> str:
    """What recall begins with."""
    turned = int((stored.cue != stored.wanted).sum())
    spoilt = f"{counted(turned, 'pixel')} of {len(stored.cue)} turned over." if turned else ""
    if state.picture:
        return f"Your picture. {spoilt}".strip()
    return f"{stored.names[stored.pick]}: {spoilt or 'as it was stored.'}"


def ended(end: dict[str, Any], asked: str, at_rest: bool) -> str:
    """What the state of rest is, for who asked for a memory, or for none."""
    memory, like = end["memory"], f"{end['overlap']:g}".replace("-", "−")
    words = {
        "memory": f"It remembers{', but the wrong thing' if asked not in ('', memory) else ''}: {memory}.",
        "mirror": f"The mirror image of {memory}: every pixel is wrong, and it is just as deep a valley.",
        "spurious": "A spurious state: a place of rest that nobody stored. "
        f"The nearest memory is {memory}, with overlap {like}.",
        "unfinished": "It has not come to rest yet.",
    }
    return f"{'Nothing moves. ' if at_rest else ''}{words[end['kind']]}"


def load(stored: Stored) -> str:
    """How full the memory is, and what that does to it."""
    number, units = len(stored.names), stored.network.units
    forgotten = int((~stored.network.is_stable(stored.memories)).sum())
    fate = "Each of them would stay as it is." if number > 1 else "It would stay as it is."
    if forgotten:
        fate = f"{'All' if forgotten == number else forgotten} of them are forgotten: they do not stay when left alone."
    share = f"{counted(number, 'memory', 'memories')} on {units} pixels, {number} / {units} = {number / units:.3f}"
    return f"{share}. {fate} Press one to begin with it."


# --- Pictures ---


def energy_figure(
    network: HopfieldNetwork, energies: list[float], sweeps: list[int], end: Recall, names: list[str]
) -> Figure:
    """Down, and never up."""
    nearest = int(end.memory[0])
    level = round(float(network.energy(network.patterns[nearest])), 6)
    last = max(len(energies) - 1, 1)
    marks: list[Line | Points] = [Line(range(len(energies)), energies, "energy")]
    marks.append(Line([0, last], [level, level], f"energy of {names[nearest]}"))
    marks += [Points(sweeps, [energies[k] for k in sweeps], "end of a sweep")] if sweeps else []
    title = f"The energy falls from {energies[0]:.1f} to {energies[-1]:.1f} in {counted(len(energies) - 1, 'flip')}"
    title = title.replace("-", "−") if len(energies) > 1 else "At rest from the beginning"
    return Figure(title, "flips", "energy", marks)


def python(state: State, names: list[str], cue: Tensor) -> str:
    """The same in Python, from the pictures themselves."""
    memories = [packed(memory) for memory in collection(state.set)[1][: state.count]]
    memories += [text for text in state.own.split("-") if text]
    units = len(cue)
    return (
        "import torch\nfrom lemmata.connectionism import HopfieldNetwork\n\n"
        f"def picture(text):\n    return [2 * int(bit) - 1 for bit in f'{{int(text, 16):0{units}b}}']\n\n"
        f"memories = torch.tensor([picture(text) for text in {memories}])  # {', '.join(names)}\n"
        f"spoilt = torch.tensor([picture('{packed(cue)}')])\n"
        f"network = HopfieldNetwork.from_patterns(memories, rule='{state.rule}')\n"
        f"recall = network.recall(spoilt, generator=torch.Generator().manual_seed({state.seed}), trace=True)\n"
        "print(recall, recall.energies)"
    )
