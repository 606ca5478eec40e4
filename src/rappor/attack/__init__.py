"""The attackers as code (paper §6): for each an exact figure, a simulation and what it means."""

from rappor.attack.finding import AttackFigure, AttackResult, Bound
from rappor.attack.registry import ATTACKS, Attack, run

__all__ = ["ATTACKS", "Attack", "AttackFigure", "AttackResult", "Bound", "run"]
