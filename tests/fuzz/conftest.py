"""Bad input by the thousand: a few dozen of each kind in every test run, the same ones each time; as many as
LEXINVARIANT_FUZZ says in `make soak`, and others each time.
"""

import os

from hypothesis import HealthCheck, settings

MORE = int(os.environ.get("LEXINVARIANT_FUZZ", "0"))

settings.register_profile(
    "fuzz",
    max_examples=MORE or 40,
    derandomize=not MORE,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
