# Penstock. `make help` lists the targets.
#
# Each set of flags has its own object folder under build/, so switching never cleans.
#   make SANITIZE=address,undefined …    make CC=clang …    make DEBUG=1 …

CC := gcc
SANITIZE :=
DEBUG :=
COVERAGE :=
JOBS := $(shell nproc)
prefix := /usr/local
DESTDIR :=
VERSION := 0.1.0

comma := ,
empty :=
space := $(empty) $(empty)
flavour := $(notdir $(CC))$(if $(DEBUG),-debug)$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(COVERAGE),-coverage)
BUILD := build/$(flavour)

packages := yaml-0.1 zlib libpng libturbojpeg jansson
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wcast-qual -Wmissing-prototypes -Wvla -Werror
CPPFLAGS := -I. -D_GNU_SOURCE -DPEN_VERSION=\"$(VERSION)\" $(if $(DEBUG),-DPEN_DEBUG)
CFLAGS := -std=c11 -pedantic $(WARNINGS) -g $(if $(DEBUG),-O0,-O2) -fPIC -fopenmp -ffp-contract=off \
  -fvisibility=default -fno-omit-frame-pointer \
  $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all) $(if $(COVERAGE),--coverage)
CFLAGS += $(shell pkg-config --cflags $(packages) 2>/dev/null)
LDFLAGS := -fopenmp $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage)
LDLIBS := $(shell pkg-config --libs $(packages) 2>/dev/null) -ldnnl -lpthread -lm -ldl

folders := base graph partition scheduler device
library_sources := $(sort $(foreach folder,$(folders),$(shell find $(folder) -name '*.c' 2>/dev/null)))
command_sources := $(sort $(wildcard cli/*.c))
support_sources := $(sort $(wildcard tests/support/*.c))
test_sources := $(sort $(shell find tests -name '*_test.c'))
headers := $(sort $(shell find $(folders) cli tests -name '*.h' 2>/dev/null))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

# cpu kernels are compiled once for each x86-64 level, elsewhere once
kernel_sources := $(wildcard device/cpu/kernels/*.c)
kernel_levels := $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),v2 v3 v4,base)
KERNEL_FLAGS := $(if $(DEBUG),,-O3) -fno-math-errno -fno-trapping-math -ffp-contract=fast
kernel_flags_v2 := -march=x86-64-v2
kernel_flags_v3 := -march=x86-64-v3
kernel_flags_v4 := -march=x86-64-v4 -mprefer-vector-width=512
kernel_objects = $(foreach level,$(kernel_levels),$(patsubst %.c,$(BUILD)/%.$(level).o,$(kernel_sources)))
CPPFLAGS += $(if $(filter v3,$(kernel_levels)),-DPEN_CPU_HAS_LEVELS)
library_objects = $(call objects,$(filter-out $(kernel_sources),$(library_sources))) $(kernel_objects)
test_programs := $(patsubst %.c,$(BUILD)/%,$(test_sources))

.PHONY: all test
all: $(BUILD)/penstock $(BUILD)/libpenstock.so

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

define kernel_rule
$(BUILD)/device/cpu/kernels/%.$(1).o: device/cpu/kernels/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(KERNEL_FLAGS) $$(kernel_flags_$(1)) -DPEN_CPU_LEVEL=$(1) -MMD -MP -c $$< -o $$@
endef
$(foreach level,$(kernel_levels),$(eval $(call kernel_rule,$(level))))

$(BUILD)/libpenstock.a: $(library_objects)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libpenstock.so: $(library_objects)
	$(CC) -shared $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/penstock: $(call objects,$(command_sources)) $(BUILD)/libpenstock.a
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(call objects,$(support_sources)) $(BUILD)/libpenstock.a
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@

# one set of test programs: make test TESTS='graph/' runs those whose path contains the text
TESTS :=
test: $(if $(TESTS),$(foreach program,$(test_programs),$(if $(findstring $(TESTS),$(program)),$(program))),all $(test_programs))
	@tests/run_tests.sh $(BUILD) $(filter %_test,$^)

# ONNX's own tests; fails when one in tests/conformance/passing.txt no longer passes.
#   make conformance                      make conformance CONFORMANCE='--only softmax'
#   make conformance CONFORMANCE=--update rewrites the list
.PHONY: conformance
CONFORMANCE :=
conformance: $(BUILD)/tests/conformance/onnx_conformance
	$< $(CONFORMANCE)

$(BUILD)/tests/conformance/%: $(BUILD)/tests/conformance/%.o $(call objects,$(support_sources)) $(BUILD)/libpenstock.a
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -lcmocka -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
