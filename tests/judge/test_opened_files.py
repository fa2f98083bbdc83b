"""Data that a claim reads belongs to its verdict: what changed since is judged again, on the disk and in the ledger."""

import json
import os
import shutil
import sqlite3

import numpy
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lemmata import catalog
from lemmata.catalog.selection import select
from lemmata.judge.engine import ProcessEngine
from lemmata.judge.ledger import Ledger
from lemmata.judge.opened_files import ABSENT, UNSTEADY
from lemmata.judge.session import judge_all

CLAIM = """
{imports}
from pathlib import Path

from lemmata.judge import claim, close, lie

HERE = Path(__file__).parent
{top}

@claim("{name}")
@lie("twice as much", factor=2.0)
def {function}(draw, factor=1.0):
    {body}
    return close(value, 3.0 * factor)
"""


class Notes:
    """A folder with one claim on a value, judged by real workers, and the ledger that remembers it."""

    def __init__(self, folder):
        self.folder, self.ledger = folder, Ledger(folder.parent / "ledger")
        folder.mkdir()

    def write(self, body, imports="", top="", name="mine.data", more=False):
        text = CLAIM.format(body=body, imports=imports, top=top, name=name, function=name.replace(".", "_"))
        with (self.folder / "mine.py").open("a" if more else "w") as file:
            file.write(text)

    def check(self, folder=None):
        """The verdict on the only claim, and whether it was remembered."""
        (found,) = self.check_all(folder)
        return found

    def check_all(self, folder=None):
        engine = ProcessEngine(1)
        try:
            claims = select(catalog.load(), [str(folder or self.folder)]).claims.values()
            return [(result.verdict, known) for result, known in judge_all([*claims], engine, self.ledger)]
        finally:
            engine.stop()

    def files(self):
        (entry,) = (json.loads(path.read_text()) for path in self.ledger.folder.rglob("*.json"))
        return entry["files"]


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path / "notes")


def as_text(path, value):
    path.write_text(str(value))


def as_array(path, value):
    with path.open("wb") as file:
        numpy.save(file, numpy.array(float(value)))


def as_tensor(path, value):
    save_file({"value": torch.tensor(float(value), dtype=torch.float64)}, path)


def as_picture(path, value):
    Image.new("L", (1, 1), value).save(path, "PNG")


def as_table(path, value):
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as table:
        table.execute("create table t (value)")
        table.execute("insert into t values (?)", (value,))


READERS = {
    "open": (as_text, "value = float(open(HERE / 'v').read())", ""),
    "pathlib": (as_text, "value = float((HERE / 'v').read_text())", ""),
    "os": (as_text, "value = float(os.read(os.open(HERE / 'v', os.O_RDONLY), 9))", "import os"),
    "yaml": (as_text, "value = float(yaml.safe_load(open(HERE / 'v')))", "import yaml"),
    "numpy": (as_array, "value = float(numpy.load(HERE / 'v'))", "import numpy"),
    "safetensors": (as_tensor, "value = load_file(HERE / 'v')['value']", "from safetensors.torch import load_file"),
    "pictures": (as_picture, "value = float(Image.open(HERE / 'v').getpixel((0, 0)))", "from PIL import Image"),
    "sqlite": (
        as_table,
        "value = float(sqlite3.connect(HERE / 'v').execute('select * from t').fetchone()[0])",
        "import sqlite3",
    ),
}


def test_a_changed_file_is_judged_again(notes):
    """However it is read; all in one file, since every worker imports torch."""
    for number, (put, body, imports) in enumerate(READERS.values()):
        notes.write(body.replace("'v'", f"'v{number}'"), imports, name=f"mine.data{number}", more=True)
        put(notes.folder / f"v{number}", 3)
    everything = len(READERS)
    assert notes.check_all() == [("holds", False)] * everything
    assert notes.check_all() == [("holds", True)] * everything
    for number, (put, *_) in enumerate(READERS.values()):
        put(notes.folder / f"v{number}", 4)
    assert notes.check_all() == [("refuted", False)] * everything
    assert notes.check_all() == [("refuted", True)] * everything


def test_what_is_read_on_import_counts_and_so_does_what_was_looked_for(notes):
    notes.write(
        "value = VALUE", top="VALUE = 3.0\ntry:\n    VALUE = float((HERE / 'v').read_text())\nexcept OSError:\n    pass"
    )
    assert notes.check() == ("holds", False)
    assert notes.files() == {str(notes.folder / "v"): ABSENT}
    assert notes.check() == ("holds", True)
    as_text(notes.folder / "v", 4)
    assert notes.check() == ("refuted", False), "a file has appeared"
    (notes.folder / "v").unlink()
    assert notes.check() == ("holds", False), "and is gone again"


def test_the_names_in_a_folder_count_where_they_are_listed(notes):
    notes.write("value = float(len(list((HERE / 'data').glob('*.txt'))))")
    (notes.folder / "data").mkdir()
    for name in "abc":
        as_text(notes.folder / "data" / f"{name}.txt", 0)
    assert notes.check() == ("holds", False)
    assert notes.check() == ("holds", True)
    as_text(notes.folder / "data" / "d.txt", 0)
    assert notes.check() == ("refuted", False)


def test_a_relative_path_leads_from_the_current_folder(notes, tmp_path, monkeypatch):
    notes.write("value = float(open('v.txt').read())")
    for name, value in (("one", 3), ("two", 4)):
        (tmp_path / name).mkdir()
        as_text(tmp_path / name / "v.txt", value)
    monkeypatch.chdir(tmp_path / "one")
    assert notes.check() == ("holds", False)
    assert notes.check() == ("holds", True)
    monkeypatch.chdir(tmp_path / "two")
    assert notes.check() == ("refuted", False)


def test_a_copy_of_the_folder_has_data_of_its_own(notes, tmp_path):
    notes.write("value = float((HERE / 'v').read_text())")
    as_text(notes.folder / "v", 3)
    assert notes.check() == ("holds", False)
    copy = shutil.copytree(notes.folder, tmp_path / "copy")
    as_text(copy / "v", 4)
    assert notes.check(copy) == ("refuted", False)


def test_what_a_claim_writes_itself_and_what_is_pythons_does_not_count(notes):
    notes.write(
        "with tempfile.TemporaryDirectory() as folder:\n"
        "        (Path(folder) / 'a').write_text('3'), (HERE / 'own').write_text('3')\n"
        "        value = sum(float(file.read_text()) for file in Path(folder).iterdir())\n"
        "    value = value + float((HERE / 'own').read_text()) - float(len(Path(os.__file__).read_bytes()) > 0) * 3\n"
        "    open('/proc/self/stat').close()",
        "import os, tempfile, mailbox",
    )
    assert notes.check() == ("holds", False)
    assert notes.files() == {}
    assert notes.check() == ("holds", True)


def test_a_file_that_changes_while_it_is_judged_is_not_remembered(notes):
    notes.write("value = 3 + 0 * float(open(HERE / 'v').read()); os.utime(HERE / 'v', (0, 0))", "import os")
    as_text(notes.folder / "v", 0)
    assert notes.check() == ("holds", False)
    assert notes.ledger.messages == [
        f"the verdict on mine.data is not remembered, since {notes.folder / 'v'} {UNSTEADY}"
    ]
    assert notes.ledger.size()[0] == 0


def test_a_training_that_reads_data_is_not_kept_for_other_data(notes):
    notes.write(
        "value = float(draw.trained(build, teach).weight)",
        "import torch",
        "def build():\n    return torch.nn.Linear(1, 1, bias=False)\n\n"
        "def teach(module, generator):\n    module.weight.data.fill_(float((HERE / 'v').read_text()))",
    )
    as_text(notes.folder / "v", 3)
    for file in notes.folder.iterdir():
        os.utime(file, (0, 0))
    assert notes.check() == ("holds", False)
    as_text(notes.folder / "v", 4)
    assert notes.check() == ("refuted", False)
