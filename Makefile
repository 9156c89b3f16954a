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
LDLIBS := $(shell pkg-config --libs $(packages) 2>/dev/null) -lopenblas -ldnnl -lpthread -lm -ldl

folders := base graph partition scheduler device
library_sources := $(sort $(foreach folder,$(folders),$(shell find $(folder) -name '*.c' 2>/dev/null)))
command_sources := $(sort $(wildcard cli/*.c))
support_sources := $(sort $(wildcard tests/support/*.c))
test_sources := $(sort $(shell find tests -name '*_test.c'))
headers := $(sort $(shell find $(folders) cli tests -name '*.h' 2>/dev/null))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
library_objects = $(call objects,$(library_sources))
test_programs := $(patsubst %.c,$(BUILD)/%,$(test_sources))

.PHONY: all test
all: $(BUILD)/penstock $(BUILD)/libpenstock.so

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

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

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
