"""`.. public-names:: rappor.privacy`: the public names of a package, each from its docstring.

A name that was described further up is linked to, not described twice.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_DESCRIBED = "rappor_described"  # of the page so far: an object -> the name it is described under
_MAX_VALUE = 60  # characters of a constant


class PublicNames(SphinxDirective):
    """Describe the names in a module's `__all__`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write autodoc's directives for the names, and parse them."""
        module = importlib.import_module(self.arguments[0])
        lines = [(inspect.getdoc(module) or "").partition("\n")[0], ""]
        lines += [line for name in module.__all__ for line in self._lines(module, name)]
        found = nodes.container()
        self.state.nested_parse(StringList(lines, source=module.__name__), 0, found)
        return list(found.children)

    def _lines(self, module: ModuleType, name: str) -> list[str]:
        value, full = getattr(module, name), f"{module.__name__}.{name}"
        if isinstance(value, ModuleType):
            return [f"`{full}`: a package, below.", ""]
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            text = repr(value)
            shown = [f"   :value: {text}"] if len(text) <= _MAX_VALUE else []
            return [f".. py:data:: {full}", f"   :type: {type(value).__name__}", *shown, ""]
        role, directive = (
            ("class", "autoclass") if inspect.isclass(value) else ("func", "autofunction")
        )
        described: dict[object, str] = self.env.temp_data.setdefault(_DESCRIBED, {})
        if value in described:
            return [f"`{full}`: :py:{role}:`{described[value]}`", ""]
        described[value] = full
        members = ["   :members:"] if inspect.isclass(value) else []
        return [f".. {directive}:: {full}", *members, ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
