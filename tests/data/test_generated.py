"""What every generated data set keeps: the seed decides all, parts are independent, bad arguments are refused."""

import pytest
import torch

from lemmata.data import entries, load

GENERATED = [name for name, entry in entries().items() if entry.origin == "generated"]
SIZED = [name for name in GENERATED if name != "blocks"]


def columns(data):
    kept = {f"{part}.{name}": column for part in data.parts for name, column in data.parts[part].columns.items()}
    extra = {name: value for name, value in data.extra.items() if isinstance(value, torch.Tensor)}
    graph = {name: value for name, value in vars(data).items() if isinstance(value, torch.Tensor)}
    return kept | extra | graph


def same(first, second):
    first, second = columns(first), columns(second)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", GENERATED)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name):
    torch.manual_seed(1)
    first = load(name, seed=7)
    torch.manual_seed(2)
    assert same(first, load(name, seed=7))
    assert not same(first, load(name, seed=8))


@pytest.mark.parametrize("name", GENERATED)
def test_global_random_numbers_are_left_alone(name):
    before = torch.get_rng_state()
    load(name)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", SIZED)
def test_parts_have_the_sizes_asked_for_and_more_tests_change_no_training(name):
    few, many = load(name, n=40, test=10), load(name, n=40, test=30)
    assert (len(few.train), len(few.test), len(many.test)) == (40, 10, 30)
    for name, column in few.train.columns.items():
        assert torch.equal(column, many.train.columns[name])
    assert not torch.equal(next(iter(few.test)), next(iter(few.train))[:10])


@pytest.mark.parametrize("name", GENERATED)
def test_columns_are_float32_or_int64_and_finite(name):
    for part in load(name).parts.values():
        for column in part:
            assert column.dtype in (torch.float32, torch.int64)
            assert column.isfinite().all()


@pytest.mark.parametrize("name", ["moons", "rings", "spirals", "xor", "separable"])
def test_classes_are_balanced(name):
    data = load(name, n=102, test=50)
    for part in data.parts.values():
        counts = part.y.bincount(minlength=len(data.classes))
        assert counts.max() - counts.min() <= (2 if name == "xor" else 1)


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize(("option", "value"), [("n", 0), ("n", 2.5), ("n", True), ("seed", -1), ("seed", "x")])
def test_bad_sizes_and_seeds_are_refused(name, option, value):
    told = f">= .*, got {value}" if type(value) is int else f"an integer, got {type(value).__name__}"
    with pytest.raises((ValueError, TypeError), match=f"^{option} must be {told}$"):
        load(name, **{option: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("moons noise=-0.1", "noise must be >= 0, got -0.1"),
        ("moons noise=nan", "noise must be finite, got nan"),
        ("moons noise=a", "noise must be a number, got str"),
        ("moons test=0", "test must be >= 1, got 0"),
        ("rings classes=0", "classes must be >= 1, got 0"),
        ("spirals arms=0", "arms must be >= 1, got 0"),
        ("spirals turns=-1", "turns must be >= 0, got -1"),
        ("xor noise=inf", "noise must be finite, got inf"),
        ("parity bits=21", "bits must be <= 20, got 21"),
        ("parity bits=0", "bits must be >= 1, got 0"),
        ("parity test=5", "n must be given with test, got test=5 alone: without both, all strings are listed"),
        ("mixture components=0", "components must be >= 1, got 0"),
        ("mixture features=0", "features must be >= 1, got 0"),
        ("mixture separation=-1", "separation must be >= 0, got -1"),
        ("separable margin=0", "margin must be > 0 and <= 1, got 0"),
        ("separable margin=1.5", "margin must be > 0 and <= 1, got 1.5"),
        ("separable radius=0", "radius must be > 0, got 0"),
        ("separable n=2", "n must be >= 3, got 2"),
        ("sinusoids shots=0", "shots must be >= 1, got 0"),
        ("sinusoids queries=0", "queries must be >= 1, got 0"),
        ("blocks inside=1.5", "inside must be in [0, 1], got 1.5"),
        ("blocks between=-1", "between must be in [0, 1], got -1"),
        ("blocks blocks=0", "blocks must be >= 1, got 0"),
        ("blocks n=6", "n must be >= 8, got 6"),
        ("blocks labels=100", "labels must be <= 99, got 100"),
        ("blocks signal=-1", "signal must be >= 0, got -1"),
        ("teacher hidden=0", "hidden must be >= 1, got 0"),
        ("teacher classes=1", "outputs must be >= 2, got 1"),
        ("teacher noise=-1", "noise must be >= 0, got -1"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, message):
    name, option, value = call.replace("=", " ").split()
    known = {"nan": float("nan"), "inf": float("inf"), "a": "a"}
    number = known[value] if value in known else float(value) if "." in value else int(value)
    with pytest.raises((ValueError, TypeError)) as refusal:
        load(name, **{option: number})
    assert str(refusal.value) == message
