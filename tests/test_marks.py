"""One recipe for several systems: who is trained, and with whose defaults."""

import pytest

from lemmata.marks import recipe, recipe_for, usual_settings

SIZES = {"small": 1, "large": 9}


@recipe("small", "large", data="digits", metric="accuracy")
@recipe("small", "large", data="moons", metric="error")
def several(data="digits", config=SIZES, options="usual", system="small"):
    """Train one of two."""
    return data, config, options, system


@recipe("alone", data="digits", metric="accuracy")
def alone(data="digits", config=3, options=None):
    return data, config, options


def test_each_system_has_its_own_defaults():
    assert several() == ("digits", 1, "usual", "small")
    assert several(system="large") == ("digits", 9, "usual", "large")
    assert several("moons", 5, "others", "large") == ("moons", 5, "others", "large")
    assert [usual_settings(several, name) for name in SIZES] == [(1, "usual"), (9, "usual")]


def test_a_recipe_for_one_system_is_called_like_any_other():
    assert recipe_for(several, "large")("moons", config=5, options=None) == ("moons", 5, None, "large")
    assert recipe_for(several, "large").__doc__ == "Train one of two."
    assert usual_settings(recipe_for(several, "large"), "large") == (9, "usual")
    assert recipe_for(alone, "alone") is alone
    assert usual_settings(alone, "alone") == (3, None)


def test_a_system_that_it_does_not_train_is_named():
    with pytest.raises(ValueError, match="system must be one of small, large, got 'huge'"):
        several(system="huge")
