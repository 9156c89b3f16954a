# Finds circles among the modules of the files given. A module is a header and the source beside it of the same name;
# it needs another one when either of its two files includes the other's header. Modules that need each other, over any
# number of steps, are one circle: none of them can be read, tested or moved alone.
#
# Prints a circle as one line, FILE:LINE: text, at one of the includes that close it.

function module_of(path) {
    sub(/\.[ch]$/, "", path)
    return path
}

FNR == 1 { from = module_of(FILENAME) }

/^# *include *"/ {
    path = $0
    sub(/^# *include *"/, "", path)
    sub(/".*/, "", path)
    to = module_of(path)
    if (to == from || (from, to) in place) next
    place[from, to] = FILENAME ":" FNR
    needs[from] = needs[from] " " to
}

# Tarjan: `low` of a module is the earliest module, by the order of visits, that it reaches back to.
function visit(module,    list, count, i, other) {
    order[module] = low[module] = ++visits
    stack[++depth] = module
    inside[module] = 1
    count = split(needs[module], list, " ")
    for (i = 1; i <= count; i++) {
        other = list[i]
        if (!(other in order)) {
            visit(other)
            if (low[other] < low[module]) low[module] = low[other]
        } else if (inside[other] && order[other] < low[module]) {
            low[module] = order[other]
        }
    }
    if (low[module] == order[module]) close_at(module)
}

# Takes the modules that reach `first` and that it reaches off the stack, and tells of them where they are several.
function close_at(first,    members, count, i, j) {
    do {
        members[++count] = stack[depth]
        inside[stack[depth]] = 0
    } while (stack[depth--] != first)
    if (count == 1) return
    for (i = 2; i <= count; i++) { # by name, so that the same tree gives the same line
        first = members[i]
        for (j = i - 1; j >= 1 && members[j] > first; j--) members[j + 1] = members[j]
        members[j + 1] = first
    }
    report(members, count)
}

function report(members, count,    i, text, where) {
    text = members[1]
    for (i = 2; i <= count; i++) text = text ", " members[i]
    for (i = count; i >= 1; i--) {
        if ((members[1], members[i]) in place) where = place[members[1], members[i]]
    }
    print where ": closes a circle of modules: " text
    failed = 1
}

END {
    for (module in needs) names[++total] = module
    for (i = 2; i <= total; i++) {
        name = names[i]
        for (j = i - 1; j >= 1 && names[j] > name; j--) names[j + 1] = names[j]
        names[j + 1] = name
    }
    for (i = 1; i <= total; i++) {
        if (!(names[i] in order)) visit(names[i])
    }
    exit failed
}
