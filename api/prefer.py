"""The header ``Prefer`` (RFC 7240), as far as it is understood here."""

import re
from collections.abc import Sequence

_WAIT = re.compile(r"wait\s*=\s*\"?([0-9]{1,9})\"?", re.IGNORECASE)


def wait_s(headers: Sequence[str], *, most_s: int) -> int | None:
    """Return for how long a client would wait for an answer, and at most ``most_s`` seconds.

    None: it does not say so, or nobody may wait. A preference that is not understood is passed
    over, as the RFC asks; of several the first one counts.
    """
    for preference in ",".join(headers).split(","):
        # What follows a semicolon are parameters, of which "wait" has none.
        found = _WAIT.fullmatch(preference.partition(";")[0].strip())
        if found is not None:
            return min(int(found[1]), most_s) or None
    return None
