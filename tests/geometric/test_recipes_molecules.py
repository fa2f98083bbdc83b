"""Training on molecules: a small file in MUTAG's format, kept by --from, trained on from the command line.

In the file, chains and rings have the same atoms: only the bonds tell them apart.
"""

import dataclasses
import hashlib
import re
import zipfile

import pytest
import torch

from lemmata.data import fetched_graphs
from lemmata.data.examples import Examples
from lemmata.data.fetched import Content
from lemmata.geometric import Graph, batch_graphs
from lemmata.geometric.recipes_molecules import CONFIGS, LEARNING, baselines, classify_molecules, molecules
from lemmata.lab.cli import main
from lemmata.train import run_experiment

ON_CPU = dataclasses.replace(LEARNING, device="cpu", epochs=30)


def tables():
    """Sixty molecules of 4 to 9 atoms, each as a chain and as a ring, as the five tables of the collection."""
    bonds, atoms, indicator, labels = [], [], [], []
    for number in range(60):
        size, ring, start = 4 + number // 2 % 6, number % 2, len(atoms) + 1
        atoms += [(number // 2 + k) % 7 for k in range(size)]
        indicator += [number + 1] * size
        labels.append(1 if ring else -1)
        for k in range(size if ring else size - 1):
            one, other = start + k, start + (k + 1) % size
            bonds += [f"{one}, {other}", f"{other}, {one}"]
    columns = {"A": bonds, "edge_labels": [0] * len(bonds), "graph_indicator": indicator}
    columns |= {"graph_labels": labels, "node_labels": atoms}
    return {f"MUTAG_{name}.txt": "".join(f"{row}\n" for row in rows) for name, rows in columns.items()}


@pytest.fixture
def archive(monkeypatch, tmp_path):
    path = tmp_path / "MUTAG.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, text in tables().items():
            file.writestr(f"MUTAG/{name}", text)
    pins = tuple(Content(name, len(t), hashlib.sha256(t.encode()).hexdigest()) for name, t in tables().items())
    monkeypatch.setattr(fetched_graphs, "CONTENTS", pins)
    forms = tuple(fetched_graphs._folder_files(folder) for folder in fetched_graphs.FOLDERS)
    tiny = dataclasses.replace(fetched_graphs.SOURCES["mutag"], forms=forms)
    monkeypatch.setitem(fetched_graphs.SOURCES, "mutag", tiny)
    return path


@pytest.fixture
def kept(archive):
    assert main(["data", "mutag", "--from", str(archive)]) == 0


def test_the_command_line_reads_trains_and_predicts(capsys, archive, tmp_path):
    words = ["train", "gin", "--data", "mutag", "--out", str(tmp_path / "run"), "--epochs", "30", "--device", "cpu"]
    assert main(words) == 2
    assert "the data set mutag is not here yet: `lemmata data mutag --from FILE`" in capsys.readouterr().err
    assert main(["data", "mutag", "--from", str(archive)]) == 0
    assert main(words) == 0
    said = capsys.readouterr().out
    blind = re.search(
        r"for comparison: the larger class ([\d.]+) %; a linear model of the atoms' numbers ([\d.]+) %", said
    )
    assert max(map(float, blind.groups())) < 70  # of 12 molecules
    assert float(re.search(r"accuracy ([\d.]+) %  loss \S+  on the test", said)[1]) > 90
    assert main(["predict", str(tmp_path / "run")]) == 0
    assert "on 12 examples (mutag, test)" in capsys.readouterr().out


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("system", CONFIGS)
def test_a_few_steps_can_be_run_scored_and_shown(system):
    experiment = classify_molecules("mutag", CONFIGS[system], dataclasses.replace(ON_CPU, epochs=1), system)
    run = run_experiment(experiment)
    rebuilt = type(experiment.system)(**experiment.arguments)
    rebuilt.load_state_dict(run.system.state_dict())
    said = experiment.predict(rebuilt.eval(), experiment.test)
    assert set(said["class"].tolist()) <= {0, 1}
    assert ((said["probability"] >= 0.5) & (said["probability"] <= 1)).all()
    chains, rings = experiment.picture(rebuilt).marks
    assert (chains.label, rings.label) == ("not mutagenic", "mutagenic")
    assert len(chains.x) == len(rings.y) == 6


def test_padding_is_no_atom():
    x, bonds = torch.zeros(3, 4, 2), torch.zeros(3, 4, 4, dtype=torch.int64)
    x[0, :2, 0] = x[1, :4, 1] = x[2, :1, 0] = 1
    bonds[0, 0, 1] = bonds[0, 1, 0] = 2
    bonds[1, 0, 3] = bonds[1, 3, 0] = 1
    single = [Graph([[0, 1], [1, 0]], 2), Graph([[0, 3], [3, 0]], 4), Graph([], 1)]
    found, wanted = molecules(x, bonds), batch_graphs(single)
    assert torch.equal(found.edges, wanted.edges)
    assert torch.equal(found.graph_of, wanted.graph_of)
    assert (found.nodes, found.graphs) == (7, 3)
    assert found.x.argmax(1).tolist() == [0, 0, 1, 1, 1, 1, 0]


def test_those_without_bonds_are_scored_by_hand():
    # Class 1 has more of the first kind; the third kind never occurs.
    x = torch.zeros(4, 3, 3)
    x[0, :3, 0] = x[1, :1, 1] = x[2, :2, 0] = x[3, :2, 1] = 1
    train = Examples(x=x, y=torch.tensor([1, 0, 1, 0]))
    test = Examples(x=x[[0, 3, 1]], y=torch.tensor([1, 0, 1]))
    found = baselines(Examples(x=x[:3], y=train.y[:3]), test)
    assert found["the larger class"] == pytest.approx(2 / 3)
    assert baselines(train, test)["a linear model of the atoms' numbers"] == pytest.approx(2 / 3)
