"""`python3 dev.py torture`: hours of it, to the end whatever falls on the way; the last lines say what did."""

from installation import BIN, Failed, say
from stages import PYTHON, stage

NOTHING_CHOSEN = 5  # pytest's exit code


def main() -> None:
    fell = []
    for title, command in (
        ("every claim, sixteen seeds", [BIN / "lemmata", "check", "--all", "--fresh", "--seeds", 16]),
        (
            "fuzzed calls of the C kernels under AddressSanitizer",
            [PYTHON, "-m", "tests.fast.fuzz", "--calls", 10000, "--address"],
        ),
        ("mutation", [PYTHON, "dev.py", "mutate", "--all"]),
        ("long tests", [PYTHON, "-m", "pytest", "-m", "long"]),
    ):
        try:
            stage(title, *command)
        except Failed as failure:
            if title != "long tests" or failure.code != NOTHING_CHOSEN:
                fell.append(str(failure))
    if fell:
        raise Failed("\n".join(fell))
    say("\nNothing fell.")
