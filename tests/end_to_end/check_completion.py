"""Types into a shell on a terminal, as somebody does, and waits for what its completion writes.

  check_completion.py FOLDER SHELL...     FOLDER has bin/penstock, a script of completion for each shell, and job.yaml
"""
import os
import pty
import re
import select
import sys
import time

WAIT = 60  # seconds for a shell to answer

# what is typed, and then a tab; what must stand there next
TYPED = (
    ("penstock tra", "penstock train "),
    ("penstock place --obj", "penstock place --objective "),
    ("penstock place --objective thr", "penstock place --objective throughput "),
    ("penstock train --st", "penstock train --steps "),
    ("penstock train jo", "penstock train job.yaml "),
    ("penstock checkpoint ver", "penstock checkpoint verify "),
)

# how each is started without the settings of whoever runs the test, and takes the script as its users do
SHELLS = {
    "bash": (["bash", "--norc", "-i"], "source ./penstock.bash"),
    "zsh": (["zsh", "-f", "-i"], "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D"),
    "fish": (["fish", "--no-config", "-i"], "source ./penstock.fish"),
}


class Terminal:
    def __init__(self, command, folder):
        self.process, self.end = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ.update(PATH=os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"], TERM="dumb", PS1="> ",
                              HOME=folder, XDG_CONFIG_HOME=folder, XDG_DATA_HOME=folder)
            os.execvp(command[0], command)

    def type(self, text):
        os.write(self.end, text.encode())

    def read_until(self, wanted):
        """What was shown up to `wanted`, without the codes of terminals; None when it does not come."""
        shown, end = "", time.monotonic() + WAIT
        while time.monotonic() < end:
            if not select.select([self.end], [], [], 0.2)[0]:
                continue
            try:
                shown += os.read(self.end, 65536).decode(errors="replace")
            except OSError:
                return None, shown
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|[\r\x07\x08]", "", shown)
            if wanted in plain:
                return plain, shown
        return None, shown

    def close(self):
        os.kill(self.process, 9)
        os.waitpid(self.process, 0)
        os.close(self.end)


def check(shell, folder):
    command, load = SHELLS[shell]
    for typed, wanted in TYPED:
        terminal = Terminal(command, folder)
        # the word is put together by the shell, so that its echo is not taken for its answer
        terminal.type(load + "; echo rea''dy\r")
        found, shown = terminal.read_until("ready")
        if found:
            terminal.type(typed + "\t")
            found, shown = terminal.read_until(wanted)
        terminal.close()
        if not found:
            sys.exit(f"{shell}: {typed!r} and a tab show {shown!r}, expected {wanted!r}")


def main():
    folder, *shells = sys.argv[1:]
    for shell in shells:
        check(shell, os.path.abspath(folder))


main()
