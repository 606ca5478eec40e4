"""What commands import, and the machine code that they load: see `support.command`."""

import rappor.attack.registry
import rappor.cli.main
import rappor.decoding.decode
import rappor.experiments
import rappor.planning
import rappor.simulate
import rappor.store  # noqa: F401
from rappor import Params
from rappor.aggregate import count, read_csv

_PARAMS = Params(k=8, h=1, m=2, f=0.5, p=0.5, q=0.75)
count(b"\1", 0, _PARAMS)
read_csv.parse_piece(b"a,0,00000001\n", read_csv.CsvColumns(3, 1, 2), _PARAMS)
