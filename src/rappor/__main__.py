"""`python -m rappor` is the `rappor` command."""

import sys

from rappor.cli.main import main

sys.exit(main())
