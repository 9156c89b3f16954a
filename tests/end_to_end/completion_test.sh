# Completion as bash, zsh and fish run it when somebody types on a terminal: the scripts are loaded as their users load
# them, and a tab is pressed. help_test asks their functions for much more.
. tests/end_to_end/common.sh
mkdir typed typed/bin
ln -s "$PENSTOCK" typed/bin/penstock
touch typed/job.yaml
penstock help --completion bash >typed/penstock.bash
penstock help --completion zsh >typed/_penstock
penstock help --completion fish >typed/penstock.fish
/usr/bin/python3 "$top/tests/end_to_end/check_completion.py" typed bash zsh fish
