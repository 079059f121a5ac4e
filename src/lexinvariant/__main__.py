"""`python -m lexinvariant` is the command line."""

import sys

from lexinvariant.cli.main import main

sys.exit(main())
