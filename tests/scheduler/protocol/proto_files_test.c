// The .proto files say what the tables of fields are; `make golden` writes them anew.
#include "graph/wire/part_wire.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/run_table_wire.h"
#include "scheduler/runtime/run/run_spec_wire.h"
#include "scheduler/transport/wire_format.h"
#include "tests/support/check.h"
#include "tests/support/record_proto.h"

static void envelopes_and_messages(void **state) {
    (void)state;
    const pen_record *const records[] = {&pen_wire_envelope_record, &pen_message_record};
    record_proto_check("scheduler/transport/penstock.proto", records, 2);
}

static void run_tables(void **state) {
    (void)state;
    const pen_record *const record = &pen_run_table_record;
    record_proto_check("scheduler/protocol/run_table.proto", &record, 1);
}

static void descriptions_of_runs(void **state) {
    (void)state;
    const pen_record *const record = &pen_run_spec_record;
    record_proto_check("scheduler/runtime/run/run_spec.proto", &record, 1);
}

static void parts(void **state) {
    (void)state;
    const pen_record *const record = &pen_part_record;
    record_proto_check("graph/wire/part.proto", &record, 1);
}

PEN_TEST_MAIN(cmocka_unit_test(envelopes_and_messages), cmocka_unit_test(run_tables),
              cmocka_unit_test(descriptions_of_runs), cmocka_unit_test(parts))
