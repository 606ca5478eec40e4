"""The first step of the command: Ctrl-C before the rest is imported ends it with one line."""

import subprocess
import sys

CODE = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "rappor.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from rappor.cli.start import main
sys.exit(main())
"""


def test_ctrl_c_while_python_imports_ends_with_one_line_and_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "rappor: interrupted; nothing was done\n"
