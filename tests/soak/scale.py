"""How long a test goes on: a moment in `make test`, and in `make soak` as long as LEXINVARIANT_SOAK says."""

import os

SOAK_SECONDS = float(os.environ.get("LEXINVARIANT_SOAK", "0"))
"""Of load on a server; where this is not zero, other tests do all that they have to do as well."""
SOAK = SOAK_SECONDS > 0
