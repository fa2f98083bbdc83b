"""Constructors that take their parameters from a Config: the source is what the Config declares."""

import ast
import dataclasses
import re
from collections.abc import Sequence

import pytest

from lemmata.signatures import HERE, config_of, rewritten, signed_files, write_signatures

CONFIG = '''from collections.abc import Sequence
from dataclasses import dataclass

from lemmata.signatures import config_of


@dataclass(frozen=True)
class NetConfig:
    """Configuration of a net."""

    width: int = 8
    """Units of each layer."""
    rates: tuple[float, ...] = (0.1, 0.2)


'''
NET = """class Net:
    def __init__(
        self,
        inputs: int,
        width: int = NetConfig.width,
        rates: Sequence[float] = NetConfig.rates,
        device: str | None = None,
    ) -> None:
        self.config = config_of(NetConfig, locals())
"""


@pytest.fixture
def written(tmp_path):
    """What the generator makes of a source, in a package of its own."""

    def of(source, name="net"):
        root = tmp_path / "house"
        root.mkdir(exist_ok=True)
        (root / f"{name}.py").write_text(source)
        return rewritten(root / f"{name}.py", root)

    return of


@pytest.mark.parametrize("path", signed_files(), ids=lambda path: path.stem)
def test_constructors_have_the_parameters_of_their_configs(path):
    assert path.read_text(encoding="utf-8") == rewritten(path), "run `python3 dev.py lint --fix`"


def test_no_default_of_a_config_is_written_by_hand():
    signed, by_hand = set(signed_files()), []
    for path in sorted(HERE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                defaults = [value for value in (*node.args.defaults, *node.args.kw_defaults) if value is not None]
                texts = [ast.unparse(value) for value in defaults if isinstance(value, ast.Attribute)]
                hand = node.name != "__init__" or path not in signed
                by_hand += [f"{path.name}: {text}" for text in texts if "Config." in text and hand]
    assert not by_hand


def test_a_right_signature_stays_as_it_is(written):
    assert written(CONFIG + NET) == CONFIG + NET


def test_a_new_field_appears_where_the_config_has_it(written):
    grown = CONFIG.replace("    rates:", '    depth: int | None = None\n    """Number of layers."""\n    rates:')
    wanted = NET.replace("        rates:", "        depth: int | None = NetConfig.depth,\n        rates:")
    assert written(grown + NET) == grown + wanted


def test_a_removed_field_goes(written):
    shrunk = CONFIG.replace('    width: int = 8\n    """Units of each layer."""\n', "")
    assert written(shrunk + NET) == shrunk + NET.replace("        width: int = NetConfig.width,\n", "")


def test_order_type_and_default_are_the_configs(written):
    careless = NET.replace("        width: int = NetConfig.width,\n", "").replace(
        "        device", "        width: float = 8,\n        device"
    )
    assert written(CONFIG + careless) == CONFIG + NET


def test_a_constructor_without_them_has_them_before_the_device(written):
    bare = "".join(line for line in NET.splitlines(keepends=True) if "NetConfig." not in line)
    assert written(CONFIG + bare) == CONFIG + NET


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        ("*, device: str = 'cpu'", ["width", "rates", "*", "device: str = 'cpu'"]),
        ("*words: str, deep=1, **more: int", ["width", "rates", "*words: str", "deep=1", "**more: int"]),
        ("width, /, x: int = 2", ["width", "rates", "/", "x: int = 2"]),
    ],
)
def test_what_is_the_constructors_own_is_kept(written, own, kept):
    head = "class Net:\n    def __init__(self, inputs: int, "
    made = written(f"{CONFIG}{head}{own}) -> None:\n        config_of(NetConfig, locals())\n")
    lines = [line.strip() for line in made.partition("__init__(\n")[2].partition("    ) ->")[0].splitlines()]
    assert [line.partition(":")[0] if "NetConfig." in line else line.rstrip(",") for line in lines] == [
        "self", "inputs: int", *kept
    ]  # fmt: skip
    ast.parse(made)
    assert written(made) == made


def test_a_field_without_default_is_a_parameter_without_one(written):
    required = CONFIG.replace("width: int = 8", "width: int")
    assert written(required + NET) == required + NET.replace("width: int = NetConfig.width", "width: int")


def test_a_config_may_be_inherited_and_imported(written):
    written(CONFIG, "config")
    wider = "@dataclass(frozen=True)\nclass WideConfig(NetConfig):\n    bias: bool = True\n\n\n"
    head = "from dataclasses import dataclass\n\nfrom house.config import NetConfig\n\n\n"
    made = written(head + wider + NET.replace("NetConfig", "WideConfig"))
    assert "        rates: Sequence[float] = WideConfig.rates,\n        bias: bool = WideConfig.bias,\n" in made
    assert written(head + NET) == head + NET
    two = "class Deep:\n    depth: int = 2\n\n\nclass BothConfig(Deep, NetConfig):\n    pass\n\n\n"
    made = written(head + two + NET.replace("NetConfig", "BothConfig"))
    assert re.findall(r"BothConfig\.(\w+)", made) == ["width", "rates", "depth"]  # the order of dataclasses.fields


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (NET, "must define NetConfig, or import it from the file that does"),
        (CONFIG.replace("(0.1, 0.2)", "field(default=())") + NET, "NetConfig.rates must have a plain default"),
        (CONFIG + NET.replace("inputs: int,", "inputs: int,  # features"), "line 19: move the comment out"),
    ],
)
def test_what_cannot_be_written_is_refused(written, source, message):
    with pytest.raises(ValueError, match=message):
        written(source)


def test_only_what_differs_is_written(tmp_path):
    root = tmp_path / "house"
    root.mkdir()
    right, wrong, other = (root / f"{name}.py" for name in ("right", "wrong", "other"))
    right.write_text(CONFIG + NET)
    wrong.write_text(CONFIG + NET.replace("width: int = NetConfig.width", "width: int = 9"))
    other.write_text("text = 'config_of('\n")
    assert signed_files(root) == [right, wrong]
    before = right.stat().st_mtime_ns
    write_signatures(root)
    assert wrong.read_text() == right.read_text() == CONFIG + NET
    assert right.stat().st_mtime_ns == before


@dataclasses.dataclass(frozen=True)
class Chosen:
    width: int = 8
    rates: tuple[float, ...] = ()

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"width must be >= 1, got {self.width}")


class Net:
    def __init__(self, inputs: int, width: int = Chosen.width, rates: Sequence[float] = Chosen.rates):
        self.config = config_of(Chosen, locals())


def test_a_config_is_collected_from_the_arguments():
    assert Net(3).config == Chosen()
    assert Net(3, 5, rates=[0.5]).config == Chosen(5, (0.5,))  # JSON knows lists only
    with pytest.raises(ValueError, match="width must be >= 1, got 0"):
        Net(3, width=0)
