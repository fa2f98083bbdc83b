"""The recipe as an object: its own settings for each system, those of a record, and one way to an experiment."""

import dataclasses

import pytest

from lemmata import catalog
from lemmata.convolution.recipes import ALL_TRAINING, FEW, FEW_TRAINING, classify_few_pictures
from lemmata.feedforward.recipes import classify_points
from lemmata.train import Recipe
from lemmata.train.recipe import OWN, entries_of, find_entry, tuples
from lemmata.tricks import compare


def test_each_system_of_a_recipe_has_its_own_settings():
    entries = entries_of(catalog.load(), "resnet")
    recipe = Recipe.at(entries[0])
    assert recipe.usual == (FEW["resnet"], FEW_TRAINING["resnet"])
    assert Recipe.at(entries[1]).usual[1] == ALL_TRAINING["resnet"]
    assert Recipe.of(classify_few_pictures, "densenet").usual == (FEW["densenet"], FEW_TRAINING["densenet"])
    assert Recipe.of(recipe) is recipe
    assert recipe.names_its_system
    assert not Recipe.of(classify_points).names_its_system
    assert recipe.sentence == "Ten kinds of clothing, from 2,000 small pictures, by convolutions."


def test_settings_go_to_whichever_has_them():
    config, options = Recipe.of(classify_points).settings(widths=(3,), epochs=7)
    assert (config.widths, options.epochs) == ((3,), 7)
    with pytest.raises(TypeError, match="the recipe classify_points has no setting colour, wdth"):
        Recipe.of(classify_points).settings(wdth=3, colour=1)


def test_an_experiment_has_what_is_chosen_and_else_the_usual():
    recipe = Recipe.of(classify_points)
    config, options = recipe.settings(widths=(3,))
    assert recipe("rings", config, options).arguments["widths"] == (3,)
    assert recipe().arguments["widths"] == recipe.usual[0].widths


def test_the_record_of_a_run_gives_its_settings_back():
    recipe = Recipe.of(classify_points)
    config, options = recipe.settings(widths=(3, 4), epochs=7)
    record = {"config": {**dataclasses.asdict(config), "widths": [3, 4], "gone": 1}, "options": {"epochs": 7}}
    assert recipe.recorded(record) == (config, options)
    assert recipe.recorded({}) == recipe.usual
    for bad, message in (
        ({"config": {"widths": "wide"}}, "run.json has bad config .*widths cannot be 'wide'"),
        ({"options": {"epochs": 0}}, "run.json has bad options .*epochs"),
        ({"options": {"epochs": True}}, "epochs cannot be True"),
    ):
        with pytest.raises(ValueError, match=message):
            recipe.recorded(bad)


def test_a_recipe_is_found_by_system_and_data():
    known = catalog.load()
    entry, data = find_entry(known, "mlp", "rings")
    assert (entry.name, data) == ("classify_points", "rings")
    assert find_entry(known, "mlp")[1] == "fashion"
    assert find_entry(known, "mlp", OWN) is None
    assert find_entry(known, "mlp", "nothing") is None
    assert find_entry(known, "nothing") is None


def test_lists_of_json_become_tuples():
    assert tuples([1, [2, [3]], "a"]) == (1, (2, (3,)), "a")


def test_a_comparison_has_the_settings_of_its_own_system_and_smooths_what_the_network_says():
    """Once every system of a recipe was compared with the settings of the first, and images lacked their channel."""
    recipe = Recipe.at(entries_of(catalog.load(), "densenet")[0])
    seen = []
    config, options = recipe.settings(growth=2)
    few = dataclasses.replace(options, steps=1, device="cpu")
    found = compare(
        recipe, ["label_smoothing"], config=config, options=few, on_run=lambda name, x: seen.append(x.system) or ()
    )
    assert {type(system).__name__ for system in seen} == {"DenseNet"}
    assert set(found.scores) == {"plain", "label_smoothing"}
