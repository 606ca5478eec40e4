"""Collections: what clients are asked, one TOML file each. Standard library only."""

from rappor.collection.change import Change, DefinitionDifference, diff
from rappor.collection.definition import Collection, Phase
from rappor.collection.expiry import ExpiryState, announcement, expiring, expiry_state
from rappor.collection.findings import LintFinding
from rappor.collection.lint import lint, lint_all
from rappor.collection.periods import check_period, days_of, period_of
from rappor.collection.registry import Registry

__all__ = [
    "Change",
    "Collection",
    "DefinitionDifference",
    "ExpiryState",
    "LintFinding",
    "Phase",
    "Registry",
    "announcement",
    "check_period",
    "days_of",
    "diff",
    "expiring",
    "expiry_state",
    "lint",
    "lint_all",
    "period_of",
]
