"""The reading pages, without a server: what they say, that they are whole, and that 700 statements are no burden."""

import dataclasses
import html.parser
import re
from collections import Counter

import pytest
from markupsafe import escape

from lemmata import catalog as catalogs
from lemmata.catalog import CHAPTERS, Catalog, LieEntry
from lemmata.catalog.statements import READINGS
from lemmata.figure import Figure, Line, Points
from lemmata.judge.fingerprint import fingerprint
from lemmata.judge.ledger import Ledger
from lemmata.judge.verdict import VERDICTS, Result
from lemmata.lab.site import code, dials, formulas, knowledge, pages
from lemmata.lab.site.knowledge import Knowledge, Snapshot
from lemmata.lab.site.labs import labs
from lemmata.lab.site.views import atlas, claim, errata, home, source, trust

NO_FILTER = dict.fromkeys(("q", "chapter", "kind", "source", "verdict"), "")
VOID = {"meta", "link", "input", "br", "img", "hr"}
EVIDENCE = {"holds": True, "by": "exact", "measured": 1.0, "predicted": 1.0, "margin": 0.0, "alpha": 0.0}
EVIDENCE |= {"detail": "3 of 3 checks hold", "proof": False, "weak": "", "figure": None, "relation": "="}
WHY = {"regime": "", "loose": ""}
CURVE = Figure("Error & load", "load", "rate", [Line([0, 1], [0.0, 0.5], "theory"), Points([0.5], [0.2], "measured")])


@pytest.fixture(scope="module")
def snapshot():
    """The real catalog, every claim holding, every lie rejected; one claim has a figure."""
    real = catalogs.load()
    results = {id: held(entry) for id, entry in real.claims.items()}
    evidence = EVIDENCE | {"figure": CURVE.to_json()}
    results["hopfield.energy"] = dataclasses.replace(results["hopfield.energy"], evidence=evidence)
    return Snapshot(real, results, knowledge.sources())


def held(entry):
    how = "measured 1, predicted 2"
    lies = [
        {"text": lie.text, "printed": lie.printed, "evidence": None, "rejected": True, "how": how} for lie in entry.lies
    ]
    return Result(entry.id, "holds", "exact", 0.1, evidence=EVIDENCE, lies=lies)


@pytest.fixture(scope="module")
def many(snapshot):
    """700 statements over all chapters, each with its claim and verdict."""
    found = Catalog()
    originals = [each for id, each in snapshot.catalog.statements.items() if id in snapshot.catalog.claims]
    results = {}
    for k in range(700):
        original = originals[k % len(originals)]
        id, chapter = f"{original.id}_{k}", CHAPTERS[k * len(CHAPTERS) // 700]
        found.statements[id] = dataclasses.replace(original, id=id, chapter=chapter)
        found.claims[id] = dataclasses.replace(snapshot.catalog.claims[original.id], id=id)
        results[id] = dataclasses.replace(snapshot.results[original.id], id=id)
    return Snapshot(found, results, snapshot.sources)


class Whole(html.parser.HTMLParser):
    """Reads a page: tags must close in order, ids be unique, headings not skip a level; keeps links and labels."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.levels, self.links, self.fields, self.labels = [], Counter(), [], [], set(), set()
        self.feed(text)
        self.close()
        assert self.open == []
        assert [id for id, count in self.ids.items() if count > 1] == []
        assert self.levels[:1] == [1]
        assert all(after - before <= 1 for before, after in zip(self.levels, self.levels[1:], strict=False))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert "style" not in given, "the policy forbids inline styles"
        assert not any(name.startswith("on") for name in given), "the policy forbids inline handlers"
        assert tag != "style"
        self.ids.update([given["id"]] if "id" in given else [])
        self.links += [given["href"]] if tag == "a" else []
        if tag in ("input", "select") and given.get("type") not in ("hidden", "radio"):
            self.fields.add(given["id"])
        if tag == "label" and "for" in given:
            self.labels.add(given["for"])
        if re.fullmatch("h[1-6]", tag) and "dialog" not in self.open:
            self.levels.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def every_page(snapshot, live=True):
    """(address, text) of each page of the chapter."""
    given = {"live": live}
    yield "/", pages.render("home.html", path="/", **given, **home.home_context(snapshot))
    yield "/atlas", pages.render("atlas.html", path="/atlas", **given, **atlas.atlas_context(snapshot, NO_FILTER))
    wanted = {"q": "", "source": "", "settled": ""}
    yield "/errata", pages.render("errata.html", path="/errata", **given, **errata.errata_context(snapshot, wanted))
    yield "/source", pages.render("sources.html", path="/source", **given, **source.sources_context(snapshot))
    yield "/trust", pages.render("trust.html", path="/trust", **given, **trust.trust_context())
    for place in snapshot.sources:
        yield f"/source/{place}", pages.render("source.html", **given, **source.source_context(snapshot, place))
    for id in snapshot.catalog.statements:
        facts = claim.claim_context(snapshot, id, [])
        yield f"/claim/{id}", pages.render("claim.html", **given, **facts)


@pytest.mark.parametrize("live", [True, False])
def test_every_page_is_whole_and_every_field_has_its_label(snapshot, live):
    read = {place: Whole(text) for place, text in every_page(snapshot, live)}
    assert len(read) > 50
    for page in read.values():
        assert page.fields <= page.labels
    known = {*read, "/systems", "/labs", "/errata.csv", *(f"/systems/{id}" for id in snapshot.catalog.systems)}
    known |= {f"/labs/{name}" for name in labs()}
    known |= {f"/claim/{id}/figure.{kind}" for id in snapshot.catalog.statements for kind in ("csv", "svg")}
    for place, page in read.items():
        for link in page.links:
            address, _, anchor = link.partition("#")
            address = address.partition("?")[0]
            assert address == "" or address in known, f"{place} links to {link}"
            assert not anchor or address not in read or read[address].ids[anchor], f"{place} links to {link}"
            assert address or page.ids[anchor], f"{place} links to {link}"


def test_only_a_page_that_came_through_the_link_is_live_and_has_sliders(snapshot):
    for (_, open_page), (_, closed) in zip(every_page(snapshot, True), every_page(snapshot, False), strict=True):
        assert "lemmata-live" in open_page
        assert not re.search("lemmata-live|data-probe|data-judge[ -]|probe.js", closed)


def test_pages_are_the_same_without_assets_but_for_formulas_and_links(snapshot, tmp_path, monkeypatch):
    monkeypatch.setattr(formulas, "ASSETS", tmp_path)
    monkeypatch.setattr(pages, "ASSETS", tmp_path)
    for place, text in every_page(snapshot):
        Whole(text)
        assert "/assets/" not in text, place
        assert "<math" not in text


# --- Home ---


def test_home_shows_a_misprint_with_a_slider_that_is_a_plain_form_too(snapshot):
    (_, text), *_ = every_page(snapshot)
    stage = re.search(r'<div class="stage.*?</section>', text, re.S).group()
    assert 'data-claim="hopfield.energy"' in stage
    form = re.search(r'<form class="probe.*?</form>', stage, re.S).group()
    assert 'data-lie="0"' in form
    assert re.search(r'action="/claim/hopfield.energy#stage"', form)
    assert re.search(r'<input type="range"[^>]*name="at" min="0" max="40" step="1" value="0"', form)
    for target in ("verdict", "evidence", "figure", "output", "wait", "cancel"):
        assert f"data-probe-{target}" in stage
    assert "matches" in stage


def test_home_counts_what_this_machine_has_judged(snapshot):
    never = Snapshot(snapshot.catalog, {}, snapshot.sources)
    assert home.home_context(never)["refuted"] == 0 < home.home_context(snapshot)["refuted"]
    told = "Nothing was judged on this machine yet"
    assert told in pages.render("home.html", **home.home_context(never))
    assert told not in pages.render("home.html", **home.home_context(snapshot))


def test_home_has_a_demonstration_whatever_the_course_holds(snapshot, many):
    assert home.demonstration(snapshot)["statement"].id == home.SHOWCASE
    assert home.demonstration(many)["lie"]["kind"] == "real"
    assert home.demonstration(Snapshot(Catalog(), {}, {})) is None
    Whole(pages.render("home.html", **home.home_context(Snapshot(Catalog(), {}, {}))))


# --- Atlas ---


def found(snapshot, **wanted):
    context = atlas.atlas_context(snapshot, NO_FILTER | wanted)
    return {entry["statement"].id for chapter in context["chapters"] for entry in chapter["entries"]}


@pytest.mark.parametrize(
    "word", ["novikoff", "NOVIKOFF", "perceptron.nov", "γ-separable", "gamma", r"\lfloor", "attained floor"]
)
def test_search_finds_ids_titles_symbols_and_latex(snapshot, word):
    assert "perceptron.novikoff" in found(snapshot, q=word)


def test_filters_narrow_and_combine(snapshot):
    everything = found(snapshot)
    assert everything == set(snapshot.catalog.statements)
    theorems, of_003 = found(snapshot, kind="theorem"), found(snapshot, source="003")
    assert found(snapshot, kind="theorem", source="003") == theorems & of_003 != theorems
    assert found(snapshot, verdict="holds") == set(snapshot.catalog.claims)
    assert found(snapshot, verdict="open") == everything - set(snapshot.catalog.claims)
    assert found(snapshot, verdict="refuted") == found(snapshot, q="xyzzy") == found(snapshot, chapter="x") == set()


def test_chapters_stand_in_the_order_of_the_course_with_their_counts(many):
    chapters = atlas.atlas_context(many, NO_FILTER)["chapters"]
    assert [chapter["name"] for chapter in chapters] == CHAPTERS
    assert sum(chapter["counts"]["holds"] for chapter in chapters) == 700
    assert all(chapter["remarks"]["settled"] == chapter["remarks"]["all"] for chapter in chapters)


def test_a_chapter_with_rooms_has_a_heading_for_each(snapshot):
    chapters = atlas.atlas_context(snapshot, NO_FILTER)["chapters"]
    told = pages.render("atlas.html", **atlas.atlas_context(snapshot, NO_FILTER))
    for chapter in chapters:
        rooms = dict.fromkeys(entry["statement"].room for entry in chapter["entries"])
        assert list(chapter["rooms"]) == list(rooms)
        assert [entry for part in chapter["rooms"].values() for entry in part] == chapter["entries"]
        for room in filter(None, rooms):
            words = room.replace("_", " ").capitalize()
            assert f'<h3 id="{chapter["name"]}-{room}">{words}</h3>' in told
            assert f'<a href="#{chapter["name"]}-{room}">{words}</a>' in told
    assert told.count('<ol class="entries') == sum(len(chapter["rooms"]) for chapter in chapters)


def test_700_statements_set_no_formula_again(many, monkeypatch):
    first = pages.render("atlas.html", **atlas.atlas_context(many, NO_FILTER))
    assert first.count('class="title"') == 700
    assert len(first) < 500_000
    monkeypatch.setattr(formulas, "formula", None)
    monkeypatch.setattr("lemmata.catalog.search.unicode_math", None)
    assert pages.render("atlas.html", **atlas.atlas_context(many, NO_FILTER)) == first


# --- Claim ---


def shown(snapshot, id, **more):
    facts = claim.claim_context(snapshot, id, [])
    return pages.render("claim.html", **({"live": True} | facts | more))


def test_a_statement_says_why_it_is_true_and_leads_to_its_neighbours(snapshot):
    known = dict(snapshot.catalog.statements)
    id, ground = list(known)[:2]
    known[id] = dataclasses.replace(known[id], why="Because $a<b$.", builds_on=(ground,))
    catalog = dataclasses.replace(snapshot.catalog, statements=known)
    changed = dataclasses.replace(snapshot, catalog=catalog)
    above = pages.render("claim.html", **claim.claim_context(changed, id, []))
    assert "Why it is true" in above
    assert f'href="/claim/{ground}"' in above.partition("Builds on")[2]
    below = pages.render("claim.html", **claim.claim_context(changed, ground, []))
    assert f'href="/claim/{id}"' in below.partition("Leads to")[2]


def test_a_statement_leads_to_the_labs_that_show_it(snapshot):
    shown = pages.render("claim.html", **claim.claim_context(snapshot, "perceptron.novikoff", []))
    assert [lab.name for lab in labs().values() if "perceptron.novikoff" in lab.claims]
    assert 'href="/labs/perceptron"' in shown.partition("<dt>Labs")[2]


def test_an_open_statement_says_so_and_offers_no_check(snapshot):
    bare = dataclasses.replace(snapshot.catalog, claims={})
    text = shown(Snapshot(bare, {}, snapshot.sources), "perceptron.novikoff")
    assert "its check is still to be written" in text
    assert not re.search("data-judge[ -]|data-probe|probe.js|lemmata check", text)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_a_word_and_a_shape(snapshot, verdict):
    result = Result("perceptron.novikoff", verdict, reason="because")
    text = shown(Snapshot(snapshot.catalog, {"perceptron.novikoff": result}, snapshot.sources), "perceptron.novikoff")
    seal = re.search(r'<p class="seal"><span class="whose">The statement, as checked:</span> (.*?</span>)', text, re.S)
    assert re.fullmatch(rf'<span class="verdict {verdict}"><svg.*?</svg> {verdict}</span>', seal[1])
    assert "because" in text


def test_every_claim_leads_to_what_a_verdict_rests_on(snapshot):
    for live in (True, False):
        assert 'href="/trust">What a verdict rests on</a>' in shown(snapshot, "hopfield.energy", live=live)


def test_proved_is_said_of_proofs_only():
    checked = Result("x", "holds", "exact", 0.1, evidence=EVIDENCE)
    assert pages.ground(checked) == "checked exactly in 0.10 s"
    assert pages.ground(dataclasses.replace(checked, evidence=EVIDENCE | {"proof": True})).startswith("proved")


@pytest.mark.parametrize(
    ("truth", "value", "kind"),
    [("0.5", "1", "real"), ("-2", "3", "whole"), ("True", "False", "switch"), ("lambda x: x", "0", "switch")],
)
def test_literals_tell_what_can_be_turned(truth, value, kind):
    assert dials.guess(LieEntry("", argument="x", truth=truth, value=value)).kind == kind


@pytest.mark.parametrize("source", ["torch.amax", "SIZE", "__import__('os')", "2 ** 9", "1 / 0", "(" * 500, ""])
def test_what_only_code_can_tell_is_left_to_it(source):
    assert dials.guess(LieEntry("", argument="x", truth=source, value="1.0")) is None


def test_the_code_of_a_check_is_its_own_lines_and_escaped(snapshot):
    entry = snapshot.catalog.claims["perceptron.novikoff"]
    text, first, last = code.source_of(entry)
    assert text.startswith('@claim("perceptron.novikoff")')
    assert first < entry.line <= last
    coloured = code.coloured(text + "\nx = '<b>'  # a < b")
    assert re.sub(r"<[^>]+>", "", coloured).replace("&lt;", "<").count("\n") == text.count("\n") + 1
    assert "<b>" not in coloured
    assert code.coloured("def (") == "def ("


def test_a_lie_says_from_where_the_check_notices_it_if_that_was_measured(snapshot):
    notice = {"argument": "quadratic", "truth": -0.5, "from": 0.51, "other": -0.6, "away": 0.1, "away_other": 0.1}
    result = snapshot.results["hopfield.energy"]
    for notices, told in (({}, None), ({"notices": None}, None), ({"notices": notice | WHY}, "quadratic from 0.51")):
        lies = [lie | notices for lie in result.lies]
        known = Snapshot(snapshot.catalog, {result.id: dataclasses.replace(result, lies=lies)}, snapshot.sources)
        text = shown(known, result.id)
        assert ("notices" in text) == (told is not None)
        assert told is None or f"measured 1, predicted 2; notices {told}" in text


# --- Errata and sources ---


def test_every_settlement_has_its_meaning_and_its_filter(snapshot):
    everything = {"q": "", "source": "", "settled": ""}
    context = errata.errata_context(snapshot, everything)
    text = pages.render("errata.html", **context)
    assert set(context["tally"]) - {"open"} == {"refuted", *READINGS}  # each occurs, and all that is claimed was run
    for word, meaning in READINGS.items():
        assert f"{context['tally'][word]} {pages.shown(word)}:</span> {escape(meaning)}" in text
        left = errata.chosen(snapshot, everything | {"settled": word})
        assert len(left) == context["tally"][word]
        assert {erratum.reading for _, erratum in left} == {word}
        statement, erratum = left[0]
        told = shown(snapshot, statement.id)
        assert f"{escape(meaning[:1].upper() + meaning[1:])}. {formulas.prose(erratum.reason)}" in told


def test_what_the_first_page_counts_as_refuted_is_what_its_link_shows(snapshot):
    part = dict(list(snapshot.results.items())[::2])
    for results in (snapshot.results, part, {}):
        known = Snapshot(snapshot.catalog, results, snapshot.sources)
        counted = home.home_context(known)
        left = errata.chosen(known, {"q": "", "source": "", "settled": "refuted"})
        assert counted["refuted"] == len(left)
        assert counted["remarks"] == sum(1 for _ in known.errata())
        text = re.sub(r"\s+", " ", pages.render("home.html", **counted))
        assert f"<b>{len(left)}</b> false as printed, and refuted" in text


def test_errata_filter_and_csv_tell_the_same(snapshot):
    wanted = {"q": "", "source": "003", "settled": "refuted"}
    chosen = errata.chosen(snapshot, wanted)
    assert chosen
    assert {erratum.source for _, erratum in chosen} == {"003"}
    lines = errata.csv_text(snapshot, wanted).splitlines()
    assert lines[0] == "id,source,number,printed,problem,correct,settled"
    assert len(lines) == len(chosen) + 1
    everything = errata.chosen(snapshot, dict.fromkeys(wanted, ""))
    assert len(everything) == sum(len(s.errata) for s in snapshot.catalog.statements.values())


def test_a_refutation_that_never_ran_is_not_called_one(snapshot):
    unrun = Snapshot(snapshot.catalog, {}, snapshot.sources)
    statement = snapshot.catalog.statements["perceptron.novikoff"]
    assert unrun.standing(statement.id, statement.errata[0]) == "not run yet"
    assert snapshot.standing(statement.id, statement.errata[0]) == "refuted"
    assert unrun.verdict(statement.id) == "not judged"


def test_a_source_lists_every_statement_that_cites_it(snapshot):
    for place in snapshot.sources:
        listed = {row["statement"].id for row in source.source_context(snapshot, place)["rows"]}
        cited = {s.id for s in snapshot.catalog.statements.values() if any(p["source"] == place for p in s.sources)}
        assert listed == cited


# --- What is known ---


def test_a_verdict_is_seen_as_soon_as_the_ledger_has_it(tmp_path):
    real = catalogs.load()
    ledger = Ledger(tmp_path / "ledger")
    seen = Knowledge(real, ledger)
    assert seen.now().results == {}
    entry = real.claims["perceptron.novikoff"]
    ledger.put(fingerprint(entry, 0), held(entry))
    assert set(seen.now().results) == {entry.id}
    assert seen.now().results is seen.now().results
