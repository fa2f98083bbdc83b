"""What moves: the labs and a training, by mouse and by keyboard, on desktop and phone."""

import re
import zipfile

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

BOTH = pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])


def number(locator):
    return float(re.search(r"[−-]?[\d.]+", locator.inner_text().replace(",", "")).group().replace("−", "-"))


def answered(page):
    """Wait until the lab has heard from the server about all that was done so far."""
    expect(page.locator("[data-lab]")).to_have_attribute("aria-busy", "false")


# --- Perceptron ---


@BOTH
def test_points_are_placed_and_corrected_by_mouse(visit, size, scheme):
    page = visit("/labs/perceptron", size, scheme)
    plane = page.locator("svg.plane")
    expect(plane.locator("[data-index]").first).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(plane.locator("[data-index]")).to_have_count(0)
    box = plane.bounding_box()
    for label, place in (("+1", 0.8), ("−1", 0.2)):
        page.get_by_label(re.compile(f"adds .* {re.escape(label)}")).check()
        plane.click(position={"x": place * box["width"], "y": 0.3 * box["height"]})
    expect(plane.locator("[data-index]")).to_have_count(2)
    expect(page.locator("[data-said]")).to_contain_text("2 points. A line exists")
    expect(page.locator("[data-bound]")).not_to_be_empty()
    page.get_by_role("button", name="One correction").click()
    expect(page.locator("[data-count]")).to_have_text("1 correction")
    expect(plane.locator(".line")).to_have_count(1)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[data-said]")).to_contain_text("Every point is on its side")
    expect(page).to_have_url(re.compile("points=.*at="))
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("[data-count]")).to_have_text("0 corrections")


def test_points_are_placed_and_corrected_by_keyboard(visit, tab):
    page = visit("/labs/perceptron")
    plane, marks = page.locator("svg.plane"), page.locator("svg.plane [data-index]")
    expect(marks.first).to_be_visible()
    number_before = marks.count()
    tab(page, plane)
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("[data-said]")).to_contain_text("(−1, 1)")
    page.keyboard.press("2")
    expect(marks).to_have_count(number_before + 1)
    answered(page)
    page.keyboard.press(" ")
    expect(page.locator("[data-count]")).to_have_text("1 correction")
    page.keyboard.press("Delete")
    expect(marks).to_have_count(number_before)


def test_what_no_line_can_do_is_proved_on_the_spot(visit):
    page = visit("/labs/perceptron")
    page.get_by_label("Example").select_option("xor")
    expect(page.locator("[data-said]")).to_contain_text("No line separates them")
    expect(page.locator("svg.plane .meeting")).to_have_count(1)


# --- Hopfield ---


@BOTH
def test_a_spoilt_picture_falls_back_to_its_memory(visit, size, scheme):
    page = visit("/labs/hopfield", size, scheme, reduced_motion="no-preference")
    energy, wrong = page.locator("[data-energy]"), page.locator("svg.pixels .turned")
    expect(page.locator("svg.pixels rect").first).to_be_visible()
    noise = page.locator("#noise")
    noise.focus()
    before = wrong.count()
    noise.press("ArrowLeft")
    expect(page.locator("[data-out=noise]")).to_have_text("19")
    expect(wrong).not_to_have_count(before)
    answered(page)
    high, text = number(energy), energy.inner_text()
    page.get_by_role("button", name="Recall").click()
    expect(page.locator("[data-said]")).to_contain_text("It remembers")
    expect(wrong).to_have_count(0)
    assert number(energy) < high
    page.get_by_role("button", name="Reset").click()
    expect(energy).to_have_text(text)
    page.get_by_role("button", name="One flip").click()
    expect(energy).not_to_have_text(text)
    assert number(energy) < high


def test_a_picture_is_drawn_and_recalled_by_keyboard(visit, tab):
    page = visit("/labs/hopfield?noise=0")
    grid = page.locator("svg.pixels")
    expect(grid.locator("rect").first).to_be_visible()
    tab(page, grid)
    ink = grid.locator(".ink").count()
    page.keyboard.press(" ")
    expect(grid.locator(".ink")).not_to_have_count(ink)
    expect(page).to_have_url(re.compile("picture="))
    expect(page.locator("[data-progress]")).to_contain_text("of 1")
    answered(page)
    page.keyboard.press("Enter")
    expect(page.locator("[data-said]")).to_contain_text("It remembers")
    expect(grid.locator(".ink")).to_have_count(ink)


def test_a_picture_is_drawn_by_mouse_and_stored(visit):
    page = visit("/labs/hopfield")
    grid = page.locator("svg.pixels")
    memories = page.locator("[data-memories] button")
    expect(memories).to_have_count(4)
    page.get_by_role("button", name="Blank picture").click()
    expect(grid.locator(".ink")).to_have_count(0)
    box = grid.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"], steps=20)
    page.mouse.up()
    expect(grid.locator(".ink").nth(3)).to_be_visible()
    page.get_by_role("button", name="Remember this picture").click()
    expect(memories).to_have_count(5)


def test_an_answer_that_comes_late_does_not_wipe_what_is_being_drawn(visit):
    page = visit("/labs/hopfield?noise=0")
    grid, shown = page.locator("svg.pixels"), "**/labs/hopfield/show"
    expect(grid.locator("rect").first).to_be_visible()
    box, held = grid.bounding_box(), []

    def at(x, y):
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    here = grid.evaluate("(grid, at) => [...grid.children].indexOf(document.elementFromPoint(...at))", at(0.03, 0.03))
    assert here >= 0
    pixel, ink = grid.locator("rect").nth(here), re.compile("ink")
    expect(pixel).not_to_have_class(ink)
    page.route(shown, lambda route: held.append(route), times=1)
    with page.expect_request(shown):
        page.mouse.click(*at(0.7, 0.7))
    page.mouse.move(*at(0.03, 0.03))
    page.mouse.down()
    expect(pixel).to_have_class(ink)
    held.pop().continue_()
    answered(page)
    expect(pixel).to_have_class(ink)
    page.mouse.up()
    answered(page)
    expect(pixel).to_have_class(ink)


# --- The boundary of a network ---


@BOTH
def test_a_network_learns_its_map_and_is_stopped(visit, size, scheme):
    page = visit("/labs/boundary?epochs=400&width=256&depth=4", size, scheme)  # it must not end before it is stopped
    picture = page.locator("canvas.map")
    expect(picture).to_have_attribute("aria-label", re.compile("after 0 epochs"))
    untrained = picture.evaluate("canvas => canvas.toDataURL()")
    page.get_by_role("button", name="Train").click()
    expect(picture).to_have_attribute("aria-label", re.compile(r"after [1-9]\d* epoch.*%"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-said]")).to_contain_text(re.compile("Stopped after|Done"))
    assert picture.evaluate("canvas => canvas.toDataURL()") != untrained
    page.locator("#at").press("Home")
    expect(page.locator("[data-out=epoch]")).to_have_text(re.compile("^[01]$"))


def test_a_network_is_trained_to_its_end_by_keyboard(visit, tab):
    page = visit("/labs/boundary?epochs=8")
    expect(page.locator("[data-said]")).to_contain_text("Before anything is learnt")
    tab(page, page.get_by_label("Activation"))
    page.keyboard.type("relu")
    expect(page).to_have_url(re.compile("activation=relu"))
    answered(page)
    page.locator("h1").click()
    tab(page, page.get_by_role("button", name="Train"))
    page.keyboard.press("Enter")
    expect(page.locator("[data-said]")).to_contain_text("Done")
    expect(page.locator("[data-figure=curve] svg").first).to_be_visible()
    assert number(page.locator("[data-accuracy]")) > 60


# --- Vanishing gradients ---


@BOTH
def test_a_slider_moves_the_gradient_and_the_rules_are_judged(visit, size, scheme):
    page = visit("/labs/vanishing?activation=identity&size=1.2", size, scheme)
    rules = page.locator("[data-rules] tr")
    expect(rules.nth(1)).to_have_class("wrong")
    expect(page.locator("[data-said]")).to_contain_text("explodes")
    before = number(page.locator("[data-bound]"))
    page.locator("#size").focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-out=size]")).to_have_text("0.05")
    expect(page.locator("[data-said]")).to_contain_text("It had to")
    expect(rules.nth(0)).to_have_class("right")
    assert number(page.locator("[data-bound]")) < before
    expect(page).to_have_url(re.compile("size=0.05"))


# --- Eigenvalue ring ---


@BOTH
def test_an_eigenvalue_is_dragged_out_of_the_circle_and_out_of_the_plane(visit, size, scheme):
    page = visit("/labs/ring?points=0.5,0", size, scheme)
    disc, marks = page.locator("svg.disc"), page.locator("svg.disc [data-index]")
    expect(marks).to_have_count(1)
    disc.scroll_into_view_if_needed()

    def at(x, y):
        box = disc.bounding_box()  # anew, for what is said above the picture can move it
        return box["x"] + box["width"] * (x + 1.26) / 2.52, box["y"] + box["height"] * (1.26 - y) / 2.52

    page.mouse.move(*at(0.5, 0))
    page.mouse.down()
    page.mouse.move(*at(0.9, 0.9), steps=5)
    page.mouse.up()
    expect(page.locator("[data-said]")).to_contain_text("It explodes")
    answered(page)
    assert number(page.locator("[data-radius]")) > 1
    page.mouse.click(*at(-0.5, 0.2))
    expect(marks).to_have_count(2)
    expect(page).to_have_url(re.compile("points="))
    page.get_by_role("button", name="Ring by area").click()
    expect(marks).to_have_count(8)
    expect(page.locator("[data-said]")).to_contain_text("forgotten")


def test_eigenvalues_are_moved_and_heard_by_keyboard(visit, tab):
    page = visit("/labs/ring")
    disc, said = page.locator("svg.disc"), page.locator("[data-said]")
    expect(disc.locator("[data-index]")).to_have_count(2)
    tab(page, disc)
    page.keyboard.press("n")
    expect(said).to_contain_text("Point 2 of 2")
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile("0.6,0.05"))
    page.keyboard.press("+")
    expect(disc.locator("[data-index]")).to_have_count(3)
    page.keyboard.press("Delete")
    expect(disc.locator("[data-index]")).to_have_count(2)
    answered(page)
    page.keyboard.press("Enter")
    expect(page.locator("[data-lab]")).to_have_attribute("data-played", "1")


# --- Training a system ---


def test_a_training_is_stopped_goes_on_and_is_taken_away(visit, tab):
    page = visit("/systems/mlp?data=moons&epochs=4000&evaluate=5")  # it must not end before it is stopped
    tab(page, page.get_by_role("button", name="Train"))
    page.keyboard.press("Enter")
    told, state = page.locator("[data-run-told]"), page.locator("[data-run-state]")
    expect(told).to_have_text(re.compile("step [1-9]"))
    expect(page.locator("[data-run-picture] svg").first).to_be_visible()
    page.get_by_role("button", name="Stop and keep").click()
    expect(state).to_have_text("stopped")
    expect(page.locator("[data-run-curves] figure").first).to_be_visible()
    with page.expect_download() as got:
        page.get_by_role("link", name="Download the checkpoint").click()
    assert any(name.endswith(".safetensors") for name in zipfile.ZipFile(got.value.path()).namelist())
    page.get_by_role("button", name="Go on").click()
    expect(state).to_have_text("training")
    page.get_by_role("button", name="Stop and keep").click()
    expect(state).to_have_text(re.compile("stopped|finished"))
    run = page.locator("[data-run]").get_attribute("data-run")
    page.goto(f"/runs/{run}")
    expect(page.locator("[data-run-state]")).to_have_text(re.compile("stopped|finished"))
    expect(page.locator("[data-run]")).to_contain_text("mlp on moons")


@BOTH
def test_train_goes_to_the_run_and_its_button_becomes_progress_and_stop(visit, size, scheme):
    page = visit("/systems/mlp?data=moons&epochs=4000&evaluate=5", size, scheme)  # it must not end before it is stopped
    train, stop = page.locator("[data-train-start]"), page.locator("[data-train-stop]")
    train.click()
    expect(page.locator("[data-run-panel] h2")).to_be_focused()
    expect(page.locator("[data-run-panel] h2")).to_be_in_viewport()
    expect(train).to_be_hidden()
    expect(page.locator("[data-train-progress]")).to_have_attribute("value", re.compile(r"0\.\d*[1-9]"))
    expect(page.locator("[data-run-curves] figure").first).to_be_visible()  # as it looks after training
    stop.click()
    expect(page.locator("[data-run-state]")).to_have_text("stopped")
    expect(train).to_be_visible()
    expect(stop).to_be_hidden()


@BOTH
def test_a_form_tells_what_its_values_come_to(visit, size, scheme):
    page = visit("/systems/mlp?data=moons", size, scheme)
    widths, told = page.get_by_label("widths", exact=True), page.locator("[data-train-size]")
    expect(told).to_contain_text("parameters")
    before = told.inner_text()
    widths.fill("7")
    widths.press("Tab")
    expect(told).not_to_have_text(before)
    expect(page.locator("[data-train-command] [data-command]")).to_contain_text("--widths 7")
    lr = page.get_by_label("lr", exact=True)
    lr.fill("-1")
    lr.press("Tab")
    assert not lr.evaluate("field => field.checkValidity()") or page.locator("[data-train-problem]").inner_text()
    page.get_by_role("button", name="Reset").click()
    expect(told).to_have_text(before)
