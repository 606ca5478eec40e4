"""The attackers of §6 as code: for each an exact figure, a simulation and what it means."""

from rappor.attack.registry import ATTACKS, Attack, run
from rappor.attack.result import AttackFigure, AttackResult, Bound

__all__ = ["ATTACKS", "Attack", "AttackFigure", "AttackResult", "Bound", "run"]
