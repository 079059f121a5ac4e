"""`python -m lexinvariant` is the command line."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, which -m puts first: anyone's numpy.py may lie there

from lexinvariant.cli.main import main

sys.exit(main())
