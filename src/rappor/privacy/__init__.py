"""What a client's reports can reveal (paper §3): ε for every kind, history and ledger."""

from rappor.privacy.crowds import (
    MIN_COHORT,
    SMALL_COHORT,
    hides_a_shared_value,
    identifying_bits,
    reports_in_a_cell,
)
from rappor.privacy.deniability import (
    Deniability,
    candidates_per_pattern,
    deniability,
    patterns,
    signal_bits,
)
from rappor.privacy.enumeration import epsilon_by_enumeration
from rappor.privacy.ledger import Charge, Spent, spent
from rappor.privacy.limits import (
    Detectable,
    critical_value,
    detectable,
    learnable_strings,
    smallest_count,
    standard_error,
)
from rappor.privacy.loss import (
    Step,
    add_up,
    epsilon_history,
    epsilon_infinity,
    epsilon_n,
    epsilon_one,
)
from rappor.privacy.schedule import (
    Schedule,
    epsilon_budget,
    epsilon_changing,
    solve_q,
    spend,
)

__all__ = [
    "MIN_COHORT",
    "SMALL_COHORT",
    "Charge",
    "Deniability",
    "Detectable",
    "Schedule",
    "Spent",
    "Step",
    "add_up",
    "candidates_per_pattern",
    "critical_value",
    "deniability",
    "detectable",
    "epsilon_budget",
    "epsilon_by_enumeration",
    "epsilon_changing",
    "epsilon_history",
    "epsilon_infinity",
    "epsilon_n",
    "epsilon_one",
    "hides_a_shared_value",
    "identifying_bits",
    "learnable_strings",
    "patterns",
    "reports_in_a_cell",
    "signal_bits",
    "smallest_count",
    "solve_q",
    "spend",
    "spent",
    "standard_error",
]
