"""`python -m rappor` is the `rappor` command."""

import sys

from rappor.cli.start import main

sys.exit(main())
