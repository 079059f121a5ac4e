"""`lexinvariant completion`: scripts that complete what the commands' own help lists."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lexinvariant import presets
from lexinvariant.cli.main import COMMANDS, main

NEEDS_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "lexinvariant.bash"
    with pytest.MonkeyPatch.context() as patch, path.open("w") as file:
        patch.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return path


def complete(script: Path, *words: str) -> set[str]:
    code = f"""source {script}
COMP_WORDS=(lexinvariant "$@"); COMP_CWORD=$#
_lexinvariant; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(
        ["bash", "-c", code, "bash", *words], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@NEEDS_BASH
def test_bash_completes_commands_names_and_options(bash_script: Path) -> None:
    assert complete(bash_script, "") == set(COMMANDS)
    assert complete(bash_script, "ge") == {"generate"}
    assert complete(bash_script, "train", "") == set(presets.PRESETS)
    assert complete(bash_script, "train", "char-s") == {"char-small"}
    assert complete(bash_script, "train", "tiny", "--model.n-l") == {"--model.n-layers"}
    assert complete(bash_script, "data", "") == {"prepare", "collect", "check", "--help"}
    assert "--valid-fraction" in complete(bash_script, "data", "prepare", "stdlib", "--v")
    assert {"theory", "cipher-key"} <= complete(bash_script, "experiment", "")
    assert "--quick" in complete(bash_script, "experiment", "theory", "--q")
    assert (
        complete(bash_script, "score", "--dr")
        == complete(bash_script, "score", "m", "a", "--dr")
        == {"--draws"}
    )
    assert complete(bash_script, "completion", "") == {"bash", "zsh", "tcsh", "--help"}
    assert complete(bash_script, "score", "some-fi") == set()  # the shell then offers files


def test_zsh_reads_the_same_script(bash_script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    out = capsys.readouterr().out
    assert out.endswith(bash_script.read_text())
    assert "bashcompinit" in out.removesuffix(bash_script.read_text())


def test_tcsh_has_a_rule_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("complete lexinvariant 'c/--/(")
    assert f"'p/1/({' '.join(COMMANDS)})/'" in line
    assert f"'n/train/({' '.join(presets.PRESETS)})/'" in line
    options = re.findall(r"c/--/\((.*?)\)/", line)[0].split()
    assert {"draws", "model.n-layers", "quick", "valid-fraction"} <= set(options)
