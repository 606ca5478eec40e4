"""What can be learnt, and parameters from goals (§4.1, §4.2 and the appendix)."""

from rappor.planning.cautions import Caution
from rappor.planning.check import Check, Checked
from rappor.planning.found import Found
from rappor.planning.plan import plan
from rappor.planning.plans import Plan, Plans
from rappor.planning.power import Detector, detector

__all__ = ["Caution", "Check", "Checked", "Detector", "Found", "Plan", "Plans", "detector", "plan"]
