"""A user's own data: tables, arrays and folders of pictures, how they are prepared, and all that can be wrong."""

import json

import numpy as np
import pytest
import torch

from lemmata.data import FileChoices, Preparation, load, load_file, read_table

ROWS = [("red", 1.5, 2, "yes"), ("blue", 2.5, 4, "no"), ("red", 3.5, 6, "no"), ("green", 4.5, 8, "yes")] * 5
HEAD = "colour,size,count,good"


def write(path, rows=ROWS, head=HEAD, parted=","):
    lines = [head.replace(",", parted)] if head else []
    path.write_text("\n".join([*lines, *(parted.join(map(str, row)) for row in rows)]) + "\n")
    return path


# --- Tables ---


def test_a_table_is_split_by_class_and_standardised_by_its_training_part(tmp_path):
    data = load_file(write(tmp_path / "mine.csv"))
    assert (data.name, data.classes, len(data.train), len(data.test)) == ("mine", ("no", "yes"), 16, 4)
    assert torch.bincount(data.test.y).tolist() == [2, 2]
    colours, numbers = data.train.x[:, :3], data.train.x[:, 3:]
    assert torch.equal(colours.sum(1), torch.ones(16))  # one of blue, green and red
    assert numbers.mean(0).abs().max() < 1e-6
    assert (numbers.std(0, correction=0) - 1).abs().max() < 1e-6
    kept = data.extra["preparation"]
    assert [column.name for column in kept.columns] == ["colour", "size", "count"]
    assert kept.columns[0].categories == ("blue", "green", "red")
    again = load_file(tmp_path / "mine.csv")
    assert torch.equal(again.train.x, data.train.x)
    assert not torch.equal(load_file(tmp_path / "mine.csv", seed=1).train.x, data.train.x)


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_a_preparation_reads_new_rows_after_a_visit_to_json(tmp_path, parted):
    data = load_file(write(tmp_path / "mine.csv"))
    kept = Preparation.from_json(json.loads(json.dumps(data.extra["preparation"].to_json())))
    assert kept == data.extra["preparation"]
    rows = [(count, colour, size) for colour, size, count, _ in ROWS]  # columns are found by their names
    new = kept.read(write(tmp_path / "new.csv", rows, "count,colour,size", parted))
    assert list(new.columns) == ["x"]
    whole = kept.read(tmp_path / "mine.csv")
    assert torch.equal(new.x, whole.x)
    assert whole.y.tolist() == [int(row[3] == "yes") for row in ROWS]
    one = kept.placeholder()
    assert (one.train.x.shape, one.classes) == ((1, 5), ("no", "yes"))


def test_a_target_of_numbers_is_standardised_and_told_in_its_own_unit(tmp_path):
    rows = [(k, 100.0 + 2.5 * k) for k in range(40)]
    data = load_file(write(tmp_path / "a.csv", rows, "k,price"))
    assert not data.classes
    kept = data.extra["preparation"]
    assert kept.value(data.train.y).mean() == pytest.approx(kept.target.mean)
    everything = kept.read(tmp_path / "a.csv")
    assert kept.value(everything.y).tolist() == pytest.approx([price for _, price in rows], rel=1e-6)


def test_a_table_without_names_and_other_choices(tmp_path):
    path = write(tmp_path / "a.csv", head="")
    data = load_file(path, FileChoices(target="1", exclude=("column 3", "4")))
    assert data.classes == ("blue", "green", "red")
    kept = data.extra["preparation"]
    assert [column.name for column in kept.columns] == ["column 2"]
    assert kept.read(path).y.tolist() == [{"blue": 0, "green": 1, "red": 2}[row[0]] for row in ROWS]
    alone = write(tmp_path / "b.csv", [(size,) for _, size, _, _ in ROWS], "")
    assert torch.equal(kept.read(alone).x, kept.read(path).x)  # by order, where there are no names
    counts = load_file(path, FileChoices(target="3"))
    assert counts.classes == ("2", "4", "6", "8")
    assert not load_file(path, FileChoices(target="3", task="regression")).classes


def test_the_lines_of_a_table_are_those_of_the_file(tmp_path):
    (tmp_path / "a.csv").write_text('\ufeffa,"b, c"\n1,"two\nlines"\n\n3,x\n')
    table = read_table(tmp_path / "a.csv")
    assert (table.names, table.lines, table.rows[0][1]) == (("a", "b, c"), [3, 5], "two\nlines")


def changed(row, column, cell, count=1):
    rows = [list(each) for each in ROWS]
    for k in range(count):
        rows[row + k][column] = cell
    return rows


BAD_TABLES = [
    (changed(2, 1, ""), HEAD, {}, "a.csv, line 4: size is missing; fill it in, remove the lines, or exclude size"),
    (changed(2, 1, "NA", 7), HEAD, {}, "a.csv, lines 4, 5, 6, 7, 8, ...: size is missing"),
    (changed(2, 1, "abc"), HEAD, {}, "a.csv, line 4, column size: 'abc' is no finite number, as the others are"),
    (changed(2, 1, "inf"), HEAD, {}, "a.csv, line 4, column size: 'inf' is no finite number"),
    ([*ROWS, ("red", 1)], HEAD, {}, "a.csv, line 22: it has 2 cells, not 4 as the first line"),
    (ROWS, "colour,size,size,good", {}, "a.csv, line 1: two columns are called size: rename one"),
    (ROWS, "colour,,count,good", {}, "a.csv, line 1: column 2 has no name"),
    ([], HEAD, {}, "a.csv has names but no rows"),
    ([], "", {}, "a.csv is empty"),
    (ROWS, HEAD, {"target": "goodd"}, "a.csv has no column 'goodd': did you mean good?"),
    (ROWS, HEAD, {"target": "9"}, "a.csv has no column '9': there are colour, size, count, good"),
    (ROWS, HEAD, {"exclude": ("colour", "size", "count")}, "a.csv has no column to learn from beside good"),
    (ROWS, HEAD, {"task": "regression"}, "good holds names, such as 'yes': task cannot be regression"),
    (ROWS, HEAD, {"task": "other"}, "task must be auto, classification or regression, got 'other'"),
    (ROWS, HEAD, {"test_fraction": 1.0}, "test_fraction must be between 0 and 1, got 1.0"),
    ([(*row[:3], "yes") for row in ROWS], HEAD, {}, "good is yes everywhere: there is nothing to learn"),
    ([(*row[:3], 1.5) for row in ROWS], HEAD, {}, "good is 1.5 everywhere: there is nothing to learn"),
    (
        [(*row[:3], f"n{k}") for k, row in enumerate(ROWS)],
        HEAD,
        {},
        "good has 20 classes in 20 examples",
    ),
    ([(f"id{k}", k % 2) for k in range(60)], "id,y", {}, "column id holds 60 different texts in 60 rows"),
    (ROWS[:2], HEAD, {}, "a.csv: good has 2 classes in 2 examples: choose another target"),
    ([(1, 0.5), (2, 0.7)], "a,b", {}, "a.csv has 2 examples, too few for training and test: add some"),
]


@pytest.mark.parametrize(("rows", "head", "choices", "message"), BAD_TABLES)
def test_what_is_wrong_with_a_table_is_told_by_file_line_and_column(tmp_path, rows, head, choices, message):
    path = write(tmp_path / "a.csv", rows, head)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is looked at below
        load_file(path, FileChoices(**choices))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_decimals_with_a_comma_and_foreign_bytes_are_told(tmp_path):
    path = write(tmp_path / "a.csv", [("1,5", "yes"), ("2,5", "no")] * 5, "size,good", ";")
    with pytest.raises(ValueError, match=r"a\.csv, line 2, column size: write decimals with a point, as 1\.5"):
        load_file(path)
    path = write(tmp_path / "b.csv", [("1", "0,5"), ("2", "2,5")] * 5, "size,price", ";")
    with pytest.raises(ValueError, match=r"b\.csv: price holds 0,5: write decimals with a point, as 1\.5"):
        load_file(path)
    path = tmp_path / "a.csv"
    path.write_bytes("größe,y\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.csv is not text in UTF-8 \(byte 2\): save it as CSV UTF-8"):
        load_file(path)
    path.write_bytes(b"a,b\n1\0,2\n")
    with pytest.raises(ValueError, match="it holds bytes that are no text"):
        load_file(path)


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        (
            [("pink", 1, 1)],
            "colour,size,count",
            "new.csv, line 2, column colour: 'pink' is unknown, known are blue",
        ),
        ([("red", "big", 1)], "colour,size,count", "new.csv, line 2, column size: 'big' is no number"),
        ([("red", 1)], "colour,size", "new.csv has no column 'count', which was learnt from: add it"),
        ([("red", 1)], "", "new.csv has 2 columns without names, 3 were learnt from: colour, size, count"),
        ([("red", 1, 1, "perhaps")], HEAD, "good 'perhaps' is no class that was learnt: no, yes"),
    ],
)
def test_rows_that_do_not_fit_are_told(tmp_path, rows, head, message):
    kept = load_file(write(tmp_path / "mine.csv")).extra["preparation"]
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        kept.read(write(tmp_path / "new.csv", rows, head))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "x"},
        {"columns": []},
        {"columns": 5},
        {"shape": ["a"]},
        {"shape": [-1]},
        {"target": {}},
        {"columns": None},
    ]
    + [{"target": {"name": "y", "mean": 0, "scale": scale, "categories": None}} for scale in (0, -1, "a", float("nan"))]
    + [{"target": {"name": "y", "mean": 0, "scale": 1, "categories": names}} for names in ([], [1], 5)],
)
def test_a_damaged_preparation_is_refused_in_one_sentence(tmp_path, change):
    told = load_file(write(tmp_path / "mine.csv")).extra["preparation"].to_json()
    with pytest.raises(ValueError, match="its preparation is damaged"):
        Preparation.from_json(told | change)


# --- Arrays ---


def test_arrays_keep_their_shape_and_are_standardised(tmp_path):
    digits = load("digits").train
    np.savez(tmp_path / "a.npz", x=digits.x.numpy() * 16, y=digits.y.numpy())
    data = load_file(tmp_path / "a.npz")
    assert data.train.x.shape[1:] == (8, 8)
    assert data.classes == tuple("0123456789")
    assert data.train.x.mean().abs() < 1e-5
    kept = data.extra["preparation"]
    np.save(tmp_path / "one.npy", digits.x[0].numpy() * 16)
    assert torch.allclose(kept.read(tmp_path / "one.npy").x[0], kept.read(tmp_path / "a.npz").x[0])
    np.savez(tmp_path / "names.npz", x=np.random.default_rng(0).random((20, 3)), y=np.array(["b", "a"] * 10))
    assert load_file(tmp_path / "names.npz").classes == ("a", "b")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.zeros(3)}, "has no array x, only z"),
        ({"x": np.zeros((3, 2))}, "has no array y to be predicted, only x"),
        (
            {"x": np.zeros(3), "y": np.zeros(3)},
            r"x must be \(examples, ...\) and y \(examples,\), got \(3,\) and \(3,\)",
        ),
        ({"x": np.zeros((3, 2)), "y": np.zeros(2)}, r"got \(3, 2\) and \(2,\)"),
        ({"x": np.array([["a"]] * 20), "y": np.arange(20) % 2}, "x must hold numbers, got <U1"),
        ({"x": np.full((20, 2), np.nan), "y": np.arange(20) % 2}, "x must be finite, found 40 values that are not"),
        ({"x": np.zeros((20, 2)), "y": np.full(20, np.inf)}, "y must be finite"),
        (
            {"x": np.array([{}] * 20), "y": np.arange(20)},
            "cannot be read: Object arrays cannot be loaded",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_told(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_file(tmp_path / "a.npz")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no")
    (tmp_path / "a.xlsx").write_bytes(b"no")
    for name, message in (
        ("a.npz", "cannot be read"),
        ("a.xlsx", "must be a .csv or .npz"),
        ("b.csv", "there is no file"),
    ):
        with pytest.raises(ValueError, match=message):
            load_file(tmp_path / name)


# --- Pictures ---


def pgm(picture):
    return f"P5 {picture.shape[1]} {picture.shape[0]} 255\n".encode() + picture.astype(np.uint8).tobytes()


@pytest.fixture
def pictures(tmp_path):
    made = np.random.default_rng(0).integers(0, 256, (12, 5, 7))
    for k, picture in enumerate(made):
        folder = tmp_path / "pics" / ("cat" if k % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{k:02d}.pgm").write_bytes(pgm(picture))
    (tmp_path / "pics" / ".hidden").write_text("not a picture")
    (tmp_path / "pics" / "cat" / "notes.txt").write_text("not a picture")
    return tmp_path / "pics", made


def test_a_folder_has_one_subfolder_for_each_class(pictures):
    folder, made = pictures
    data = load_file(folder)
    assert (data.classes, data.train.x.shape, data.test.x.shape) == (("cat", "dog"), (10, 5, 7), (2, 5, 7))
    kept = data.extra["preparation"]
    everything = kept.read(folder)
    assert everything.y.tolist() == [0] * 6 + [1] * 6
    assert torch.allclose(everything.x[0], torch.from_numpy(made[1] / 255).float())
    one = kept.read(folder / "dog" / "00.pgm")
    assert list(one.columns) == ["x"]
    assert torch.allclose(one.x[0], torch.from_numpy(made[0] / 255).float())


def test_colour_pictures_have_three_planes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for k in range(4):
            text = f"P3 2 1 15\n# made by hand\n{k} 0 0  0 15 {k}\n"
            (tmp_path / name / f"{k}.PPM").write_text(text)
    assert load_file(tmp_path).train.x.shape[1:] == (3, 1, 2)


def test_what_is_wrong_with_pictures_is_told_by_file(pictures):
    folder, _ = pictures
    cases = [
        ("cat/x.gif", b"", r"x\.gif: \.gif images are not read here; convert them to PNG or JPEG"),
        ("cat/x.png", b"none", r"x\.png: the image is no PNG, JPEG, PGM or PPM file"),
        ("cat/x.pgm", pgm(np.zeros((2, 2))), r"x\.pgm is 2 x 2, but 01\.pgm is 7 x 5: bring all"),
        ("x.pgm", pgm(np.zeros((5, 7))), r"x\.pgm lies in no subfolder: make one for each class"),
    ]
    for name, content, message in cases:
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load_file(folder)
        (folder / name).unlink()
    with pytest.raises(ValueError, match="task cannot be regression"):
        load_file(folder, FileChoices(task="regression"))
    empty = folder.parent / "none"
    empty.mkdir()
    with pytest.raises(
        ValueError, match=r"holds no image: \.png, \.jpg, \.pgm or \.ppm files in one subfolder for each"
    ):
        load_file(empty)
