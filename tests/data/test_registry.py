"""The registry: what it lists without importing anything, and what it says to names and options it does not know."""

import dataclasses
import re
import subprocess
import sys

import pytest

from lemmata.data import entries, load
from lemmata.data.registry import read_entries

HERE = [name for name, entry in entries().items() if entry.origin != "fetched"]

LOADER = '''
from lemmata.data.registry import dataset

@dataset(
    "toy", title="Toy", task="graph", origin="{origin}", size="1", shape="1", licence="none", credit="me", splits="all"
)
def {name}(n: int = 3, *, seed=0):
    """A toy
    in two lines.

    More."""
'''


def test_the_embedded_and_generated_sets_are_all_there():
    embedded = "breast_cancer diabetes digits fashion shakespeare verses karate debian glyphs furniture speech photos"
    embedded += " plays_or_verses"
    generated = "moons rings spirals xor parity mixture separable sinusoids blocks teacher adding echo"
    generated += " facts homographs negation"
    assert {name for name in HERE if entries()[name].origin == "embedded"} == set(embedded.split())
    assert {name for name in HERE if entries()[name].origin == "generated"} == set(generated.split())


def test_listing_imports_no_torch_and_no_numpy():
    code = "import sys; from lemmata.data import entries; entries(); print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", entries())
def test_every_entry_says_all_there_is_to_say(name):
    entry = entries()[name]
    words = {key: value for key, value in dataclasses.asdict(entry).items() if key != "options"}
    assert all(isinstance(word, str) and word for word in words.values()), words
    assert re.fullmatch("[a-z0-9_-]+", name)


@pytest.mark.parametrize("name", HERE)
def test_what_an_entry_says_about_its_size_is_true(name):
    data, entry = load(name), entries()[name]
    assert data.name == name
    assert ", ".join(data.parts) == entry.splits
    if entry.task == "graph":
        assert entry.size.startswith(f"{len(data.y):,} nodes")
    else:
        assert " + ".join(f"{len(part):,}" for part in data.parts.values()) == entry.size


@pytest.mark.parametrize("name", HERE)
def test_writing_into_one_copy_leaves_the_next_untouched(name):
    first = load(name)
    before = {part: examples[:].to("cpu") for part, examples in load(name).parts.items()}
    for examples in first.parts.values():
        for column in examples:
            column.zero_()
    for part, examples in load(name).parts.items():
        for column, kept in zip(examples, before[part], strict=True):
            assert column.equal(kept)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"^unknown data set 'digit': did you mean digits\?$"):
        load("digit")
    with pytest.raises(ValueError, match=r"^unknown data set 'zzz': known are .*moons"):
        load("zzz")
    with pytest.raises(ValueError, match="unknown data set 7: known are"):
        load(7)


def test_unknown_options_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"^moons has no option 'nois': it takes n, test, noise, seed$"):
        load("moons", nois=1)
    with pytest.raises(ValueError, match=r"^digits has no option 'noise': it takes none$"):
        load("digits", noise=1)


def test_options_are_listed_with_their_defaults():
    assert entries()["moons"].options == {"n": "1000", "test": "1000", "noise": "0.1", "seed": "0"}
    assert entries()["digits"].options == {}


def test_a_loader_is_read_from_its_file(tmp_path):
    (tmp_path / "toys.py").write_text(LOADER.format(origin="embedded", name="toy"))
    (entry,) = read_entries(tmp_path).values()
    assert (entry.name, entry.module, entry.function) == ("toy", "lemmata.data.toys", "toy")
    assert (entry.sentence, entry.options) == ("A toy in two lines.", {"n": "3", "seed": "0"})


def test_two_sets_of_one_name_are_an_error(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(LOADER.format(origin="embedded", name=name))
    with pytest.raises(ValueError, match=r"called 'toy', lemmata\.data\.first\.first and .*: rename one$"):
        read_entries(tmp_path)


def test_an_unknown_origin_is_an_error(tmp_path):
    (tmp_path / "toys.py").write_text(LOADER.format(origin="found", name="toy"))
    with pytest.raises(ValueError, match="origin of toy must be one of embedded, generated, fetched, got 'found'"):
        read_entries(tmp_path)
