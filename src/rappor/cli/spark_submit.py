"""The `rappor` command as a file for spark-submit, which starts files and not commands.

    spark-submit FILE aggregate s3://bucket/lake --engine spark --output counts.npz

`python -m rappor.cli.spark_submit` prints where FILE is. The master and the resources are those of
spark-submit; --master is not needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

_FOLDER = str(Path(__file__).parent)


def main() -> int:
    """Run the command, or say where this file is."""
    if len(sys.argv) == 1:
        sys.stdout.write(f"{Path(__file__)}\n")
        return 0
    from rappor.cli.main import main as command

    return command()


if __name__ == "__main__":
    # A file's folder is the first place for imports: ours has names that other packages may use.
    sys.path[:] = [place for place in sys.path if place != _FOLDER]
    sys.exit(main())
