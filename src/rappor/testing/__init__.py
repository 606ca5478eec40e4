"""For tests only: a collector in memory, a clock to set, repeatable randomness.

No client imports it. The pytest fixtures are in `rappor.testing.fixtures` (docs/client.md).
"""

from rappor.testing.collector import BitCounts, MemoryCollector
from rappor.testing.entropy import ScriptedEntropy, SeededEntropy
from rappor.testing.manual_clock import ManualClock

__all__ = ["BitCounts", "ManualClock", "MemoryCollector", "ScriptedEntropy", "SeededEntropy"]
