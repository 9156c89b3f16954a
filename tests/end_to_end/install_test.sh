#!/usr/bin/env bash
# What `make install` puts in place is enough to compile, link and run a C program, by pkg-config alone,
# and the library exports nothing but the public interface.
set -eu -o pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ "$(basename "$PENSTOCK_BUILD")" = gcc ] || { echo "only the plain build is installed" && exit 77; }

env -u MAKEFLAGS -u MAKELEVEL make -s install DESTDIR="$folder" prefix=/opt/penstock >/dev/null
"$folder/opt/penstock/bin/penstock" --version
version=$("$folder/opt/penstock/bin/penstock" --version | cut -d' ' -f2)
[ "$(sed -n 's/^## \[\(.*\)\] - .*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] ||
    { echo "CHANGELOG.md does not begin with version $version" && exit 1; }
for file in man/man1/penstock.1 man/man1/penstock-train.1 bash-completion/completions/penstock \
    zsh/site-functions/_penstock fish/vendor_completions.d/penstock.fish; do
    [ -s "$folder/opt/penstock/share/$file" ] || { echo "$file was not installed" && exit 1; }
done

cat >"$folder/program.c" <<'END'
#include <penstock/penstock.h>
#include <stdio.h>

int main(void) {
    pen_training *training = NULL;
    const pen_status status = pen_training_open("none.yaml", NULL, &training);
    printf("%s: %s\n", pen_version(), pen_status_code_name(pen_status_get_code(status)));
    pen_training_close(training);
    pen_status_ignore(status, "printed");
    return 0;
}
END
export PKG_CONFIG_PATH=$folder/opt/penstock/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$folder
read -r -a flags < <(pkg-config --cflags --libs penstock)
gcc -std=c11 -pedantic -Wall -Werror "$folder/program.c" "${flags[@]}" -o "$folder/program"
found=$(cd "$folder" && LD_LIBRARY_PATH=$folder/opt/penstock/lib ./program)
[ "$found" = "$("$PENSTOCK" --version | cut -d' ' -f2): not found" ] || { echo "the program printed: $found" && exit 1; }

# the same from C++, and every header that is installed alone
if command -v g++ >/dev/null; then
    plus=(g++ -std=c++17 -Wall -Wextra -pedantic -Werror)
    (cd "$folder/opt/penstock/include" && find penstock -name '*.h') | while read -r header; do
        printf '#include <%s>\n' "$header" | "${plus[@]}" -fsyntax-only -x c++ - "${flags[@]}" ||
            { echo "$header does not compile as C++" && exit 1; }
    done
    cat >"$folder/program.cpp" <<'END'
#include <penstock/layers.h>
#include <penstock/penstock.h>

#include <iostream>
#include <string>

static pen_status build(const char *layer) {
    pen_layers *layers = nullptr;
    const int64_t dims[] = {4};
    PEN_TRY(pen_layers_create(&layers));
    pen_status status = pen_layers_input(layers, "x", 1, dims);
    if (status == PEN_OK) status = pen_layers_add(layers, layer, "units: 2");
    if (status == PEN_OK) status = pen_layers_check(layers);
    pen_layers_destroy(layers);
    return status;
}

static std::string text_of(pen_status status) {
    char text[1000] = "ok\n";
    if (status != PEN_OK) pen_status_format(status, text, sizeof text);
    pen_status_ignore(status, "printed");
    return text;
}

int main() {
    pen_training *training = nullptr;
    pen_training_options options = {};
    options.struct_size = sizeof options;
    options.step_limit = 1;
    std::cout << pen_version() << " " << text_of(build("dense"));
    std::cout << text_of(pen_training_open("none.yaml", &options, &training));
    std::cout << text_of(pen_error(PEN_NOT_FOUND, "no %s", "bread"));
    pen_training_close(training);
    return pen_status_exit_code(PEN_OK, 3);
}
END
    "${plus[@]}" "$folder/program.cpp" "${flags[@]}" -o "$folder/program_cpp"
    found=$(cd "$folder" && LD_LIBRARY_PATH=$folder/opt/penstock/lib ./program_cpp)
    [ "$(sed -n 1p <<<"$found")" = "$("$PENSTOCK" --version | cut -d' ' -f2) ok" ] || { echo "C++ printed: $found" && exit 1; }
    [[ $found == *"none.yaml"* && $found == *"error: no bread"* ]] || { echo "C++ printed: $found" && exit 1; }
fi

# a model of layers, built by a program: the example, on made data and few steps
cp examples/c-api/fashion.c "$folder/fashion.c"
python3 "$PWD/tests/end_to_end/make_pictures.py" "$folder"
sed -i -e "s|#define DATA .*|#define DATA \"$folder/\"|" -e 's|steps: 300|steps: 4|; s|% 50|% 2|' "$folder/fashion.c"
gcc -std=c11 -pedantic -Wall -Wextra -Werror "$folder/fashion.c" "${flags[@]}" -o "$folder/fashion"
(cd "$folder" && LD_LIBRARY_PATH=$folder/opt/penstock/lib ./fashion) >"$folder/fashion.txt"
[ "$(grep -c '^step ' "$folder/fashion.txt")" = 2 ] || { echo "the example printed:" && cat "$folder/fashion.txt" && exit 1; }
grep -q '^accuracy .* over 64 pictures$' "$folder/fashion.txt"
[ -s "$folder/fashion.onnx" ] && [ -s "$folder/fashion.safetensors" ]
"$folder/opt/penstock/bin/penstock" inspect "$folder/fashion.onnx" | grep -q 'conv  *2 '

library=$folder/opt/penstock/lib/libpenstock.so
[ "$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" = libpenstock.so.0 ]
# what it exports is what the packages' list says, each function with the version it came with
list=packaging/debian/libpenstock0.symbols
nm -D --defined-only --with-symbol-versions "$library" | awk '{ sub(/@@/, "@", $3); print $3 ($2 == "A" ? "@" $3 : "") }' |
    LC_ALL=C sort >"$folder/exported"
sed -n 's/^ \([^ ]*\) .*/\1/p' "$list" | LC_ALL=C sort >"$folder/listed"
diff "$folder/listed" "$folder/exported" || { echo "(<) are in $list, (>) are exported" && exit 1; }
declared=$(cat scheduler/penstock.h graph/layers.h base/status.h | sed 's|//.*||' | grep -o '\bpen_[a-z_]* *(' | tr -d ' (' | sort -u)
sed -n 's/^\(pen_[a-z_]*\)@.*/\1/p' "$folder/exported" | while read -r name; do
    grep -q -x "$name" <<<"$declared" || { echo "exports $name, which no public header declares" && exit 1; }
done

# what packages recommend is found with the PATH of Debian's users, which lacks ldconfig's folder, and is never a GPU's driver
mkdir "$folder/bin"
printf '#!/bin/sh\n/usr/sbin/ldconfig -p\necho "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1"\n' >"$folder/bin/ldconfig"
chmod +x "$folder/bin/ldconfig"
loaded=$(PATH=/usr/bin:/bin packaging/loaded_packages.sh --files)
[[ $loaded == *libzip.so* ]] || { echo "loaded_packages.sh without root's PATH: '$loaded'" && exit 1; }
[ "$loaded" = "$(PATH=$folder/bin:$PATH packaging/loaded_packages.sh --files)" ] ||
    { echo "loaded_packages.sh says something else where there is a libcuda" && exit 1; }

# every library that it is linked to, or looks for, has its licence told
docs=$folder/opt/penstock/share/doc/penstock
grep -q 'Apache License' "$docs/LICENSE"
{
    readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(lib[a-z]*[0-9]*\).*/\1/p'
    grep -rhoE '"lib[a-z0-9_]+\.so' --include='*.c' --include='*.h' base graph partition scheduler device | sed 's/^"//; s/\.so$//'
} | sort -u | while read -r name; do
    grep -q "\`$name\`" "$docs/licences.md" || { echo "docs/licences.md says nothing of $name" && exit 1; }
done
