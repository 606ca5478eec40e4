"""What happens to one value on a client (paper §2). Standard library only, pure functions."""

from rappor.mechanism.bloom import bloom_positions, filter_bits
from rappor.mechanism.channel import Channel, channel, expected_ones
from rappor.mechanism.dialects import DIALECTS
from rappor.mechanism.encoder import Encoder, Trace
from rappor.mechanism.entropy import Entropy, new_secret
from rappor.mechanism.kinds import KINDS, BitChange, extreme_changes
from rappor.mechanism.memo import derive_cohort, memo_digest
from rappor.mechanism.onetime import OneTime, Slot
from rappor.mechanism.predicates import Ranges
from rappor.mechanism.report import Report
from rappor.mechanism.views import Field, View, Views

__all__ = [
    "DIALECTS",
    "KINDS",
    "BitChange",
    "Channel",
    "Encoder",
    "Entropy",
    "Field",
    "OneTime",
    "Ranges",
    "Report",
    "Slot",
    "Trace",
    "View",
    "Views",
    "bloom_positions",
    "channel",
    "derive_cohort",
    "expected_ones",
    "extreme_changes",
    "filter_bits",
    "memo_digest",
    "new_secret",
]
