"""`rappor completion SHELL`: a tab-completion script, generated from the parser."""

from __future__ import annotations

import argparse
from typing import Any

from rappor.cli.output import say

# Options whose values are files.
_FILES = (
    *("--params", "--secret-file", "--counts", "--candidates", "--map", "--output", "--plot"),
    *("--truth", "--data"),
)


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "completion",
        help="print a tab-completion script for a shell",
        description="Print a completion script. bash: source <(rappor completion bash); "
        "zsh: source <(rappor completion zsh); fish: rappor completion fish | source",
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")
    parser.set_defaults(run=run, verbs=verbs)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    words = _words(args.verbs)
    say(_fish(words) if args.shell == "fish" else _bash(words, zsh=args.shell == "zsh"))
    return 0


def _words(verbs: Any) -> dict[str, list[str]]:
    """The options and fixed arguments of each verb."""
    words = {}
    for name, parser in verbs.choices.items():
        known: list[str] = []
        for action in parser._actions:
            known += action.option_strings
            if not action.option_strings and action.choices:
                known += action.choices
        words[name] = known
    return words


def _choices() -> dict[str, str]:
    """Options whose values are known."""
    from rappor.decoding.options import CORRECTIONS, METHODS, STRENGTHS
    from rappor.mechanism import DIALECTS, KINDS
    from rappor.params import PRESETS

    return {
        "--preset": " ".join(PRESETS),
        "--kind": " ".join(KINDS),
        "--dialect": " ".join(DIALECTS),
        "--correction": " ".join(CORRECTIONS),
        "--method": " ".join(METHODS),
        "--smooth": " ".join(("auto", *STRENGTHS)),
        "--overlap": "bound none",
    }


def _bash(words: dict[str, list[str]], zsh: bool) -> str:
    values = "\n".join(
        f'    {option}) COMPREPLY=($(compgen -W "{known}" -- "$word")); return ;;'
        for option, known in _choices().items()
    )
    values += f'\n    {"|".join(_FILES)}) COMPREPLY=($(compgen -f -- "$word")); return ;;'
    cases = "\n".join(f'    {verb}) known="{" ".join(found)}" ;;' for verb, found in words.items())
    start = "autoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{start}_rappor() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} known=""
  COMPREPLY=()
  case ${{COMP_WORDS[COMP_CWORD-1]}} in
{values}
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then known="{" ".join(words)} --help --version"; fi
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}}
complete -o default -F _rappor rappor"""


def _fish(words: dict[str, list[str]]) -> str:
    lines = ["complete -c rappor -f"]
    lines += [f"complete -c rappor -n __fish_use_subcommand -a {verb}" for verb in words]
    choices = _choices()
    for verb, found in words.items():
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        for word in found:
            if not word.startswith("--"):
                if not word.startswith("-"):
                    lines.append(f"complete -c rappor {seen} -a {word}")
                continue
            known = f" -x -a '{choices[word]}'" if word in choices else ""
            if word in _FILES:
                known = " -r -F"
            lines.append(f"complete -c rappor {seen} -l {word[2:]}{known}")
    return "\n".join(lines)
