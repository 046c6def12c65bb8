"""`python -m opmux`: the same as the `opmux` command."""

import sys

from ._command import main

sys.exit(main())
