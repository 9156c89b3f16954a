# What the command says of itself: help within 80 columns, manual pages that roff takes, and completion
# in three shells.
. tests/end_to_end/common.sh

penstock help >all.txt
mapfile -t verbs < <(sed -n 's|^  \([a-z][a-z]*\)  .*|\1|p' all.txt)
[ "${#verbs[@]}" -gt 20 ] || die "these are few verbs: ${verbs[*]}"
penstock --help | cmp - all.txt || die "help and --help differ"
for verb in "${verbs[@]}"; do
    penstock help "$verb" >help.txt
    penstock "$verb" --help | cmp - help.txt || die "help $verb and $verb --help differ"
    grep -q '^Exit codes:' help.txt || die "$verb: no exit codes"
    grep -q "^  .*penstock $verb" help.txt || die "$verb: no example"
    for option in $(sed -n '/^Examples:/,/^$/p' help.txt | cut -d '|' -f 1 | grep -o -e ' --*[a-z][a-z-]*' || true); do
        grep -q -e "^  *$option[, ]" -e ", $option " help.txt || die "$verb: its examples have $option, which is no option"
    done
    long=$(LC_ALL=C.UTF-8 awk 'length($0) > 80' help.txt)
    [ -z "$long" ] || die "$verb: more than 80 columns: $long"
    penstock help --man "$verb" >page.1
    groff -k -man -ww -Tutf8 page.1 >page.txt 2>warnings.txt
    [ ! -s warnings.txt ] || die "$verb: $(head -n 3 warnings.txt)"
    grep -q "penstock-$verb" page.txt || die "$verb: its page has no name"
done
awk 'length($0) > 80' all.txt | grep . && die "more than 80 columns"
penstock help --man | groff -k -man -ww -Tutf8 >page.txt 2>warnings.txt
[ ! -s warnings.txt ] || die "$(head -n 3 warnings.txt)"
penstock help worker | grep -e --announce -e --parent && die "an internal option is in the help"
fails 2 "unknown option --anounce, possible: --launched, .*" "$PENSTOCK" worker --anounce 3
grep -q -e --announce fails.err && die "an internal option is offered: $(cat fails.err)"
fails 2 "unknown verb 'trian', possible: train, .*; did you mean train?" "$PENSTOCK" help trian
fails 2 "unknown shell 'csh', possible: .*" "$PENSTOCK" help --completion csh

# what a word of another program is here, is there: verbs with their options, and no verb is taken for such a word
mapfile -t words < <(sed -n '/command_words\[\] = {/,/^};/s/^    {"\([a-z_]*\)",.*/\1/p' "$top/cli/command.c")
[ "${#words[@]}" -gt 10 ] || die "these are few words: ${words[*]}"
for word in "${words[@]}"; do
    [[ " ${verbs[*]} " != *" $word "* ]] || die "$word is a verb"
    fails 2 "unknown verb '$word': " "$PENSTOCK" "$word"
    for call in $(grep -o '`penstock [a-z-]*\( --[a-z]*\)*' fails.err | tr -d '`' | tr ' ' '+'); do
        read -r _ verb option <<<"${call//+/ }"
        penstock ${verb:?} --help >help.txt || die "$word: $verb"
        [ -z "$option" ] || grep -q -e "  $option" help.txt || die "$word: $verb has no $option"
    done
done

# bash: a line's words, the last being completed, and what is offered
penstock help --completion bash >bash.txt
offers_bash() {
    bash -c '. ./bash.txt; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; printf "%s\n" "${COMPREPLY[@]}"' - "$@" |
        sort | tr '\n' ' '
}
touch "my job.yaml"
offered() {
    local wanted=$1
    shift
    [ "$("$@")" = "$wanted" ] || die "$*: offered '$("$@")', not '$wanted'"
}
offered "train " offers_bash penstock tr
offered "--objective " offers_bash penstock place --obj
offered "latency throughput traffic " offers_bash penstock place --objective ""
offered "my job.yaml " offers_bash penstock train my
offered "my job.yaml " offers_bash penstock show --job my
offered " " offers_bash penstock train --steps ""
offered "verify " offers_bash penstock checkpoint v

# fish, by its own completion
penstock help --completion fish >fish.txt
offers_fish() { fish -c "source fish.txt; complete -C '$*'" | cut -f 1 | sort | tr '\n' ' '; }
offered "train " offers_fish penstock tra
offered "latency throughput traffic " offers_fish penstock place --objective ""
offered "--mirror " offers_fish penstock checkpoint ls --mir

# zsh: its functions, with what they are given
penstock help --completion zsh >_penstock
cat >ask.zsh <<'END'
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "${(@P)2}" }
compdef() { }
source ./_penstock
words=("$@")
CURRENT=$#
_penstock
END
zsh -f ask.zsh penstock "" | grep -q '^train:train the model of a job' || die "zsh: no verbs"
zsh -f ask.zsh penstock place "" >zsh.txt
grep -q '^--objective\[.*\]:choice:(throughput latency traffic)$' zsh.txt || die "zsh: $(cat zsh.txt)"
[ "$(grep -c '^-o\[\|^(-o --output)-o\[' zsh.txt)" = 1 ] || die "zsh: $(cat zsh.txt)"

# colours on a terminal alone, and not where they are not wanted
coloured() { env "$@" script -qec "$PENSTOCK trian" /dev/null | grep -c $'\x1b\\[1;31merror:' || true; }
[ "$(coloured TERM=xterm)" = 1 ] || die "no colour on a terminal"
[ "$(coloured TERM=xterm NO_COLOR=1)" = 0 ] || die "NO_COLOR does nothing"
[ "$(coloured TERM=dumb)" = 0 ] || die "a dumb terminal gets colours"
fails 2 "^error: unknown verb" "$PENSTOCK" trian
