"""Small entries with every kind of contender, written where entries are looked for."""

import textwrap

import pytest

from lemmata.bench import registry, rounds

IMPORTS = "from lemmata.bench.registry import agreement, entry, limit, ours, peer\n"
SUMS = """
    @entry(
        "sums", title="Sums", measures="one sum", devices="cpu",
        cases={"small": "100 numbers", "large": "10,000 numbers"}, targets={"loop": 1e9, "absent": 1.0},
    )
    def numbers(case, device):
        return list(range({"small": 100, "large": 10_000}[case]))

    @ours("lemmata")
    def builtin(numbers):
        print('{"ready": false}', flush=True)
        return lambda: sum(numbers)

    @peer("loop", cases="small")
    def loop(numbers):
        def add():
            total = 0
            for number in numbers:
                total += number
            return total
        return add

    @peer("absent", needs="a-package-that-nobody-has")
    def absent(numbers):
        raise AssertionError("must not be called")

    @limit("counting them")
    def counting(numbers):
        return lambda: len(numbers)

    @agreement(within=1e-9)
    def total(result):
        return {"total": result}
"""
BAD = """
    import os

    @entry("bad", title="Bad", measures="nothing", cases={"only": "1 number"}, targets={"liar": 1.0})
    def problem(case, device):
        return 1

    @ours("lemmata")
    def honest(problem):
        return lambda: problem

    @peer("liar")
    def liar(problem):
        return lambda: problem + 1

    @peer("unprepared")
    def unprepared(problem):
        raise FileNotFoundError("no\\nsuch file")

    @peer("late")
    def late(problem):
        left = [1.0, 1.0]  # for the warm-up and one repeat more

        class Answer:
            def __float__(self):  # asked for once in a repeat, however many calls that has
                return left.pop()

        def work():
            if not left:
                raise StopIteration
            return Answer()
        return work

    @peer("nowhere")
    def nowhere(problem):
        return lambda: float("nan")

    @peer("dead")
    def dead(problem):
        def work():
            os.write(2, b"gone\\n")
            os._exit(3)
        return work

    @agreement(within=0.0)
    def itself(result):
        return {"number": result}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A function that writes entries into the folder where they are now looked for; five repeats must do."""
    monkeypatch.setattr(registry, "FOLDER", tmp_path)
    monkeypatch.setattr(rounds, "MOST", rounds.LEAST)

    def write(**files):
        for stem, text in files.items():
            (tmp_path / f"{stem}.py").write_text(IMPORTS + textwrap.dedent(text))
        return registry.entries()

    yield write
    registry._read_entries.cache_clear()


@pytest.fixture
def sums(folder):
    """An entry where all goes well, but for a peer that is not installed."""
    return folder(sums=SUMS)["sums"]


@pytest.fixture
def bad(folder):
    """An entry whose peers fail or lie, each in its own way."""
    return folder(bad=BAD)["bad"]
