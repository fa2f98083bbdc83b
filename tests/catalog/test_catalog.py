"""What the package holds is found without importing it, and every fault is told with its place and its remedy."""

import pytest

from lemmata.catalog import load
from lemmata.catalog.selection import matching

STATEMENT = """
- id: neuron.counts
  kind: theorem
  title: How many functions
  statement: Ten of sixteen.
  cost: instant
  sources:
    - source: '000'
      where: '1.1'
  errata:
    - number: 1
      source: '000'
      printed: eleven
      problem: one too many
      correct: ten
    - number: 2
      source: '003'
      printed: $n$
      problem: another letter
      correct: $m$
      notation: only a name
- id: neuron.open
  kind: definition
  title: Not yet checked
  statement: A neuron.
  cost: long
"""

CLAIM = '''
from lemmata.judge import claim, exactly, lie

@claim("neuron.counts")
@lie("eleven", printed="000/1", number=11)
@lie("cannot be", raises=ValueError, shape=(3, 2))
def ten_of_sixteen(draw, number=10, *, shape=(2, 2)):
    """Counts all
    sixteen.

    Then more.
    """
'''

SYSTEM = '''
from lemmata.marks import system

__all__ = ["Neuron"]

@system("neuron", title="Neuron", kind="module", example="Neuron()(1)")
class Neuron:
    r"""A neuron.

    $$ f(x) = 1 $$

    Claims: neuron.counts,
        neuron.open
    Source: somebody.
    """
'''

RECIPE = """
from lemmata.marks import recipe

@recipe("neuron", data="digits", metric="accuracy")
def train_neuron():
    pass
"""


@pytest.fixture
def package(tmp_path):
    """A package with one chapter; each file can be replaced, or more added."""

    def make(statements=STATEMENT, claims=CLAIM, system=SYSTEM, recipe=RECIPE, **more):
        files = {
            "connectionism/statements.yaml": statements,
            "connectionism/claims/subject.py": claims,
            "connectionism/neuron.py": system,
            "connectionism/recipes.py": recipe,
        }
        for name, text in (files | more).items():
            path = tmp_path / "house" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.lstrip("\n").encode())
        load.cache_clear()
        found = load(tmp_path / "house")
        chapter = f"{tmp_path / 'house' / 'connectionism'}/"
        assert all(problem.startswith(str(tmp_path)) for problem in found.problems), "every fault has its place"
        return found, [problem.replace(chapter, "") for problem in found.problems]

    yield make
    load.cache_clear()


def test_a_sound_package_is_read_whole(package):
    found, problems = package()
    assert problems == []
    statement = found.statements["neuron.counts"]
    assert (statement.chapter, statement.cost, statement.line) == ("connectionism", "instant", 1)
    assert statement.sources == ({"source": "000", "where": "1.1"},)
    claim = found.claims["neuron.counts"]
    assert (claim.module, claim.function) == ("house.connectionism.claims.subject", "ten_of_sixteen")
    assert (claim.sentence, claim.line, claim.cost) == ("Counts all sixteen.", 6, "instant")
    number, shape = claim.lies
    assert (number.text, number.printed, number.argument, number.value, number.truth) == (
        "eleven", "000/1", "number", "11", "10",
    )  # fmt: skip
    assert (shape.raises, shape.value, shape.truth) == ("ValueError", "(3, 2)", "(2, 2)")
    system = found.systems["neuron"]
    assert (system.name, system.sentence, system.example) == ("Neuron", "A neuron.", "Neuron()(1)")
    assert system.claims == ("neuron.counts", "neuron.open")
    assert [(recipe.system, recipe.data, recipe.metric) for recipe in found.recipes] == [
        ("neuron", "digits", "accuracy")
    ]


def test_a_statement_without_a_claim_is_open(package):
    found, problems = package()
    assert found.open == ["neuron.open"]
    assert problems == []


def test_errata_are_settled_by_a_lie_or_by_a_word(package):
    found, _ = package()
    first, second = found.statements["neuron.counts"].errata
    assert found.settled("neuron.counts", first) == "refuted"
    assert found.settled("neuron.counts", second) == "notation"
    found, _ = package(claims=CLAIM.replace('printed="000/1", ', ""))
    assert found.settled("neuron.counts", first) == "open"
    found, _ = package(statements=STATEMENT.replace("notation: only", "extraction: only"))
    assert found.settled("neuron.counts", found.statements["neuron.counts"].errata[1]) == "extraction"


def test_chapters_come_in_the_order_of_the_course(package):
    one = "- {id: %s, kind: theorem, title: t, statement: s, cost: quick}"
    found, problems = package(
        **{
            "vision/statements.yaml": one % "v.v",
            "own/statements.yaml": one % "o.o",
            "optim/statements.yaml": one % "p.p",
        }
    )
    assert problems == []
    assert list(found.statements) == ["neuron.counts", "neuron.open", "p.p", "v.v", "o.o"]


def test_a_chapter_may_have_rooms_with_statements_claims_and_systems_of_their_own(package):
    room = {
        "foundations/__init__.py": "",
        "foundations/probability/statements.yaml": STATEMENT.replace("neuron.", "coin."),
        "foundations/probability/claims/coins.py": CLAIM.replace("neuron.", "coin."),
        "foundations/probability/coin.py": SYSTEM.replace("neuron", "coin"),
        "foundations/linear_algebra/statements.yaml": STATEMENT.replace("neuron.", "matrix."),
    }
    found, problems = package(**room)
    assert problems == []
    assert [id.partition(".")[0] for id in found.statements][::2] == ["matrix", "coin", "neuron"]
    statement, system, claim = found.statements["coin.counts"], found.systems["coin"], found.claims["coin.counts"]
    assert (statement.chapter, statement.room) == (system.chapter, system.room) == ("foundations", "probability")
    assert (claim.module, system.module) == (
        "house.foundations.probability.claims.coins", "house.foundations.probability.coin",
    )  # fmt: skip
    assert matching(found, "probability") == ["coin.counts", "coin.open"]
    assert matching(found, "foundations") == ["matrix.counts", "matrix.open", "coin.counts", "coin.open"]


def test_a_claim_stands_in_the_room_of_its_statement(package):
    elsewhere = {"foundations/probability/statements.yaml": STATEMENT, "foundations/__init__.py": ""}
    _, problems = package(statements="", **elsewhere)
    place = "claims/subject.py:6: claim 'neuron.counts' stands in connectionism"
    assert problems == [f"{place}, its statement elsewhere: move one to the other"]


# --- Faults: what the file says then, and what is told ---

MORE = '\n\n@claim("neuron.open")\n@lie("two", x=2)\ndef opened(draw, x=1):\n    pass\n'
END = STATEMENT.count("\n")  # the line after the last; the first newline is stripped
DEF, CLASS = CLAIM.count("\n") + 4, SYSTEM.count("\n") + 3

BAD = "- {id: neuron.bad, kind: theorem, title: t, statement: s, cost: quick}"
KINDS = "definition, identity, theorem, bound, algorithm, system, empirical"

# One more entry, a sound one but for one change: (old, new, what is told of neuron.bad)
ENTRY_FAULTS = [
    (", title: t, statement: s, cost: quick", ", statement: s", "a statement lacks title, cost"),
    ("title: t", "title: ", "a statement lacks title"),
    (
        "quick}",
        "quick, colour: red}",
        "a statement has the unknown key colour: it may have id kind title statement cost",
    ),
    ("theorem", "lemma", f"kind must be one of {KINDS}, got 'lemma'"),
    ("quick", "cheap", "cost must be one of instant, quick, long, got 'cheap'"),
    ("title: t", "title: 1943", "title must be str, got 1943: quote it"),
    ("quick}", "quick, sources: [{source: 002, where: '1'}]}", "source must be str, got 2: quote it"),
    ("quick}", "quick, sources: '000'}", "sources must be list, got '000'"),
    ("quick}", "quick, errata: [eleven]}", "an erratum must have the keys number, source, printed, problem, correct"),
]


@pytest.mark.parametrize(("old", "new", "problem"), ENTRY_FAULTS)
def test_a_faulty_statement_is_told_and_the_rest_is_read(package, old, new, problem):
    assert BAD.count(old) == 1
    found, problems = package(statements=STATEMENT + BAD.replace(old, new))
    assert len(problems) == 1
    assert problems[0].startswith(f"statements.yaml:{END}: neuron.bad: {problem}")
    assert set(found.statements) == {"neuron.counts", "neuron.open"}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("- {kind: theorem}", "a statement lacks id, title, statement, cost"),
        ("- just words", "a statement must have the keys id, kind, title, statement, cost, got 'just words'"),
        (BAD.replace("neuron.bad", "N B"), "N B: id must be lower-case words joined by dots, got 'N B'"),
        (
            BAD.replace("neuron.bad", "neuron.open"),
            f"duplicate id 'neuron.open', which statements.yaml:{END - 5} has: rename one",
        ),
    ],
)
def test_a_statement_without_a_name_of_its_own_is_told(package, entry, problem):
    found, problems = package(statements=STATEMENT + entry)
    assert problems == [f"statements.yaml:{END}: {problem}"]
    assert found.statements["neuron.open"].title == "Not yet checked"


# A change to the second erratum of neuron.counts: (old, new, what is told)
ERRATUM_FAULTS = [
    ("number: 2", "number: 3", "errata must be numbered 1, 2, ... in order"),
    ("number: 2", "number: '2'", "number must be int, got '2'"),
    ("      problem: another letter\n", "", "an erratum lacks problem"),
    ("notation: only", "notatoin: only", "an erratum has the unknown key notatoin: it may have number source printed"),
]


@pytest.mark.parametrize(("old", "new", "problem"), ERRATUM_FAULTS)
def test_a_faulty_erratum_is_told_and_the_rest_is_read(package, old, new, problem):
    found, problems = package(statements=STATEMENT.replace(old, new))
    assert problems[0].startswith(f"statements.yaml:1: neuron.counts: {problem}")
    assert set(found.statements) == {"neuron.open"}
    assert found.claims
    assert found.systems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- id: ]", "statements.yaml:1: not valid YAML: "),
        ("- id: a\n  kind: b: c", "statements.yaml:2: not valid YAML: "),
        ("id: neuron.counts", "statements.yaml:1: must be a list of statements, each beginning with '- id: ...'"),
        ("7", "statements.yaml:1: must be a list of statements"),
        ("- !!python/object:os.system {}", "statements.yaml:1: not valid YAML: could not determine a constructor"),
        (b"- id: caf\xe9", "statements.yaml:1: not valid YAML: 'utf-8' codec can't decode"),
    ],
)
def test_what_is_no_list_of_statements_is_told(package, text, problem):
    found, problems = package(statements=text)
    assert problems[0].startswith(problem)
    assert found.statements == {}
    assert found.claims, "the rest is read"
    assert found.systems


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[]"])
def test_a_chapter_may_have_no_statements(package, text):
    found, problems = package(statements=text, claims="", system="", recipe="")
    assert problems == []
    assert found.statements == {}


LITERAL = "claim() needs a literal id in lower case such as 'perceptron.novikoff'"
ONE = "lie 'two' must change exactly one argument that has a default"

# One more claim, a sound one but for one change: (old, new, what is told)
CLAIM_FAULTS = [
    ("neuron.open", "neuron.x", "claim 'neuron.x' has no statement: add it to the chapter's statements.yaml"),
    ("neuron.open", "neuron.counts", "duplicate id 'neuron.counts', which subject.py:6 has: rename one"),
    ('"two", ', '"two", printed="000/7", ', "lie 'two' quotes 000/7, but neuron.open has no errata"),
    ("x=2)", "x=2, y=3)", ONE),
    ("x=2)", "z=2)", ONE),
    ('"neuron.open"', '"neuron" + ".open"', LITERAL),
    ("neuron.open", "Neuron.Open", LITERAL),
    ('"neuron.open"', "{[]: 1}", LITERAL),
    ('"neuron.open"', "", LITERAL),
    ('@claim("neuron.open")', "@claim", LITERAL),
    ('"neuron.open"', '"neuron.open", cost="cheap"', "cost must be one of instant, quick, long, got 'cheap'"),
    ("opened", "ten_of_sixteen", "ten_of_sixteen is defined twice, which hides the first claim: rename one"),
]


@pytest.mark.parametrize(("old", "new", "problem"), CLAIM_FAULTS)
def test_a_faulty_claim_is_told_and_the_rest_is_read(package, old, new, problem):
    assert MORE.count(old) == 1
    found, problems = package(claims=CLAIM + MORE.replace(old, new))
    assert problems == [f"claims/subject.py:{DEF}: {problem}"]
    assert "neuron.counts" in found.claims
    assert set(found.statements) == {"neuron.counts", "neuron.open"}


def test_a_misprint_is_either_a_lie_or_a_notation(package):
    _, problems = package(claims=CLAIM.replace("000/1", "003/2"))
    assert problems == ["claims/subject.py:6: 003/2 of neuron.counts is a lie here and notation in statements.yaml"]


def test_a_lie_quotes_a_misprint_that_is_there(package):
    _, problems = package(claims=CLAIM.replace("000/1", "000/2"))
    assert problems == ["claims/subject.py:6: lie 'eleven' quotes 000/2, but neuron.counts has 000/1, 003/2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\ndef broken(:\n", "2: not valid Python: "),
        (b"x = '\xff'", "1: not valid Python: "),
        ("x = '\0'", "1: not valid Python: "),
    ],
)
def test_a_file_that_is_no_python_is_told_and_the_others_are_read(package, text, problem):
    found, problems = package(**{"connectionism/claims/broken.py": text, "connectionism/broken.py": text})
    assert problems[0].startswith("claims/broken.py:" + problem)
    assert problems[1].startswith("broken.py:" + problem)
    assert found.claims
    assert found.systems


OTHER = '\n\n@system("other", title="Other", kind="module")\nclass Other:\n    pass\n'
SYSTEM_KINDS = "module, optimizer, estimator, function, sampler, memory, strategy"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"other"', '"neuron"', "duplicate id 'neuron', which neuron.py:6 has: rename one"),
        ('"module"', '"thing"', f"kind must be one of {SYSTEM_KINDS}, got 'thing'"),
        ('title="Other", ', "", "@system takes a name, kind and title"),
        ('"Other"', "NAME", "@system takes literal strings only"),
    ],
)
def test_a_faulty_system_is_told_and_the_rest_is_read(package, old, new, problem):
    found, problems = package(system=SYSTEM + OTHER.replace(old, new))
    assert problems == [f"neuron.py:{CLASS}: {problem}"]
    assert set(found.systems) == {"neuron"}


def test_a_system_promises_claims_that_exist(package):
    _, problems = package(system=SYSTEM.replace("neuron.counts,", "neuron.count,"))
    assert problems == ["neuron.py:6: Neuron promises the unknown claim 'neuron.count'"]


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ('"axon", data="d", metric="m"', "recipes.py:4: train_neuron trains the unknown system 'axon'"),
        ('"neuron", data="d"', "recipes.py:4: @recipe takes a name, data and metric"),
        ('NAME, data="d", metric="m"', "recipes.py:4: @recipe takes literal strings only"),
    ],
)
def test_a_faulty_recipe_is_told(package, mark, problem):
    _, problems = package(recipe=RECIPE.replace('"neuron", data="digits", metric="accuracy"', mark))
    assert problems == [problem]


def test_other_decorators_and_functions_are_left_alone(package):
    text = "import functools\n\n@functools.cache\ndef f():\n    pass\n\nasync def g():\n    pass\n"
    _, problems = package(**{"connectionism/more.py": text, "connectionism/claims/more.py": text})
    assert problems == []


# --- A user's file ---


def test_one_recipe_may_train_several_systems(package):
    second = SYSTEM.replace('"neuron"', '"other"').replace("Neuron", "Other")
    recipe = RECIPE.replace('"neuron", data', '"other", "neuron", data')
    found, problems = package(recipe=recipe, **{"connectionism/other.py": second})
    assert problems == []
    assert [(entry.system, entry.data, entry.name) for entry in found.recipes] == [
        ("other", "digits", "train_neuron"),
        ("neuron", "digits", "train_neuron"),
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"recipe": RECIPE.replace('"neuron"', "NAME")}, "@recipe takes literal strings only"),
        ({"recipe": RECIPE.replace('"neuron", ', "")}, "@recipe takes literal strings only"),
        ({"recipe": RECIPE.replace('"neuron"', '"neuron", "x"')}, "train_neuron trains the unknown system 'x'"),
        ({"system": SYSTEM.replace('"neuron"', '"neuron", "x"')}, "a system has one name in lower case"),
    ],
)
def test_names_that_cannot_be_are_told(package, changed, problem):
    assert any(problem in told for told in package(**changed)[1])
