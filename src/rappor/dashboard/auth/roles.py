"""Roles, the sets of roles that routes name, and the visitor who has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rappor.checks import show
from rappor.errors import ParamsError


class Role(StrEnum):
    """What a visitor may do; each one sees the collections."""

    VIEWER = "viewer"
    ANALYST = "analyst"
    OPERATOR = "operator"
    OFFICER = "privacy officer"

    @property
    def plural(self) -> str:
        """Several people of this role, to begin a sentence with.

        >>> Role.OFFICER.plural
        'Privacy officers'
        """
        return f"{self.value.capitalize()}s"

    @property
    def article(self) -> str:
        """One person of this role.

        >>> Role.VIEWER.article, Role.OPERATOR.article
        ('a viewer', 'an operator')
        """
        return f"{'an' if self.value[0] in 'ao' else 'a'} {self.value}"

    @property
    def held(self) -> frozenset[Role]:
        """The roles that one has with this one: everybody sees what a viewer sees.

        >>> sorted(Role.OPERATOR.held)
        [<Role.OPERATOR: 'operator'>, <Role.VIEWER: 'viewer'>]
        """
        return frozenset({self, Role.VIEWER})


class _Public(frozenset[Any]):
    """A set of no roles that is meant: an empty set by mistake is not equal to it by identity."""

    __slots__ = ()


EVERYONE: frozenset[Role] = frozenset(Role)


PUBLIC: frozenset[Role] = _Public()  # no login: the login page and static files only


def role_of(text: str) -> Role:
    """The role of a name, or ParamsError.

    >>> role_of("privacy-officer")
    <Role.OFFICER: 'privacy officer'>
    """
    try:
        return Role(text.replace("-", " "))
    except ValueError:
        names = ", ".join(role.value.replace(" ", "-") for role in Role)
        raise ParamsError(f"role must be one of {names}; got {show(text)}") from None


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
