"""The look of the pages: one style sheet from the tokens of `rappor.charts.theme`, and dark charts.

For `rappor reproduce` and `make regtest`. Pages have no script and load nothing from elsewhere.
Light or dark follows the reader's system; paper is always light.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from rappor.charts.theme import FONT, MONO, TOKENS, Spec, colours

_RULES = """
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--bg); color: var(--text); font: 16px/1.55 FONT; }
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.75rem; }
footer { padding-top: 1.5rem; padding-bottom: 3rem; color: var(--muted); font-size: .875rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .25rem 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; scroll-margin-top: 1rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0 .75rem; }
a { color: var(--accent); text-underline-offset: .15em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.source, .note { color: var(--muted); font-size: .875rem; }
.label { background: var(--warn-bg); color: var(--warn); border-left: 4px solid var(--warn);
  padding: .6rem .9rem; border-radius: 0 6px 6px 0; max-width: 46rem; }
.failed { background: var(--bad-bg); color: var(--bad); border-left: 4px solid var(--bad);
  padding: .6rem .9rem; border-radius: 0 6px 6px 0; max-width: 46rem; overflow-wrap: anywhere; }
nav.contents { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: .75rem 1.25rem; margin: 1.25rem 0; }
nav.contents ul { margin: 0; padding: 0; list-style: none; display: grid; gap: .2rem 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); }
nav.contents .note { white-space: nowrap; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
caption { text-align: left; color: var(--muted); font-size: .875rem; padding-bottom: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; font-size: .8125rem; }
tbody th { color: var(--text); font-size: inherit; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdicts { table-layout: fixed; }
.verdicts thead th:nth-child(1) { width: 18%; } .verdicts thead th:nth-child(2) { width: 16%; }
.verdicts thead th:nth-child(3) { width: 23%; } .verdicts thead th:nth-child(4) { width: 11%; }
.data { width: auto; }
.data td, .data th { white-space: nowrap; padding-right: 2rem; }
.verdict { display: inline-block; padding: .05rem .55rem; border-radius: 999px; font-weight: 600;
  font-size: .8125rem; white-space: nowrap; }
.agrees { background: var(--ok-bg); color: var(--ok); }
.differs { background: var(--warn-bg); color: var(--warn); }
.extra { background: var(--surface); color: var(--muted); }
.failure { background: var(--bad-bg); color: var(--bad); }
figure { margin: 1rem 0 1.5rem; }
figure .scroll { border: 1px solid var(--line); border-radius: 8px; background: var(--bg);
  text-align: center; }
figure img { display: block; height: auto; max-width: 100%; min-width: min(100%, 36rem);
  margin: 0 auto; }
figcaption { color: var(--muted); font-size: .875rem; max-width: 46rem; margin-top: .5rem; }
code { font-family: MONO; font-size: .9em; }
@media (max-width: 44rem) {
  figure img { min-width: 36rem; }
  .verdicts thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts td, .verdicts tbody th {
    display: block; width: auto; }
  .verdicts tr { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem;
    margin-bottom: .75rem; }
  .verdicts td, .verdicts tbody th { border: 0; padding: .1rem 0; }
  .verdicts td[data-label]::before { content: attr(data-label) ": "; color: var(--muted);
    font-size: .8125rem; }
}
@media print {
  body { font-size: 10pt; }
  main, header, footer { max-width: none; padding: 0; }
  nav.contents, .files { display: none; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  figure .scroll { border: 0; }
  a { color: inherit; text-decoration: none; }
}
"""


def whole_page(title: str, parts: Iterable[str], footer: str, rules: str = "") -> str:
    """An HTML document around its parts.

    Args:
        title: of the window; escaped here.
        parts: of the body, in HTML.
        footer: in HTML.
        rules: further rules of style, for this page alone.
    """
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · rappor</title>\n<style>{style_sheet()}{rules}</style></head>\n"
        f"<body>\n{body}\n<footer>{footer}</footer>\n</body></html>\n"
    )


def style_sheet() -> str:
    """The rules of every page, with the colours of both themes."""
    rules = _RULES.replace("FONT", FONT).replace("MONO", MONO)
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_set('dark')} }} }}"
    return f":root {{ {_set('light')} }}\n{dark}{rules}"


def _set(theme: str) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours(theme).items())


def darkened(spec: Spec) -> Spec:
    """The same chart in the dark theme: each colour of the light one is replaced by its partner.

    >>> darkened({"mark": {"color": "#0B62B8"}})
    {'mark': {'color': '#6CB4FF'}}
    """
    partner: dict[str, str] = {}
    for light, dark in TOKENS.values():
        partner.setdefault(light.lower(), dark)  # white is first of all the background
    recoloured: Spec = _recoloured(spec, partner)
    return recoloured


def _recoloured(item: Any, partner: dict[str, str]) -> Any:
    if isinstance(item, dict):
        return {key: _recoloured(value, partner) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_recoloured(value, partner) for value in item]
    return partner.get(item.lower(), item) if isinstance(item, str) else item
