"""`lexinvariant completion SHELL`: a script with which a shell completes commands, names and options.

Its words are those that `--help` shows, so nothing is listed a second time here.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lexinvariant.cli.document import help_text
from lexinvariant.cli.main import COMMANDS

NAME = re.compile(r"^ +(?:• )?([a-z][a-z0-9-]*) {2,}\S", re.MULTILINE)
"""A line about a preset, an experiment or a subcommand."""
CHOICES = re.compile(r"^ +\{([a-z0-9,-]+)\}", re.MULTILINE)
"""The first word of a command where it is one of a few."""
OPTIONS = re.compile(r"^ +(?:-\w, )?(--[a-z][\w.-]*)(?:, (--[a-z][\w.-]*))?", re.MULTILINE)

BASH = """_lexinvariant() {
  local words="" place=""
  (( COMP_CWORD > 1 )) && place="${COMP_WORDS[1]}"
  (( COMP_CWORD > 2 )) && place="$place ${COMP_WORDS[2]}"
  case "$place" in
CASES
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _lexinvariant lexinvariant
"""
ZSH = """(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit
"""


@dataclass(frozen=True)
class Arguments:
    """Print a script with which your shell completes commands, presets, experiments and options.

    examples:
      lexinvariant completion bash > ~/.local/share/bash-completion/completions/lexinvariant
      lexinvariant completion zsh >> ~/.zshrc
      lexinvariant completion tcsh >> ~/.cshrc
    """

    shell: Annotated[Literal["bash", "zsh", "tcsh"], tyro.conf.Positional]
    """The shell to print it for."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant completion")
    print(_tcsh_script() if arguments.shell == "tcsh" else _bash_script(arguments.shell == "zsh"), end="")
    return 0


def words_after(*command: str) -> tuple[list[str], list[str]]:
    """The names and the options that may follow a command."""
    text = help_text(list(command))
    choices = [name for group in CHOICES.findall(text) for name in group.split(",")]
    options = [option for pair in OPTIONS.findall(text) for option in pair if option]
    return list(dict.fromkeys(NAME.findall(text) + choices)), list(dict.fromkeys(options))


def _bash_script(for_zsh: bool) -> str:
    cases = [("''", list(COMMANDS))]
    for command in COMMANDS:
        names, options = words_after(command)
        places: dict[tuple[str, ...], list[str]] = {}  # presets, for one, share all their options
        for name in names:
            places.setdefault(tuple(words_after(command, name)[1]), []).append(f"'{command} {name}'")
        cases += [("|".join(alike), list(words)) for words, alike in places.items()]
        cases.append((f"{command}|'{command} '*", names + options))
    written = "\n".join(f'    {place}) words="{" ".join(words)}" ;;' for place, words in cases)
    return (ZSH if for_zsh else "") + BASH.replace("CASES", written)


def _tcsh_script() -> str:
    rules, options = [f"p/1/({' '.join(COMMANDS)})/"], set()
    for command in COMMANDS:
        names, after = words_after(command)
        options |= set(after)
        if names:
            rules.append(f"n/{command}/({' '.join(names)})/")
            options.update(*(words_after(command, name)[1] for name in names))
    # It looks at one word at a time and so cannot tell which command an option follows.
    rules.insert(0, f"c/--/({' '.join(sorted(option[2:] for option in options))})/")
    return f"complete lexinvariant {' '.join(map(repr, rules))}\n"
