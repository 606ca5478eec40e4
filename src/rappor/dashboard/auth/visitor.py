"""Visitor: who asks, as every page is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from rappor.dashboard.auth.roles import PUBLIC, Role


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks.

    Attributes:
        name: the account's name; empty where nobody is logged in.
        role: its role; None where nobody is logged in.
        csrf: what a form of this visitor has to bring back.
        theme: light, dark, or empty where the browser decides.
        keys: whether keyboard shortcuts are on.
    """

    name: str = ""
    role: Role | None = None
    csrf: str = field(default="", repr=False)
    theme: str = ""
    keys: bool = True

    def may(self, roles: frozenset[Role]) -> bool:
        """Whether a page for these roles opens.

        >>> Visitor("ada", Role.VIEWER).may(frozenset({Role.ANALYST}))
        False
        """
        return roles is PUBLIC or (self.role is not None and self.role in roles)

    @property
    def actor(self) -> str:
        """How the audit log names them.

        >>> Visitor("ada", Role.ANALYST).actor
        'analyst ada'
        """
        return f"{self.role} {self.name}" if self.role is not None else "nobody"
