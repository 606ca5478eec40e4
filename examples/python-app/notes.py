"""notes: a small application that reports its theme and the person's editor, if they agree.

python notes.py add "Buy milk"      writes a note
python notes.py list                shows all notes
python notes.py theme dark          chooses a theme
python notes.py privacy             shows what has left this device, bit by bit
python notes.py privacy --off       stops reporting (--on starts it, --forget deletes everything)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path

import rappor

HERE = Path(__file__).parent
THEMES = ("light", "dark", "system")
UPLOAD_TO = os.environ.get("NOTES_UPLOAD_TO")  # your collector: https://reports.example.org
SECONDS_AT_THE_END = 2.0  # to send what is due; what is left is sent after a later start
QUESTION = """May notes tell its authors which theme and which editor you use?
Your device answers with random bits: nobody can be sure of your answer, not even the authors.
'notes privacy' shows what was sent, and 'notes privacy --off' stops it. [y/N] """


class Notes:
    """The notes and settings of one person, in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "notes.json"
        self.data = {"notes": [], "theme": "system", "consent": None}
        with contextlib.suppress(FileNotFoundError):
            self.data |= json.loads(self.file.read_text(encoding="utf-8"))

    def save(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.data, indent=1), encoding="utf-8")


def ask_once(notes: Notes) -> None:
    """Ask for consent the first time; where nobody can answer, there is none."""
    if notes.data["consent"] is None and sys.stdin.isatty():
        notes.data["consent"] = input(QUESTION).strip().lower() in ("y", "yes")
        notes.save()


def open_client(notes: Notes) -> rappor.Client:
    """The client of this person. It does nothing unless they agreed."""
    return rappor.Client.open(
        notes.home / "statistics",
        collections=[HERE / "collections"],
        upload_to=UPLOAD_TO,
        consent=bool(notes.data["consent"]),
    )


def report(client: rappor.Client, notes: Notes) -> None:
    """Report at every start: the client sends each at most once a day, and keeps count of ε."""
    client.report("theme", notes.data["theme"])
    client.report("editor", Path(os.environ.get("EDITOR", "none")).name)


def privacy(client: rappor.Client, notes: Notes, choice: str | None) -> None:
    if choice == "forget":
        notes.data["consent"] = False
        notes.save()
        try:
            print(client.forget())
        except OSError as error:
            print(f"not everything could be deleted ({error}); please try again")
    elif choice == "off":
        notes.data["consent"] = False
        done = client.opt_out()
        print("statistics are off" if done else "off from now on; a report may be on its way")
    elif choice == "on" and client.opt_in():
        notes.data["consent"] = True
        print("statistics are on")
    elif choice == "on":
        print(f"statistics stay off: {client.status().explanation}")
    else:
        print(client.preview())
        print(client.status())
    notes.save()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="notes", description="Notes for the terminal.")
    parser.add_argument("--home", type=Path, default=Path("~/.notes"), help="folder of the notes")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("add", help="write a note").add_argument("text")
    actions.add_parser("list", help="show all notes")
    actions.add_parser("theme", help="choose a theme").add_argument("theme", choices=THEMES)
    choices = actions.add_parser("privacy", help="statistics: show them, or choose")
    group = choices.add_mutually_exclusive_group()
    for choice in ("on", "off", "forget"):
        group.add_argument(f"--{choice}", dest="choice", action="store_const", const=choice)
    args = parser.parse_args(arguments)

    notes = Notes(args.home.expanduser())
    ask_once(notes)
    client = open_client(notes)
    if args.action == "privacy":
        privacy(client, notes, args.choice)
    else:
        if args.action == "add":
            notes.data["notes"].append(args.text)
        elif args.action == "theme":
            notes.data["theme"] = args.theme
        else:
            print("\n".join(notes.data["notes"]) or "no notes yet")
        notes.save()
        report(client, notes)
    client.close(SECONDS_AT_THE_END)


if __name__ == "__main__":
    main()
