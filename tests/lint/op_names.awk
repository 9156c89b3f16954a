# Operators are told apart by address (graph/op_known.h), and facts about them stand at them
# (graph/op.h). So nobody compares an op's name, makes a node by a literal name or lists names, but for
#   graph/ops        where operators are, and the rules that they share
#   graph/import     importers and exporters, whose vocabularies are names; so is that of Keras'
#   graph/keras_layers  layers, from which models are built as importers do
#   kernels          which stand under the names of their operators in lists of devices
#   tests, examples
# and for single statements, below. Statements are looked at whole, over as many lines as they have.
# Names of operators are read from graph/op_known.h and the tables in graph/ops.
BEGIN {
    allowed = "^(graph/(ops|import|keras_layers)|device/reference|device/cpu/(kernels|onednn)|device/cuda/kernels|tests|examples)/" \
        "|^device/(cpu/cpu_kernel_list|cuda/cuda_kernel)\\.c$"
    compares = "(^|[^A-Za-z0-9_])(str(n|case|ncase)?cmp|str(case)?str|memcmp) *\\("
    # what makes a node of an operator or finds one, by the words in its name; who gives it an operator names the node
    makes = "(^|[^A-Za-z0-9_])([a-z_]*_)?(node|op|emit|apply)(_[a-z_]*)? *\\("
    # sorts a list that is shown
    exempt["cli/commands/command_inspect.c", "return strcmp(a->op->name, b->op->name);"]
    # exporters hand their vocabulary over, a list of names
    exempt["graph/passes/fuse/spell_layers.c", "if (strcmp(s->spellings[i].op_name, s->node->op->name) == 0) return &s->spellings[i];"]
    while ((getline line < "graph/op_known.h") > 0) {
        while (match(line, / X\([a-z0-9_]+\)/)) {
            known[substr(line, RSTART + 3, RLENGTH - 4)]
            line = substr(line, RSTART + RLENGTH)
        }
    }
    tables = "grep -rhoE '^ *([A-Z_]+\\([a-z][a-z0-9_]*,|[{]*([.]name = )?\"[a-z][a-z0-9_]*\",)' graph/ops"
    while ((tables | getline line) > 0) {
        sub(/^ *([A-Z_]+\(|[^"]*")/, "", line)
        sub(/"?,$/, "", line)
        known[line]
    }
    for (name in known) count++
    if (count < 90) print "tests/lint/op_names.awk:1: finds but " count + 0 " names of operators"
}

function complain(text) {
    printf "%s:%d: %s: %s\n", FILENAME, first, text, statement
}

# What stands between the parenthesis before PLACE in TEXT and the one that closes it.
function arguments_of(text, place,    depth, i, c) {
    depth = 1
    for (i = place; i <= length(text) && depth > 0; i++) {
        c = substr(text, i, 1)
        depth += (c == "(") - (c == ")")
    }
    return substr(text, place, i - place - (depth == 0))
}

# How many texts in PART are names of operators; `texts`: how many there are.
function known_in(part,    found, name) {
    texts = 0
    while (match(part, /"[^"]*"/)) {
        texts++
        name = substr(part, RSTART + 1, RLENGTH - 2)
        sub(/_backward$/, "", name) # tables make these names of others
        found += name in known
        part = substr(part, RSTART + RLENGTH)
    }
    return found + 0
}

# Whether a comparison with arguments PART is one of an op's name.
function is_of_op(part,    name) {
    if (part ~ /op->name|(^|[^A-Za-z0-9_])op_name([^A-Za-z0-9_]|$)/) return 1
    for (name in names) {
        if (part ~ "(^|[^A-Za-z0-9_>.])" name "( *,| *$)") return 1
    }
    return part ~ /(^|[^A-Za-z0-9_])(op|kind)( *,| *$)/ && known_in(part) > 0
}

function look(    rest, place, part) {
    if ((FILENAME, statement) in exempt) return
    # a variable that holds an op's name, until the function ends
    if (match(statement, /char \*(const )?[a-z_]+ = [^;]*op->name;/)) {
        rest = substr(statement, RSTART)
        sub(/^char \*(const )?/, "", rest)
        sub(/ =.*/, "", rest)
        names[rest]
    }
    for (rest = statement; match(rest, compares); rest = substr(rest, place)) {
        place = RSTART + RLENGTH
        if (is_of_op(arguments_of(rest, place))) complain("compares the name of an operator")
    }
    for (rest = statement; match(rest, makes); rest = substr(rest, place)) {
        place = RSTART + RLENGTH
        part = arguments_of(rest, place)
        if (part !~ /PEN_OP\(|&spec/ && known_in(part) > 0) complain("names an operator by a literal")
    }
    if (statement ~ /\.op(_name)? = "[a-z]/) complain("names an operator by a literal")
    if (is_list && known_in(statement) >= 2 && known_in(statement) == texts) complain("lists names of operators")
    is_list = statement ~ /char \*[^(;]*\[[^\]]*\] *= *{$/
}

FNR == 1 { delete names; statement = ""; is_list = 0 }
FILENAME ~ allowed || /^ *#/ { next }

{
    line = $0
    sub(/\/\/.*/, "", line)
    gsub(/^[ \t]+|[ \t]+$/, "", line)
    if (line == "") next
    if (statement == "") first = FNR
    statement = statement (statement == "" ? "" : " ") line
}
line ~ /[;{}]$/ {
    sub(/\( /, "(", statement)
    # a list on one line is a list, too
    if (match(statement, /char \*[^(;]*\[[^\]]*\] *= *{./)) is_list = 1
    look()
    statement = ""
}
$0 ~ /^}/ { delete names }
