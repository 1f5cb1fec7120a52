"""What a shell completes: complete(shell, tool, words, folder) types `words` into a real one, in `folder`.

The last word is the one that the tab key is pressed behind. The shells load what the build wrote for packages.
"""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import harness
import pytest

SHARE = harness.ROOT / "build" / "share"
SHELLS = ["bash", "zsh", "fish"]

# Every match that the completion adds, as zsh would list it, goes into a file; behind the last one a line "end".
ZSH = """
PS1='> '; unsetopt beep; fpath=({functions} $fpath)
autoload -Uz compinit; compinit -D -u
zstyle ':completion:*' completer _complete
compadd() {{
  if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >> {found}; builtin compadd "$@"
}}
complete-and-tell() {{ zle complete-word; print end >> {found} }}
zle -N complete-and-tell; bindkey '^I' complete-and-tell
print begin > {found}
"""


def shell_or_skip(name):
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here: scripts/setup shells installs it")


def environment(folder):
    return {"PATH": f"{Path(harness.COMMAND).parent}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def in_bash(tool, words, folder):
    script = (f'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{tool} "$1" "${{!#}}" "${{@: -2:1}}"; '
              'printf "%s\\n" "${COMPREPLY[@]}"')  # fmt: skip
    file = SHARE / "bash-completion" / "completions" / tool
    done = subprocess.run(["bash", "--norc", "-c", script, file, tool, *words], cwd=folder, env=environment(folder),
                          capture_output=True, text=True, timeout=30)  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def in_fish(tool, words, folder):
    file = SHARE / "fish" / "vendor_completions.d" / f"{tool}.fish"
    script = f"source $argv[1]; complete -C '{' '.join([tool, *words])}'"
    done = subprocess.run(["fish", "--no-config", "-c", script, file], cwd=folder, env=environment(folder),
                          capture_output=True, text=True, timeout=30)  # fmt: skip
    assert done.stderr == ""
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def in_zsh(tool, words, folder):
    found, setup = folder / ".found", folder / ".setup.zsh"
    setup.write_text(ZSH.format(functions=SHARE / "zsh" / "site-functions", found=found))
    found.write_text("")
    ours, its = pty.openpty()
    zsh = subprocess.Popen(["zsh", "-f", "-i"], cwd=folder, env=environment(folder), stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    try:
        # What is typed ahead would end a completion, so each waits for the one before.
        for typed, last in ((f". {setup}\n", "begin\n"), (" ".join([tool, *words]) + "\t", "end\n")):
            os.write(ours, typed.encode())
            end = time.monotonic() + 60
            while not found.read_text().endswith(last):
                assert time.monotonic() < end and zsh.poll() is None, found.read_text()
                if select.select([ours], [], [], 0.02)[0]:
                    os.read(ours, 4096)
    finally:
        zsh.kill()
        zsh.wait()
        os.close(ours)
    return found.read_text().split()[1:-1]


def complete(shell, tool, words, folder):
    """The words offered, without those that do not begin with the last one: shells leave them out, too."""
    shell_or_skip(shell)
    offered = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[shell](tool, words, folder)
    values = [word.rpartition("=")[2] if words[-1].startswith("--") and "=" in words[-1] else word for word in offered]
    begun = words[-1].rpartition("=")[2] if "=" in words[-1] else words[-1]
    if shell == "zsh" and "/" in begun:  # it leaves out the folder
        values = [os.path.join(os.path.dirname(begun), value) for value in values]
    return sorted({value.rstrip("/") for value in values if value.startswith(begun)})
