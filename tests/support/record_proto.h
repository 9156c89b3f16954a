// The .proto file of record tables, for programs that are not ours.
//
// A file has words of its own at its beginning, up to the line RECORD_PROTO_MARK; what follows is
// made from the tables.
#ifndef PEN_TESTS_SUPPORT_RECORD_PROTO_H
#define PEN_TESTS_SUPPORT_RECORD_PROTO_H

#include "base/record/record.h"

#define RECORD_PROTO_MARK "// ---- made from the tables of fields\n"

// Fails the test unless the file `path` says what `records` [count], and those within them, are.
// With PEN_GOLDEN=1 in the environment, writes it anew instead.
void record_proto_check(const char *path, const pen_record *const *records, uint32_t count);

#endif // PEN_TESTS_SUPPORT_RECORD_PROTO_H
