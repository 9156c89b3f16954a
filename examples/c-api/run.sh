#!/usr/bin/env bash
# Builds the program against a fresh installation, runs it, and checks that it learned; run it from the top of the source tree.
top=$PWD
. examples/common.sh c-api
needs /usr/share/datasets/fashion-mnist dataset-fashion-mnist

env -u MAKEFLAGS -u MAKELEVEL make -C "$top" -s install DESTDIR="$work" prefix=/opt/penstock >/dev/null
export PKG_CONFIG_PATH=$work/opt/penstock/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work LD_LIBRARY_PATH=$work/opt/penstock/lib
read -r -a flags < <(pkg-config --cflags --libs penstock)
cc -std=c11 -Wall -Werror fashion.c "${flags[@]}" -o fashion
say "training over two devices"
./fashion | tee printed
least "accuracy on test pictures" "$(sed -n 's/^accuracy \([0-9.]*\) .*/\1/p' printed)" 0.83
penstock inspect fashion.onnx | grep -q "gemm  *2" || fail "the ONNX file is not the model"
penstock train -q --steps 1 fashion.yaml || fail "the job that was written does not train"
