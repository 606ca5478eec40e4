"""Roles, the sets of roles that routes name, and the visitor who has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rappor.checks import show
from rappor.errors import ParamsError


class Role(StrEnum):
    """What a visitor may do; every role sees the collections."""

    VIEWER = "viewer"
    ANALYST = "analyst"
    OPERATOR = "operator"
    OFFICER = "privacy officer"

    @property
    def plural(self) -> str:
        """The plural, capitalised to begin a sentence.

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
        """The roles that this one includes: everybody sees what a viewer sees.

        >>> sorted(Role.OPERATOR.held)
        [<Role.OPERATOR: 'operator'>, <Role.VIEWER: 'viewer'>]
        """
        return frozenset({self, Role.VIEWER})


class _Public(frozenset[Any]):
    """The set of no roles, on purpose: compared by identity, so an empty set by mistake differs."""

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
    """Who sends a request.

    Attributes:
        name: the account's name; empty if nobody is logged in.
        role: its role; None if nobody is logged in.
        csrf: the token that this visitor's forms send back.
        theme: light, dark, or empty if the browser decides.
        keys: whether keyboard shortcuts are on.
    """

    name: str = ""
    role: Role | None = None
    csrf: str = field(default="", repr=False)
    theme: str = ""
    keys: bool = True

    def may(self, roles: frozenset[Role]) -> bool:
        """Whether the visitor may open a page for these roles.

        >>> Visitor("ada", Role.VIEWER).may(frozenset({Role.ANALYST}))
        False
        """
        return roles is PUBLIC or (self.role is not None and self.role in roles)

    @property
    def actor(self) -> str:
        """The visitor's name in the audit log.

        >>> Visitor("ada", Role.ANALYST).actor
        'analyst ada'
        """
        return f"{self.role} {self.name}" if self.role is not None else "nobody"
