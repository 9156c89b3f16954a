# Operators are told apart by address (graph/op_known.h), and facts about them stand at them
# (graph/op.h). So nobody compares an op's name or makes a node by a literal name, but for
#   graph/ops        where operators are, and the rules that they share
#   graph/import     importers and exporters, whose vocabularies are names; so is that of Keras'
#   graph/keras_layers  layers, from which models are built as importers do
#   kernels          which stand under the names of their operators in lists of devices
#   optimizer.c      the list of optimizers, each of which names its op
#   tests, examples
BEGIN {
    allowed = "^(graph/(ops|import|keras_layers)|device/reference|device/cpu/(kernels|onednn)|tests|examples)/" \
        "|^(device/cpu/cpu_kernel_list|graph/passes/gradient/optimizer)\\.c$"
    compares = "(^|[^A-Za-z0-9_])(str(n|case|ncase)?cmp|str(case)?str|memcmp) *\\("
}

function complain(text) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, text, $0
}

FNR == 1 { delete names }
FILENAME ~ allowed { next }

{
    line = $0
    sub(/\/\/.*/, "", line)
}

# a variable that holds an op's name, until the function ends
match(line, /char \*(const )?[a-z_]+ = [^;]*op->name;/) {
    name = substr(line, RSTART)
    sub(/^char \*(const )?/, "", name)
    sub(/ =.*/, "", name)
    names[name]
}
line ~ /^}/ { delete names }

line ~ compares {
    call = line
    sub(".*" compares, "", call)
    count = gsub(/op->name|op_name/, "&", call)
    if (count == 1) complain("compares the name of an operator")
    for (name in names) {
        if (call ~ "(^|[^A-Za-z0-9_>.])" name "[,) ]") complain("compares the name of an operator")
    }
}
line ~ /(pen_node_spec_make|pen_op_find) *\( *"|\.op_name = "[a-z]/ { complain("names an operator by a literal") }
