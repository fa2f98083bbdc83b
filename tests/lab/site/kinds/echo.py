"""A kind of job for tests: gives back what it got, and tells as many events as it is asked to."""

import os


def perform(parameters, tell):
    for number in range(parameters.get("events", 0)):
        tell({"event": "progress", "number": number, "padding": "x" * parameters.get("padding", 0)})
    return {"echo": parameters, "pid": os.getpid()}
