"""Claims as pytest items: collected where asked for, reported in one line, and invisible where not."""

import textwrap

import pytest
import torch._dynamo  # noqa: F401

# Imported, like torch's compiler, before pytester runs pytest in this process: it forgets what a run imported, and
# torch comes only once. Whether a claim needs the compiler depends on the chapters that other tests have imported.
from lemmata import catalog
from lemmata.judge import bounds, exact, figure, numeric, rates, runner, training, worker  # noqa: F401

MINE = '''
    from lemmata.judge import Skip, claim, close, exactly, lie

    @claim("mine.holds")
    @lie("two", x=2)
    def holds(draw, x=1):
        """One is one."""
        return exactly(x, 1)

    @claim("mine.refuted")
    @lie("two", x=2)
    def refuted(draw, x=1):
        return exactly(x, 3)

    @claim("mine.weak")
    @lie("minus one", x=-1)
    @lie("nothing at all", raises=ValueError, x=0)
    @lie("two", x=2)
    def weak(draw, x=1):
        return exactly(x * x, 1)

    @claim("mine.error")
    def error(draw):
        return 1 / 0

    @claim("mine.skipped")
    def skipped(draw):
        raise Skip("needs a quantum computer")

    @claim("mine.long", cost="long")
    @lie("two", x=2)
    def slow(draw, x=1):
        return exactly(x, 1)
'''


@pytest.fixture
def run(pytester, monkeypatch):
    """pytest in this process, on files of its own."""
    monkeypatch.syspath_prepend(str(pytester.path))

    def run(*arguments, mine=MINE, **files):
        pytester.makepyfile(mine=mine, **files)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run


def names(result):
    return [line for line in result.outlines if "::" in line and " " not in line]


def test_every_claim_is_an_item_named_by_its_id(run):
    result = run("--lemmata", "--collect-only", "-q", "mine.py")
    ids = ["holds", "refuted", "weak", "error", "skipped", "long"]
    assert names(result) == [f"mine.py::mine.{id}" for id in ids]
    assert result.ret == 0


def test_verdicts_become_outcomes(run):
    result = run("--lemmata", "mine.py", "-rs")
    result.assert_outcomes(passed=1, failed=3, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*needs a quantum computer", "SKIPPED*a long claim: add --lemmata-all"])


def test_a_failure_is_its_reason_and_no_traceback(run):
    text = run("--lemmata", "mine.py").stdout.str()
    assert "refuted: measured 1, predicted 3\n" in text
    assert "error: ZeroDivisionError: division by zero (mine.py:23)\n" in text
    assert (
        "weak: accepted the lie: minus one\n  accepted: minus one\n  did not raise ValueError: nothing at all\n" in text
    )
    for inner in ("Traceback", "pytest_plugin.py", "runner.py", "def "):
        assert inner not in text


def test_long_claims_run_when_asked_for(run):
    run("--lemmata-all", "mine.py", "-k", "long").assert_outcomes(passed=1, deselected=5)


def test_items_are_selected_by_id(run):
    run("--lemmata", "mine.py::mine.holds").assert_outcomes(passed=1)
    run("--lemmata", "mine.py", "-k", "mine.holds or mine.error").assert_outcomes(passed=1, failed=1, deselected=4)


def test_a_folder_gives_its_claims_and_its_tests(run):
    result = run("--lemmata", test_usual="def test_one():\n    assert True\n", nothing="x = 1\n")
    result.assert_outcomes(passed=2, failed=3, skipped=2)


def test_a_test_file_may_hold_claims(run):
    both = MINE + "\n    def test_one():\n        assert True\n"
    run("--lemmata", "test_both.py", mine="", test_both=both).assert_outcomes(passed=2, failed=3, skipped=2)


def test_other_peoples_claims_are_not_ours(run):
    theirs = 'def claim(text):\n    return lambda f: f\n\n@claim("baggage")\ndef test_pay():\n    pass\n'
    result = run("--lemmata", "--collect-only", "-q", "test_theirs.py", mine="", test_theirs=theirs)
    assert names(result) == ["test_theirs.py::test_pay"]


def test_what_is_no_claim_is_an_item_that_fails_and_the_rest_is_judged(run):
    faulty = MINE + '\n    @claim("mine" + ".computed")\n    def computed(draw):\n        pass\n'
    faulty += '\n    @claim("mine.holds")\n    def again(draw):\n        pass\n'
    result = run("--lemmata", "mine.py", mine=faulty)
    result.assert_outcomes(passed=1, failed=5, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*/mine.py:35: claim() needs a literal id in lower case such as 'perceptron.novikoff'",
            "*/mine.py:39: duplicate id 'mine.holds': rename one",
        ]
    )


def test_a_syntax_error_is_told_once(run):
    result = run("--lemmata", "mine.py", mine="from lemmata.judge import claim\ndef broken(:\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*/mine.py:2: not valid Python: *"])


def test_a_file_that_cannot_be_imported_fails_item_by_item(run):
    result = run(
        "--lemmata",
        "mine.py",
        "-k",
        "holds or weak",
        mine="import nowhere_to_be_found\n" + MINE.replace("\n    ", "\n"),
    )
    result.assert_outcomes(failed=2, deselected=4)
    reports = result.stdout.str().partition("short test summary")[0]  # which repeats them in full where CI is set
    assert reports.count("cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'") == 2
    assert "Traceback" not in reports


def test_warnings_in_a_check_do_not_change_its_verdict(run):
    warn = "import warnings\n        warnings.warn('loud')\n        "
    loud = MINE.replace("return exactly(x, 1)", warn + "return exactly(x, 1)")
    run("--lemmata", "mine.py::mine.holds", "-W", "error", mine=loud).assert_outcomes(passed=1)


def test_the_cost_is_the_statements(run, pytester):
    entry = "- {id: mine.%s, kind: theorem, title: t, statement: s, cost: %s}\n"
    files = {
        "statements.yaml": entry % ("holds", "long") + entry % ("long", "instant"),
        "__init__.py": "",
        "claims/__init__.py": "",
        "claims/mine.py": textwrap.dedent(MINE),
    }
    for name, text in files.items():
        path = pytester.path / "chapter" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = run("--lemmata", "chapter", "-k", "mine.holds or mine.long", "-v", mine="")
    result.stdout.fnmatch_lines(["*mine.holds SKIPPED*", "*mine.long PASSED*"])


def test_packages_are_named_with_pyargs(run):
    """Ours, as anybody may check them: all that the catalog knows, and nothing judged."""
    result = run("--lemmata", "--collect-only", "-q", "--pyargs", "lemmata.connectionism.claims", mine="")
    ours = [id for id, claim in catalog.load().claims.items() if claim.module.startswith("lemmata.connectionism.")]
    assert sorted(line.rpartition("::")[2] for line in names(result)) == sorted(ours)


# --- Without the option ---


def test_nothing_changes_without_the_option(run):
    result = run("--collect-only", "-q", test_usual="def test_one():\n    assert True\n")
    assert names(result) == ["test_usual.py::test_one"]


def test_nothing_is_imported_without_the_option(pytester):
    pytester.makepyfile(
        test_light="""
        import sys

        def test_nothing_heavy_came_along():
            ours = {name for name in sys.modules if name.partition(".")[0] == "lemmata"}
            assert not {"torch", "numpy", "yaml"} & set(sys.modules)
            assert ours <= {
                "lemmata", "lemmata.files", "lemmata.lazy", "lemmata.testing", "lemmata.testing.pytest_plugin",
            } | {name for name in ours if name.startswith("lemmata.catalog")}
        """
    )
    # The plugins of other packages that happen to be installed here are not what is tested.
    light = ("-p", "no:jaxtyping", "-p", "no:typeguard", "-p", "no:anyio", "-W", "error")
    pytester.runpytest_subprocess(*light).assert_outcomes(passed=1)


def test_help_names_the_options(run):
    result = run("--help")
    result.stdout.fnmatch_lines(["claims, judged by lemmata:", "*--lemmata *judge the claims*", "*--lemmata-all*"])
