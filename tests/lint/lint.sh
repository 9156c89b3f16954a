#!/usr/bin/env bash
# Checks what STYLE asks for and a tool can see. Prints each finding as FILE:LINE: text, says what
# was checked, and ends with the count of checks that found something.
#   lint.sh [PATH...]      only files whose path begins with a PATH
# CPPFLAGS, CFLAGS and JOBS come from the Makefile.
set -u
cd "$(dirname "$0")/../.." || exit 2

listed=$(git ls-files --cached --others --exclude-standard 2>/dev/null || find . -type f | sed 's|^\./||')
chosen() {
    local pattern=$1 path
    printf '%s\n' "$listed" | grep -E "$pattern" | while IFS= read -r file; do
        [ -f "$file" ] || continue
        if [ ${#paths[@]} -eq 0 ]; then
            printf '%s\n' "$file"
            continue
        fi
        for path in "${paths[@]}"; do
            case $file in "$path"*) printf '%s\n' "$file" && break ;; esac
        done
    done
}
paths=("$@")
mapfile -t sources < <(chosen '^(base|graph|partition|scheduler|device|cli|tests|examples)/.*\.[ch]$')
mapfile -t units < <(printf '%s\n' "${sources[@]}" | grep '\.c$')
mapfile -t headers < <(printf '%s\n' "${sources[@]}" | grep '\.h$')
mapfile -t products < <(printf '%s\n' "${sources[@]}" | grep -vE '^(tests/|$)')
mapfile -t texts < <(chosen '\.(c|h|js|css|sh|awk|py|md|yaml|map|in|txt)$|(^|/)Makefile$|^\.ci/|^\.clang')
jobs=${JOBS:-2}
failed=0

# check NAME COMMAND...: COMMAND prints what it finds.
check() {
    local name=$1 start=$SECONDS found
    shift
    found=$("$@" 2>&1)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        failed=$((failed + 1))
        printf 'lint: %s: found the above (%d s)\n' "$name" $((SECONDS - start))
    else
        printf 'lint: %s: ok (%d s)\n' "$name" $((SECONDS - start))
    fi
}

each() { # each FILES-ARRAY COMMAND...: COMMAND once for every file, JOBS at a time
    local -n files=$1
    shift
    [ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" "$@"
}

all_of() { # all_of FILES-ARRAY COMMAND...: COMMAND once for all files
    local -n files=$1
    shift
    [ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" | xargs -0 "$@"
}

format() {
    all_of sources clang-format --dry-run -Werror 2>&1 | grep 'error:'
}

lengths() {
    local file lines limit
    for file in "${sources[@]}"; do
        lines=$(wc -l <"$file")
        limit=600
        [[ $file == *.h ]] && limit=250
        [ "$lines" -le "$limit" ] || echo "$file:$limit: has $lines lines, at most $limit are allowed"
    done
}

# Names are unique in the whole tree, so a name says which file is meant.
unique_names() {
    printf '%s\n' "${sources[@]}" | awk -F/ '
        $NF in first { print $0 ":1: has the name of " first[$NF] }
        { first[$NF] = $0 }'
}

# Calls that are banned, looked for where comments and texts are taken out.
banned_calls() {
    all_of products awk '
        FNR == 1 { inside = 0 }
        {
            line = $0
            gsub(/\\./, "", line)
            gsub(/"[^"]*"/, "", line)
            sub(/\/\/.*/, "", line)
            if (FILENAME ~ /^(\.\/)?scheduler\/data\/image\/image_(jpeg|png)\.c$/) gsub(/(setjmp|longjmp) *\(/, "", line)
            if (match(line, /(^|[^A-Za-z0-9_.>])(strcpy|strcat|sprintf|vsprintf|gets|strtok|rand|srand|exit|setjmp|longjmp|alloca|atoi|atof) *\(/)) {
                print FILENAME ":" FNR ": calls what STYLE bans: " substr(line, RSTART, RLENGTH)
            }
        }'
    # the heap has one door
    all_of products awk '
        FILENAME == "base/memory.c" { next }
        {
            line = $0
            gsub(/"[^"]*"/, "", line)
            sub(/\/\/.*/, "", line)
            if (match(line, /(^|[^A-Za-z0-9_.>])(malloc|calloc|realloc|aligned_alloc|posix_memalign|strdup) *\(/)) {
                print FILENAME ":" FNR ": goes to the heap past base/memory.h:" substr(line, RSTART, RLENGTH)
            }
        }'
    all_of products grep -n -E '\b(nanosleep|usleep|sleep) ?\(' /dev/null | grep -v '^base/clock.c:' |
        sed 's|$| : pauses past base/clock.h|'
}

# What does not belong in a public tree: paths of one machine, hosts of package archives, work left.
clean_text() {
    all_of texts grep -n -I -E \
        '(^|[^a-z./])/([w]ork|[f]arm|[r]oot)/|https?://[^ ]*([d]ebian|[p]ypi|[n]pm)[^ ]*|\b([T]ODO|[F]IXME|[X]XX)\b' /dev/null |
        grep -v -E '\b[T]ODO\(#[0-9]+\)'
}

headers_alone() {
    each headers bash -c '
        level=
        case $1 in device/cpu/kernels/*) level=-DPEN_CPU_LEVEL=v3 ;; esac
        eval gcc "$CPPFLAGS $CFLAGS" $level -Werror -fsyntax-only -x c "$1"' header 2>&1
}

# A module and the modules that it needs do not need it back; a part of the tree cannot show that.
circles() {
    [ ${#paths[@]} -eq 0 ] || return 0
    all_of products awk -f tests/lint/circles.awk
}

# An include guard is the path: PEN_BASE_ARENA_H.
guards() {
    local file guard
    for file in "${headers[@]}"; do
        guard=PEN_$(printf '%s' "${file^^}" | sed -E 's|[/.-]|_|g')
        grep -q "^#ifndef $guard\$" "$file" || echo "$file:1: the include guard is not $guard"
    done
}

# Paths that comments name, and headers that are contracts.
comments() {
    all_of sources tests/lint/comments.py
}

# What a reader can hold in mind: files of C in one folder.
folder_sizes() {
    [ ${#paths[@]} -eq 0 ] || return 0
    all_of products dirname | sort | uniq -c | awk '$1 > 40 { print $2 ":1: has " $1 " files of C, at most 40 are allowed" }'
}

# Each room, a folder of the product with C files, says what belongs in it and where to begin.
folder_readmes() {
    local folder
    [ ${#paths[@]} -eq 0 ] || return 0
    for folder in base graph partition scheduler device cli tests examples docs $(all_of products dirname | sort -u); do
        [ ! -d "$folder" ] || [ -f "$folder/README.md" ] || echo "$folder: has no README.md"
    done
}

# The parts of the page's script are one script: they are checked as the browser has them.
page_script() {
    [ -n "$(chosen '\.js$')" ] || return 0
    # Debian's eslint looks for its modules where Debian's node does
    { printf "(function () {\n'use strict';\n" && cat $PAGE_SCRIPT && echo '})();'; } |
        NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs eslint --no-eslintrc -c tests/lint/page.eslintrc.json -f unix --stdin |
        awk -v names="$PAGE_SCRIPT" '
            BEGIN {
                count = split(names, name, " ")
                for (n = 1; n <= count; n++) {
                    while ((getline < name[n]) > 0) length_of[n]++
                }
            }
            /^<text>:/ {
                split($0, part, ":")
                line = part[2] - 2
                for (n = 1; n < count && line > length_of[n]; n++) line -= length_of[n]
                sub(/^<text>:[0-9]+/, name[n] ":" line)
                print
                next
            }
            NF && !/^[0-9]+ problem/'
}

style_sheets() {
    chosen '\.css$' | xargs -r /usr/bin/python3 tests/lint/style_sheet.py
}

# Texts that people read: columns, links, and names of files and functions, in them and in pictures.
documents() {
    chosen '\.md$' | xargs -r /usr/bin/python3 tests/lint/texts.py
    [ ${#paths[@]} -ne 0 ] || /usr/bin/python3 docs/pictures/draw.py --check
    [ -z "$(chosen '^docs/troubleshooting\.md$')" ] || /usr/bin/python3 tests/docs/messages.py docs/troubleshooting.md
}

static_analysis() {
    all_of products cppcheck --quiet --std=c11 --language=c --inline-suppr -j "$jobs" \
        --enable=warning,performance,portability --suppressions-list=tests/lint/cppcheck.txt \
        -I. -D_GNU_SOURCE -DPEN_VERSION='"0"' -DPEN_CPU_LEVEL=v3 --template='{file}:{line}: {message} [{id}]'
}

# planted COUNT FILES COMMAND...: in FILES, of tests/lint/planted, COMMAND finds as much as was planted there.
planted() {
    local count=$1 files=$2 found
    shift 2
    # shellcheck disable=SC2086
    found=$(cd tests/lint/planted && "$@" $files 2>&1)
    [ "$(printf '%s' "$found" | grep -c '')" -eq "$count" ] ||
        printf 'tests/lint/planted: %s: not %d findings in %s:\n%s\n' "$*" "$count" "$files" "$found"
}

# What is not found where it is would not be missed: each of our own checks is held to what it has to find.
checks_find() {
    [ ${#paths[@]} -eq 0 ] || return 0
    local found
    found=$(awk -f tests/lint/op_names.awk ./tests/lint/planted/op_names.txt)
    [ "$(printf '%s\n' "$found" | grep -c .)" -eq 8 ] || printf 'not 8 findings in planted/op_names.txt:\n%s\n' "$found"
    planted 1 'circle_a.txt circle_b.txt' awk -f ../circles.awk
    planted 3 'base/format/includes.txt' awk -f ../includes.awk
    planted 1 'reasons.txt' ../reasons.py
    planted 1 'comments.txt' ../comments.py
    planted 5 'texts.txt' ../texts.py
}

check 'clang-format' format
check 'file lengths' lengths
check 'unique file names' unique_names
check 'include directions' all_of sources awk -f tests/lint/includes.awk
check 'circles of modules' circles
check 'own checks' checks_find
check 'names of operators' all_of products awk -f tests/lint/op_names.awk
check 'reasons above long functions' all_of products tests/lint/reasons.py
check 'include guards' guards
check 'files in a folder' folder_sizes
check 'paths in comments, contracts' comments
check 'banned calls' banned_calls
check 'clean text' clean_text
check 'a README in each folder' folder_readmes
check 'texts and pictures' documents
check 'every header alone' headers_alone
check 'script of the page' page_script
check 'style sheets' style_sheets
check 'cppcheck' static_analysis
check 'clang-tidy' each units tests/lint/tidy_file.sh
if [ "$failed" -eq 0 ]; then
    echo "lint: nothing found in ${#sources[@]} files"
else
    echo "lint: $failed checks found something"
    exit 1
fi
