"""What child processes do: one file per kind of job, with `perform(parameters, tell) -> dict`.

The kind is called like its file; folders are rooms of labs.
`parameters` and the answer are plain JSON; `tell({"event": "progress", ...})` sends
news to the page at once. A job runs in the main thread; SIGTERM asks it to stop, and two seconds later it is killed.
"""

import pkgutil
from collections.abc import Iterable


def kinds(folders: Iterable[str] = ()) -> set[str]:
    """The kinds of work there are, by the names of the files here and in further folders; none is imported."""
    return {module.name for module in pkgutil.iter_modules([*__path__, *folders]) if not module.ispkg}
