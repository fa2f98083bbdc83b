"""`for_each`: many cases in one test that names those that fell."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

MOST_NAMED = 20


def for_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What `pytest.mark.parametrize` does, in one item: hundreds of them would be counted, sent and printed in vain.

    Every case runs, each with the same random numbers; the failure lists the cases that fell, and shows the first.
    """
    keys, found = ([names] if isinstance(names, str) else list(names)), list(cases)

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            fell: dict[str, Exception] = {}
            for case in found:
                torch.manual_seed(0)
                try:
                    test(**given, **dict(zip(keys, case if len(keys) > 1 else [case], strict=True)))
                except Exception as error:
                    fell[str(case)] = error
            if fell:
                named = list(fell.items())[:MOST_NAMED]
                lines = [f"  {case}: {type(error).__name__}: {error}" for case, error in named]
                raise AssertionError("\n".join([f"{len(fell)} of {len(found)} fell:", *lines])) from named[0][1]
            assert found, "there is nothing to test"

        asked = inspect.signature(test)
        others = [parameter for name, parameter in asked.parameters.items() if name not in keys]
        run.__signature__ = asked.replace(parameters=others)  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return wrap
