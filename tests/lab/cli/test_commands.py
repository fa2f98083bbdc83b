"""Every command in-process: contracts, exit codes, messages. Nothing here starts a worker."""

import importlib
import json
import os
import re
import subprocess
import sys

import pytest

from lemmata import catalog as catalogs
from lemmata.catalog.search import search
from lemmata.lab.cli import COMMANDS, main

CHAPTER = "connectionism"


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    try:
        code = main(list(words))
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_names_every_command(capsys):
    for words in ([], ["--help"], ["-h"]):
        code, out, _ = call(capsys, *words)
        assert code == 0
        assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys, command):
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    assert f"lemmata {command}" in out


def imports(words, *modules):
    """Which of these modules a command imports."""
    code = f"import sys; from lemmata.lab.cli import main; main({words!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(modules) & set(done.stderr.split())


@pytest.mark.parametrize("words", [["claims"], ["systems"], ["errata"], ["source", "003"], ["claims", "--json"]])
def test_listings_import_no_torch(words):
    assert not imports(words, "torch", "numpy", "scipy")


def test_top_level_help_imports_nothing_heavy():
    assert not imports(["--help"], "torch", "rich", "tyro", "yaml")


def test_an_unknown_command_names_the_nearest(capsys):
    code, out, err = call(capsys, "chekc")
    assert (code, out) == (2, "")
    assert "did you mean check?" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--jbos", "3"], "did you mean --jobs?"),
        (["check", "--jobs", "many"], "--jobs takes a number, got 'many'"),
        (["check", "--engine", "spark"], "invalid choice 'spark'"),
        (["check", "--jobs"], "missing value"),
        (["check", "--seeds", "0"], "--seeds >= 1"),
        (["check", "--seed", "-1"], "--seed, --budget and --slowest must be >= 0"),
        (["check", "--truths", "--sharp"], "--sharp measures lies, and --truths leaves them out"),
        (["check", "--jobs", "-1"], "must be >= 0"),
        (["check", "--address", "auto", "cover.count"], "--address needs --engine ray"),
        (["show"], "which claim? give its id"),
        (["show", "perceptron.novikof"], "show one of perceptron.novikoff, perceptron.novikoff_bias"),
        (["show", "perceptron"], "show one of perceptron.unit"),
        (["show", "forget", "gate"], "'forget gate' is in"),
        (["show", "zzzz"], "no statement has the id or words 'zzzz'"),
        (["claims", "novikofs"], "no statement has the id or word 'novikofs': did you mean novikoff"),
        (["systems", "residul"], "no system is called or speaks of 'residul'"),
        (["doctor", "\x1b[2J\x07"], "\\x1b[2J\\x07"),
        (["source", "009"], "unknown source '009'"),
    ],
)
def test_bad_use_is_one_line_that_names_the_fix(capsys, words, said):
    code, out, err = call(capsys, *words)
    assert code == 2
    assert out == ""
    assert said.lower() in err.lower()
    assert err.startswith("lemmata: ")
    assert err.count("\n") == 1
    assert not set("╭╰│") & set(err)


@pytest.mark.parametrize("command", ["claims", "errata"])
def test_unknown_ids_are_named_and_the_known_ones_still_listed(capsys, command):
    code, out, err = call(capsys, command, "hopfeild", "cover.theorem", "--json")
    assert code == 2
    assert "no statement has the id or word 'hopfeild': did you mean hopfield" in err
    assert {entry["id"] for entry in json.loads(out)} == {"cover.theorem"}


def test_claims_json_is_the_contract(capsys):
    _, out, _ = call(capsys, "claims", CHAPTER, "--json")
    entries = json.loads(out)
    stated = catalogs.load().statements.values()
    assert len(entries) == sum(statement.chapter == CHAPTER for statement in stated) >= 42
    for entry in entries:
        keys = ["id", "kind", "chapter", "room", "title", "statement", "cost", "sources", "lies", "verdict"]
        assert list(entry) == keys
        assert entry["verdict"] == "not judged"  # the ledger of a test is empty
        assert entry["lies"], f"{entry['id']} has no lie"
        assert all(list(lie) == ["text", "printed"] for lie in entry["lies"])


def test_errata_json_is_the_contract_and_every_misprint_is_settled(capsys):
    _, out, _ = call(capsys, "errata", CHAPTER, "--json")
    entries = json.loads(out)
    assert len(entries) == 31
    for entry in entries:
        assert list(entry) == ["id", "source", "number", "printed", "problem", "correct", "settled"]
        assert entry["settled"] in ("refuted", "convention", "imprecise", "notation", "extraction"), entry


def test_systems_json_is_the_contract(capsys):
    _, out, _ = call(capsys, "systems", "--json")
    for entry in json.loads(out):
        assert list(entry) == ["id", "chapter", "room", "title", "kind", "import", "data", "trains"]


def test_the_import_of_every_system_works(capsys):
    """What the listing says to type, typed: all of them in one process."""
    entries = json.loads(call(capsys, "systems", "--json")[1])
    for entry in entries:
        words = entry["import"].split()
        assert words[::2] == ["from", "import"]
        assert getattr(importlib.import_module(words[1]), words[3]), entry


@pytest.mark.parametrize(
    ("command", "words", "found"),
    [
        ("systems", ["residual", "network"], "resnet"),
        ("systems", ["message", "passing"], "message_passing"),
        ("systems", ["kipf"], "gcn_convolution"),
        ("claims", ["Hochreiter"], "rnn.lstm"),
        ("claims", ["chain", "rule", "matrix"], "matcalc.chain_numerator"),
        ("claims", ["kullback", "leibler", "gauss"], "gaussian.kl"),
        ("claims", ["what", "does", "dropout", "do"], "reg.dropout"),
        ("claims", ["batch", "normalization"], "norm.batch"),
        ("claims", ["novikov"], "perceptron.novikoff"),
        ("claims", [r"\lfloor"], "perceptron.novikoff"),
        ("claims", ["tr(AB)"], "linalg.trace_cyclic"),  # which speaks of three factors
    ],
)
def test_words_authors_and_formulas_are_found(capsys, command, words, found):
    code, out, _ = call(capsys, command, *words, "--json")
    assert code == 0
    assert found in [entry["id"] for entry in json.loads(out)]


def test_a_search_has_titles_first():
    """`adam` is in the name of Hadamard's product too."""
    assert search(catalogs.load(), "adam")[0] == "optim.adam"


def test_an_id_is_found_by_its_last_word_and_leads_to_the_code(capsys):
    code, out, err = call(capsys, "show", "lstm", "--json")
    assert (code, json.loads(out)["id"]) == (0, "rnn.lstm"), err


def test_a_source_is_found_by_its_number_alone(capsys):
    assert call(capsys, "source", "3", "--json") == call(capsys, "source", "003", "--json")


@pytest.mark.parametrize("command", ["claims", "systems"])
def test_listings_stand_by_the_rooms_of_a_chapter(capsys, command):
    """A heading for each, and under it what a list of that room alone has."""
    code, out, _ = call(capsys, command, "foundations", CHAPTER)
    headings = re.findall(r"(?m)^foundations (\w+)", out)
    entries = catalogs.load().statements if command == "claims" else catalogs.load().systems
    rooms = dict.fromkeys(entry.room for entry in entries.values() if entry.chapter == "foundations")
    assert (code, headings) == (0, list(rooms))
    assert re.search(rf"(?m)^{CHAPTER}\s*$", out)
    for room, part in zip(rooms, re.split(r"(?m)^foundations \w+", out)[1:], strict=True):
        alone = json.loads(call(capsys, command, room, "--json")[1])
        listed = [entry["id"] for entry in alone if entry["room"] == room]
        assert listed
        assert all(id in part for id in listed)
        assert [id for id, entry in entries.items() if entry.room == room] == listed


@pytest.mark.parametrize("command", ["check", "claims", "systems", "errata", "report"])
def test_help_says_that_rooms_can_be_named(capsys, command):
    assert "rooms" in call(capsys, command, "--help")[1]


def test_the_catalog_has_no_problem():
    assert catalogs.load().problems == []


@pytest.mark.parametrize("command", ["claims", "errata", "systems", "doctor"])
def test_listings_read_well_off_a_terminal(capsys, command):
    code, out, _ = call(capsys, command)
    assert code == 0
    assert "\x1b" not in out
    assert "\\" not in out


def test_a_source_lists_its_statements_in_its_own_order(capsys):
    _, out, _ = call(capsys, "source", "003", "--json")
    places = [row["where"] for row in json.loads(out)]
    numbers = [re.match(r"\d+(\.\d+)*", place) for place in places]  # what has none stands in front
    numbered = [tuple(map(int, number[0].split("."))) for number in numbers if number]
    assert numbered == sorted(numbered)


def test_source_alone_lists_the_sources(capsys):
    code, out, _ = call(capsys, "source")
    assert code == 0
    assert all(key in out for key in ("000", "001", "002", "003", "004"))


def test_a_fault_of_ours_is_one_line_unless_debugged(capsys, monkeypatch):
    monkeypatch.setattr("lemmata.catalog.load", lambda: 1 / 0)
    code, _, err = call(capsys, "claims")
    assert code == 1
    assert "fault of lemmata itself: ZeroDivisionError" in err
    with pytest.raises(ZeroDivisionError):
        main(["claims", "--debug"])


def test_a_closed_pipe_is_no_error():
    reader = subprocess.Popen(
        [sys.executable, "-m", "lemmata", "claims", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert reader.stdout is not None
    reader.stdout.close()
    _, err = reader.communicate()
    assert b"Traceback" not in err
    assert b"Broken" not in err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [["errata"], ["claims"], ["source", "003"], ["systems"]], ids=" ".join)
def test_every_terminal_gets_what_it_can_show(encoding, words):
    environment = {"PYTHONIOENCODING": encoding, "PATH": "", "LEMMATA_CACHE": os.environ["LEMMATA_CACHE"]}
    done = subprocess.run([sys.executable, "-m", "lemmata", *words], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    done.stdout.decode(encoding)
