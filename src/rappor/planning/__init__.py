"""What can be learnt, and parameters from goals (§4.1, §4.2 and the appendix)."""

from rappor.planning.association_plan import AssociationPlan
from rappor.planning.association_request import AssociationRequest
from rappor.planning.cautions import Caution
from rappor.planning.expected_detections import ExpectedDetections
from rappor.planning.plan import Plan, Plans, plan
from rappor.planning.power import Detector, detector
from rappor.planning.power_check import Checked, PlanCheck
from rappor.planning.request import PlanRequest

__all__ = [
    "AssociationPlan",
    "AssociationRequest",
    "Caution",
    "Checked",
    "Detector",
    "ExpectedDetections",
    "Plan",
    "PlanCheck",
    "PlanRequest",
    "Plans",
    "detector",
    "plan",
]
