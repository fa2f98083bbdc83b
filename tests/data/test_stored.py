"""The embedded files: as published, with their licences, and honest when they are damaged or gone."""

import hashlib
import shutil

import pytest

from lemmata.data import entries, load, stored

USES = {"debian": "debian_graph.npz", "shakespeare": "shakespeare.txt.gz", "verses": "verses_en_de.tsv.gz"}
USES["plays_or_verses"] = "shakespeare.txt.gz"
EMBEDDED = [name for name, entry in entries().items() if entry.origin == "embedded"]


def test_every_embedded_file_has_its_digest_and_every_digest_its_file():
    files = {path.name: path.read_bytes() for path in stored.FOLDER.iterdir() if path.suffix in (".npz", ".gz")}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == stored.DIGESTS


def test_licences_and_credits_travel_with_the_files():
    licences = (stored.FOLDER / "LICENCES.md").read_text(encoding="utf-8")
    assert not [file for file in stored.DIGESTS if f"| {file} |" not in licences]
    credits = (stored.FOLDER / "FURNITURE_CREDITS.md").read_text(encoding="utf-8")
    models = [*load("furniture").extra["train"], *load("furniture").extra["test"]]
    assert not [model for model in models if model.author not in credits]


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_damaged_or_missing_file_is_named_with_the_fix(name, tmp_path, monkeypatch):
    file = USES.get(name, f"{name}.npz")
    shutil.copytree(stored.FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    load(name)
    content = bytearray((tmp_path / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=f"^the embedded file {file} is damaged: install lemmata again$"):
        load(name)
    (tmp_path / file).unlink()
    with pytest.raises(ValueError, match=f"^the embedded file {file} is missing: install lemmata again$"):
        load(name)


def test_a_file_that_cannot_be_read_says_why(tmp_path, monkeypatch):
    (tmp_path / "digits.npz").mkdir()
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"digits.npz is unreadable \(Is a directory\): install lemmata again"):
        load("digits")
