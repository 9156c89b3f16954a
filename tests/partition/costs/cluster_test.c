#include "partition/costs/cluster_build.h"

#include <math.h>

#include "tests/support/check.h"

#define GIB (1ull << 30)

static const pen_machine machine = {.core_count_allowed = 8, .memory_bytes_allowed = 16 * GIB};

static pen_status parse(pen_arena *arena, const char *text, const pen_cluster_spec **out_spec) {
    return pen_cluster_spec_parse("clusters/c.yaml", text, strlen(text), arena, out_spec);
}

static pen_status build(pen_arena *arena, const char *text, const pen_cost_table *costs,
                        const pen_cluster **out_cluster) {
    const pen_cluster_spec *spec;
    PEN_TRY(parse(arena, text, &spec));
    return pen_cluster_build_on(&machine, spec, costs, arena, out_cluster);
}

static const pen_cluster *built(pen_arena *arena, const char *text, const pen_cost_table *costs) {
    const pen_cluster *cluster = NULL;
    CHECK_OK(build(arena, text, costs, &cluster));
    return cluster;
}

static void every_key_is_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_cluster *cluster =
        built(arena,
              "devices:\n"
              "  - {name: a, kind: reference, memory: 12GiB, reserve: 1GiB, threads: 2,\n"
              "     flops: 80G, memory_bandwidth: 20GB/s}\n"
              "  - {name: b, host: 10.0.0.2:7070, memory: 4GiB, threads: 3}\n"
              "links:\n"
              "  - {between: [a, b], bandwidth: 10Gbit/s, latency: 50us}\n",
              NULL);
    assert_int_equal(cluster->device_count, 2);
    const pen_cluster_device *a = &cluster->devices[0];
    const pen_cluster_device *b = &cluster->devices[1];
    assert_string_equal(a->name, "a");
    assert_string_equal(a->kind, "reference");
    assert_null(a->host);
    assert_true(a->bytes_limit == 11 * GIB && a->bytes_source == PEN_FIGURE_STATED);
    assert_int_equal(a->threads, 2);
    assert_true(a->flops == 80e9 && a->flops_source == PEN_FIGURE_STATED);
    assert_true(a->memory_bandwidth == 20e9 && a->memory_bandwidth_source == PEN_FIGURE_STATED);
    assert_string_equal(b->kind, "cpu");
    assert_string_equal(b->host, "10.0.0.2:7070");
    assert_true(b->bytes_limit == 4 * GIB);
    assert_true(b->flops == 3 * PEN_ASSUMED_FLOPS_PER_THREAD);
    assert_int_equal(b->flops_source, PEN_FIGURE_ASSUMED);
    assert_int_equal(b->memory_bandwidth_source, PEN_FIGURE_ASSUMED);
    const pen_cluster_link *link = pen_cluster_link_at(cluster, 1, 0);
    assert_true(link->bandwidth == 10e9 / 8 && link->latency == 50e-6);
    assert_int_equal(link->source, PEN_FIGURE_STATED);
    assert_int_equal(link->latency_source, PEN_FIGURE_STATED);
    assert_true(isinf(pen_cluster_link_at(cluster, 0, 0)->bandwidth));
    assert_string_equal(pen_figure_source_name(PEN_FIGURE_ASSUMED), "assumed");
    assert_string_equal(pen_figure_source_name(PEN_FIGURE_MEASURED), "measured");
    pen_arena_destroy(arena);
}

static void ranges_become_devices(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_cluster_spec *spec;
    CHECK_OK(parse(arena,
                   "devices:\n"
                   "  - {name: \"n[01-16]/cpu[0-1]\", host: \"10.0.0.[1-16]:7070\", memory: 1GiB}\n"
                   "  - name: gate\n",
                   &spec));
    assert_int_equal(spec->device_count, 33);
    assert_string_equal(spec->devices[0].name, "n01/cpu0");
    assert_string_equal(spec->devices[0].host, "10.0.0.1:7070");
    assert_string_equal(spec->devices[31].name, "n16/cpu1");
    assert_string_equal(spec->devices[31].host, "10.0.0.16:7070");
    assert_string_equal(spec->devices[32].name, "gate");
    assert_null(spec->devices[32].host);
    CHECK_OK(
        parse(arena, "devices: [{name: \"a[1-4096]\", host: \"b[1-4096]\", memory: 1GiB}]", &spec));
    assert_int_equal(spec->device_count, PEN_CLUSTER_DEVICE_LIMIT);
    pen_arena_destroy(arena);
}

static void memory_and_cores_of_this_host_are_shared(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_cluster *cluster = built(arena, "devices: [{name: a}]", NULL);
    assert_true(cluster->devices[0].bytes_limit == 16 * GIB);
    assert_int_equal(cluster->devices[0].bytes_source, PEN_FIGURE_MEASURED);
    assert_int_equal(cluster->devices[0].threads, 8);
    cluster = built(arena,
                    "devices:\n"
                    "  - {name: a, memory: 4GiB, threads: 2}\n"
                    "  - {name: b, reserve: 1GiB}\n"
                    "  - {name: c, host: \"localhost:1\"}\n"
                    "  - {name: d, host: \"n1:1\", memory: 64GiB}\n",
                    NULL);
    assert_true(cluster->devices[1].bytes_limit == 5 * GIB);
    assert_true(cluster->devices[2].bytes_limit == 6 * GIB);
    assert_true(cluster->devices[3].bytes_limit == 64 * GIB);
    assert_int_equal(cluster->devices[1].threads, 3);
    assert_int_equal(cluster->devices[2].threads, 3);
    assert_int_equal(cluster->devices[3].threads, 8);
    cluster = built(arena, "devices: [{name: \"a[1-20]\"}]", NULL);
    assert_int_equal(cluster->devices[19].threads, 1);
    // 20 threads on 8 cores compute no more than 8 do
    assert_true(fabs(cluster->devices[19].flops - 0.4 * PEN_ASSUMED_FLOPS_PER_THREAD) <
                1e-6 * PEN_ASSUMED_FLOPS_PER_THREAD);
    pen_arena_destroy(arena);
}

static void a_spec_without_devices_has_one(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cluster_spec spec = {0};
    const pen_cluster *cluster;
    CHECK_OK(pen_cluster_spec_complete(&spec, NULL, arena));
    CHECK_OK(pen_cluster_build(&spec, NULL, arena, &cluster));
    assert_int_equal(cluster->device_count, 1);
    assert_string_equal(cluster->devices[0].name, "cpu");
    assert_true(cluster->devices[0].bytes_limit > 0 && cluster->devices[0].threads > 0);
    pen_machine poor = machine;
    poor.memory_bytes_allowed = 0;
    CHECK_ERROR(pen_cluster_build_on(&poor, &spec, NULL, arena, &cluster), PEN_DOES_NOT_FIT,
                "no memory is left for 'cpu'");
    pen_arena_destroy(arena);
}

// Device by device: 'p' one process, 'h' one host, 'n' a network.
static void check_carriers(const pen_cluster *cluster, pen_carrier host, pen_carrier network) {
    static const char kinds[8][9] = {".phnnnhn", "p.hnnnhn", "hh.nnnhn", "nnn.phnn",
                                     "nnnp.hnn", "nnnhh.nn", "hhhnnn.n", "nnnnnnn."};
    for (uint32_t i = 0; i < 8; i++) {
        for (uint32_t j = 0; j < 8; j++) {
            if (i == j) continue;
            const pen_cluster_link *link = pen_cluster_link_at(cluster, i, j);
            const pen_assumed_link assumed =
                pen_cluster_assumed_link(kinds[i][j] == 'p'   ? PEN_CARRIER_MEMORY
                                         : kinds[i][j] == 'h' ? host
                                                              : network);
            CHECK(link->bandwidth == assumed.bandwidth, "%u %u: %g", i, j, link->bandwidth);
            CHECK(link->message == assumed.message, "%u %u: %g", i, j, link->message);
            CHECK(fabs(link->send * assumed.send - (assumed.send > 0)) < 1e-12 &&
                      fabs(link->receive * assumed.receive - (assumed.receive > 0)) < 1e-12,
                  "%u %u: %g %g", i, j, link->send, link->receive);
            CHECK(link->source == PEN_FIGURE_ASSUMED, "%u %u", i, j);
        }
    }
}

// What carries tensors follows from where the devices are, and from what their processes use.
static void assumed_links_follow_where_devices_are(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text = "devices:\n"
                       "  - {name: a}\n"
                       "  - {name: b}\n"
                       "  - {name: c, host: \"127.0.0.1:1\"}\n"
                       "  - {name: d, host: \"n1:1\", memory: 1GiB}\n"
                       "  - {name: e, host: \"n1:1\", memory: 1GiB}\n"
                       "  - {name: f, host: \"n1:2\", memory: 1GiB}\n"
                       "  - {name: g, host: \"[::1]:2\"}\n"
                       "  - {name: h, host: \"[fe::2]:2\", memory: 1GiB}\n";
    static const struct {
        bool uses_grpc_alone, uses_tls;
        pen_carrier host, network;
    } rows[] = {{false, false, PEN_CARRIER_RING, PEN_CARRIER_NETWORK},
                {true, false, PEN_CARRIER_LOOPBACK, PEN_CARRIER_NETWORK},
                {false, true, PEN_CARRIER_RING, PEN_CARRIER_NETWORK_TLS},
                {true, true, PEN_CARRIER_LOOPBACK_TLS, PEN_CARRIER_NETWORK_TLS}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const pen_cluster_spec *parsed;
        const pen_cluster *cluster;
        CHECK_OK(parse(arena, text, &parsed));
        pen_cluster_spec spec = *parsed;
        spec.uses_grpc_alone = rows[r].uses_grpc_alone;
        spec.uses_tls = rows[r].uses_tls;
        CHECK_OK(pen_cluster_build_on(&machine, &spec, NULL, arena, &cluster));
        check_carriers(cluster, rows[r].host, rows[r].network);
    }
    pen_arena_destroy(arena);
}

static void later_links_win(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_cluster *cluster =
        built(arena,
              "devices: [{name: a}, {name: \"n[1-3]\", host: \"n[1-3]\", memory: 1GiB}]\n"
              "links:\n"
              "  - {between: [\"^n\", \"^n\"], bandwidth: 1GB/s, latency: 1ms}\n"
              "  - {from: a, to: \"n[1-3]\", bandwidth: 2GB/s}\n"
              "  - {from: n2, to: n1, bandwidth: 3GB/s, latency: 3ms}\n"
              "  - {between: [n3, n1], bandwidth: 4GB/s}\n",
              NULL);
    static const double bandwidths[4][4] = {{INFINITY, 2, 2, 2},
                                            {0.125, INFINITY, 1, 4},
                                            {0.125, 3, INFINITY, 1},
                                            {0.125, 4, 1, INFINITY}};
    static const double milliseconds[4][4] = {
        {0, 2, 2, 2}, {2, 0, 1, 1}, {2, 3, 0, 1}, {2, 1, 1, 0}};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            const pen_cluster_link *link = pen_cluster_link_at(cluster, i, j);
            CHECK(link->bandwidth == 1e9 * bandwidths[i][j], "%u %u: %g", i, j, link->bandwidth);
            CHECK(fabs(link->latency - 1e-3 * milliseconds[i][j]) < 1e-12, "%u %u: %g", i, j,
                  link->latency);
        }
    }
    assert_int_equal(pen_cluster_link_at(cluster, 0, 1)->source, PEN_FIGURE_STATED);
    assert_int_equal(pen_cluster_link_at(cluster, 0, 1)->latency_source, PEN_FIGURE_ASSUMED);
    assert_int_equal(pen_cluster_link_at(cluster, 1, 0)->source, PEN_FIGURE_ASSUMED);
    pen_arena_destroy(arena);
}

static void check_handling(const pen_cluster *cluster, uint32_t from, uint32_t to, double send,
                           double receive, double message) {
    const pen_cluster_link *link = pen_cluster_link_at(cluster, from, to);
    CHECK(fabs(link->send * send - 1) < 1e-12 && fabs(link->receive * receive - 1) < 1e-12 &&
              link->message == message,
          "%u %u: %g, %g, %g", from, to, 1 / link->send, 1 / link->receive, link->message);
}

// What devices compute for a link is stated, else measured, else assumed of what carries it.
static void ends_of_links_compute(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *costs;
    CHECK_OK(pen_cost_table_new(arena, &costs));
    CHECK_OK(pen_cost_table_set_link(costs, &(pen_cost_link){.from = "b",
                                                             .to = "c",
                                                             .bandwidth = 1e8,
                                                             .latency = 1e-3,
                                                             .send = 4e9,
                                                             .receive = 5e9,
                                                             .message = 6e-6,
                                                             .has_message = true}));
    const char *text = "devices: [{name: a}, {name: b, host: n1, memory: 1GiB},\n"
                       "  {name: c, host: n2, memory: 1GiB}, {name: d, memory: 1GiB}]\n"
                       "links: [{from: a, to: b, bandwidth: 1GB/s, send: 2GB/s, message: 0s}]\n";
    const pen_cluster *cluster = built(arena, text, costs);
    const pen_assumed_link network = pen_cluster_assumed_link(PEN_CARRIER_NETWORK);
    check_handling(cluster, 0, 1, 2e9, network.receive, 0);
    check_handling(cluster, 1, 0, network.send, network.receive, network.message);
    check_handling(cluster, 1, 2, 4e9, 5e9, 6e-6);
    const pen_cluster_link *within = pen_cluster_link_at(cluster, 0, 3); // one process
    assert_true(within->send == 0 && within->receive == 0 && within->message == 0);
    pen_arena_destroy(arena);
}

// Rates that were measured on a host win there over what is stated.
static void rates_of_a_host_are_its_own(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *costs;
    CHECK_OK(pen_cost_table_new(arena, &costs));
    CHECK_OK(pen_cost_table_set_rates(costs, &(pen_cost_rates){"cpu", 2, 95e9, 21e9, NULL}));
    CHECK_OK(pen_cost_table_set_rates(costs, &(pen_cost_rates){"cpu", 2, 40e9, 11e9, "n1"}));
    const pen_cluster *cluster =
        built(arena,
              "devices:\n"
              "  - {name: a, host: \"n1:7070\", threads: 2, memory: 1GiB, flops: 70G}\n"
              "  - {name: b, host: \"n2:7070\", threads: 2, memory: 1GiB, flops: 70G}\n",
              costs);
    const pen_cluster_device *a = &cluster->devices[0], *b = &cluster->devices[1];
    assert_string_equal(a->host_name, "n1");
    assert_true(a->flops == 40e9 && a->flops_source == PEN_FIGURE_MEASURED);
    assert_true(a->memory_bandwidth == 11e9);
    assert_int_equal(a->memory_bandwidth_source, PEN_FIGURE_MEASURED);
    assert_true(b->flops == 70e9 && b->flops_source == PEN_FIGURE_STATED);
    assert_true(b->memory_bandwidth == 21e9);
    assert_int_equal(b->memory_bandwidth_source, PEN_FIGURE_ASSUMED);
    pen_arena_destroy(arena);
}

static void measured_figures_win(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *costs;
    CHECK_OK(pen_cost_table_new(arena, &costs));
    CHECK_OK(pen_cost_table_set_rates(costs, &(pen_cost_rates){"cpu", 2, 95e9, 21e9, NULL}));
    CHECK_OK(pen_cost_table_set_link(
        costs, &(pen_cost_link){.from = "a", .to = "b", .bandwidth = 1.5e9, .latency = 41e-6}));
    CHECK_OK(pen_cost_table_set_link(
        costs, &(pen_cost_link){.from = "a", .to = "c", .bandwidth = 2.5e9, .latency = 41e-6}));
    const pen_cluster *cluster =
        built(arena,
              "devices:\n"
              "  - {name: a, threads: 2, flops: 10G}\n"
              "  - {name: b, host: n1, memory: 1GiB, threads: 2, flops: 10G}\n"
              "  - {name: c, threads: 1, flops: 10G}\n"
              "links:\n"
              "  - {between: [a, b], bandwidth: 1GB/s}\n"
              "  - {between: [a, c], bandwidth: 1GB/s}\n",
              costs);
    assert_true(cluster->devices[0].flops == 95e9);
    assert_int_equal(cluster->devices[0].flops_source, PEN_FIGURE_MEASURED);
    // what was measured here is not held against what is stated of another host
    assert_true(cluster->devices[1].flops == 10e9);
    assert_int_equal(cluster->devices[1].flops_source, PEN_FIGURE_STATED);
    assert_true(cluster->devices[1].memory_bandwidth == 21e9);
    assert_int_equal(cluster->devices[1].memory_bandwidth_source, PEN_FIGURE_ASSUMED);
    assert_int_equal(cluster->devices[2].flops_source, PEN_FIGURE_STATED);
    assert_int_equal(cluster->devices[2].memory_bandwidth_source, PEN_FIGURE_ASSUMED);
    assert_true(!cluster->devices[0].is_remote && cluster->devices[1].is_remote);
    // nor is what was measured of a link
    assert_true(pen_cluster_link_at(cluster, 0, 1)->bandwidth == 1e9);
    assert_int_equal(pen_cluster_link_at(cluster, 0, 1)->source, PEN_FIGURE_STATED);
    assert_true(pen_cluster_link_at(cluster, 0, 1)->latency == 41e-6); // which nobody states
    assert_true(pen_cluster_link_at(cluster, 0, 2)->bandwidth == 2.5e9);
    assert_int_equal(pen_cluster_link_at(cluster, 0, 2)->source, PEN_FIGURE_MEASURED);
    assert_true(pen_cluster_link_at(cluster, 2, 0)->bandwidth == 1e9);
    pen_arena_destroy(arena);
}

#define TWO "devices: [{name: a}, {name: b}]\n"

// One line of YAML, or two, and the beginning of what is said about it.
typedef struct mistake {
    const char *text;
    pen_status_code code;
    const char *message;
} mistake;

static const mistake mistakes[] = {
    {"{}", PEN_INVALID_INPUT, "1:1: error: 'devices' is missing, expected a list of at least 1"},
    {"devices: []", PEN_INVALID_INPUT, "1:10: error: devices: found 0 items, expected at least 1"},
    {"devices: [{name: a, memory: 2}]", PEN_INVALID_INPUT,
     "1:29: error: devices[0].memory: found \"2\", expected a size like 12GiB"},
    {"devices: [{name: a, reserve: -1B}]", PEN_INVALID_INPUT,
     "1:30: error: devices[0].reserve: found \"-1B\", expected a size like"},
    {"devices: [{name: a, memory: 1GiB, reserve: 1GiB}]", PEN_INVALID_INPUT,
     "1:44: error: device 'a': found a reserve of 1.00 GiB, expected less than its memory, "
     "1.00 "
     "GiB"},
    {"devices: [{name: a, threads: 1025}]", PEN_INVALID_INPUT,
     "1:30: error: devices[0].threads: found \"1025\", expected an integer from 1 to 1024"},
    {"devices: [{name: a, flops: 80}]", PEN_INVALID_INPUT,
     "1:28: error: devices[0].flops: found \"80\", expected a rate like 80G (units: "},
    {"devices: [{name: a, flops: 0G}]", PEN_INVALID_INPUT,
     "1:28: error: devices[0].flops: found \"0G\", expected a rate like 80G"},
    {"devices: [{name: a, memory_bandwidth: 1Gbit}]", PEN_INVALID_INPUT,
     "1:39: error: devices[0].memory_bandwidth: found \"1Gbit\", expected a bandwidth like"},
    {"devices: [{name: a, kind: gpu}]", PEN_INVALID_INPUT,
     "1:27: error: devices[0].kind: found \"gpu\", expected one of cpu, reference, cuda; did you "
     "mean cuda?"},
    {"devices: [{name: a, host: n1}]", PEN_INVALID_INPUT,
     "1:18: error: devices: 'memory' of 'a' is missing, expected a size like 12GiB: what n1 "
     "has "
     "cannot be asked from here"},
    {"devices: [{name: a, host: \"n1:0\"}]", PEN_INVALID_INPUT,
     "1:27: error: devices[0].host: found \"n1:0\", expected NAME or NAME:PORT like "
     "10.0.0.2:7070, a port from 1 to 65535"},
    {"devices: [{name: a, host: \"n1:70707\"}]", PEN_INVALID_INPUT, "a port from 1 to 65535"},
    {"devices: [{name: a, host: \":7070\"}]", PEN_INVALID_INPUT, "expected NAME or NAME:PORT"},
    {"devices: [{name: a, host: \"http://n1:70\"}]", PEN_INVALID_INPUT,
     "expected NAME or NAME:PORT"},
    {"devices: [{name: a}, {name: a}]", PEN_INVALID_INPUT,
     "1:29: error: devices[1].name: found \"a\", which is devices[0] already, expected another "
     "name"},
    {"devices: [{name: \"a[1-9]\"}, {name: x}, {name: a3}]", PEN_INVALID_INPUT,
     "1:47: error: devices[2].name: found \"a3\", which is devices[0] already"},
    {"devices: [{name: \"a[3-1]\"}]", PEN_INVALID_INPUT,
     "1:18: error: devices[0].name: found \"a[3-1]\", expected a range that begins with"},
    {"devices: [{name: \"a[1-3]\", host: \"n[1-2]\"}]", PEN_INVALID_INPUT,
     "1:34: error: devices[0].host: found a range of 2, expected 3 as in the name"},
    {"devices: [{name: a, host: \"n[1-2]\"}]", PEN_INVALID_INPUT,
     "1:27: error: devices[0].host: found 1 ranges, expected at most those of the name, 0"},
    {"devices: [{name: a, host: \"n[2-]\"}]", PEN_INVALID_INPUT,
     "1:27: error: devices[0].host: found \"n[2-]\", expected ranges like [1-16]"},
    {"devices: [{name: \"a[1-4000]\"}, {name: \"b[1-97]\"}]", PEN_INVALID_INPUT,
     "1:39: error: devices[1].name: found \"b[1-97]\", with which there are 4097 devices, "
     "expected at most 4096"},
    {"devices: [{name: a, memory: 16GiB}, {name: b}]", PEN_DOES_NOT_FIT,
     "1:44: error: devices: no memory is left for 'b': this machine grants 16.0 GiB"},
    {TWO "links: [{between: [a, b]}]", PEN_INVALID_INPUT,
     "2:9: error: links[0]: 'bandwidth' is missing"},
    {TWO "links: [{between: [a], bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:19: error: links[0].between: found 1 item, expected at least 2"},
    {TWO "links: [{between: a, bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:19: error: links[0].between: found \"a\", expected a list of 2 items"},
    {TWO "links: [{bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:9: error: links: 'between' is missing, expected between: [A, B], or from: A and to: B"},
    {TWO "links: [{from: a, bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:9: error: links: 'to' is missing"},
    {TWO "links: [{to: a, bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:9: error: links: 'from' is missing"},
    {TWO "links: [{between: [a, b], to: a, bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:31: error: links: found between together with from or to"},
    {TWO "links: [{between: [a, b], bandwidth: 1GB}]", PEN_INVALID_INPUT,
     "2:38: error: links[0].bandwidth: found \"1GB\", expected a bandwidth like 10Gbit/s"},
    {TWO "links: [{between: [a, b], bandwidth: 1GB/s, latency: 5}]", PEN_INVALID_INPUT,
     "2:54: error: links[0].latency: found \"5\", expected a duration like 5s"},
    {TWO "links: [{between: [a, bb], bandwidth: 1GB/s}]", PEN_NOT_FOUND,
     "2:23: error: no device is called \"bb\", near: b"},
    {TWO "links: [{from: a, to: \"^c\", bandwidth: 1GB/s}]", PEN_NOT_FOUND,
     "2:23: error: no device matches \"^c\""},
    {TWO "links: [{from: a, to: \"^(\", bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:23: error: found \"^(\", expected the name of a device or a regular expression"},
    {TWO "links: [{between: [b, b], bandwidth: 1GB/s}]", PEN_INVALID_INPUT,
     "2:23: error: links[0]: found 'b' at both ends, expected two devices"},
    {TWO "link: []", PEN_INVALID_INPUT, "2:1: error: unknown key \"link\", possible: links"},
};

static void every_mistake_is_explained(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        pen_arena *arena = check_arena();
        const pen_cluster *cluster;
        CHECK_ERROR(build(arena, mistakes[i].text, NULL, &cluster), mistakes[i].code,
                    mistakes[i].message);
        pen_arena_destroy(arena);
    }
}

static void the_examples_can_be_built(void **state) {
    (void)state;
    static const struct {
        const char *path;
        uint32_t device_count;
        uint32_t from;
        uint32_t to;
        double bandwidth;
    } cases[] = {
        {"examples/clusters/two_unequal_pcs.yaml", 2, 0, 1, 125e6},
        {"examples/clusters/sixteen_hosts.yaml", 32, 0, 1, 8e9},
        {"examples/clusters/sixteen_hosts.yaml", 32, 2, 3, 1.25e9},
        {"examples/clusters/sixteen_hosts.yaml", 32, 15, 16, 125e6},
        {"examples/clusters/asymmetric_links.yaml", 3, 0, 1, 250e6 / 8},
        {"examples/clusters/asymmetric_links.yaml", 3, 1, 0, 40e6 / 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        const pen_cluster_spec *spec;
        const pen_cluster *cluster;
        CHECK_OK(pen_cluster_spec_read(cases[i].path, arena, &spec));
        CHECK_OK(pen_cluster_build_on(&machine, spec, NULL, arena, &cluster));
        assert_int_equal(cluster->device_count, cases[i].device_count);
        const double bandwidth =
            pen_cluster_link_at(cluster, cases[i].from, cases[i].to)->bandwidth;
        CHECK(fabs(bandwidth - cases[i].bandwidth) < 1, "%s: %g", cases[i].path, bandwidth);
        pen_arena_destroy(arena);
    }
}

// Links of a large cluster are kept by what they are, not pair by pair; an overlap of two rules is
// a link of its own, and what was measured of one pair is that pair's alone.
static void equal_links_are_kept_once(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *costs;
    CHECK_OK(pen_cost_table_new(arena, &costs));
    CHECK_OK(pen_cost_table_set_link(
        costs, &(pen_cost_link){.from = "a7", .to = "b9", .bandwidth = 5e9, .latency = 1e-3}));
    const pen_cluster *cluster =
        built(arena,
              "devices:\n"
              "  - {name: 'a[1-1000]', host: 'a[1-1000]:7070', memory: 1GiB, threads: 1}\n"
              "  - {name: 'b[1-1000]', host: 'b[1-1000]:7070', memory: 1GiB, threads: 1}\n"
              "links:\n"
              "  - {between: [^a, ^b], bandwidth: 1GB/s}\n"
              "  - {from: '^.*1$', to: ^b, bandwidth: 2GB/s, latency: 1ms}\n",
              costs);
    CHECK(cluster->link_count < 32, "%u", cluster->link_count);
    assert_true(pen_cluster_link_at(cluster, 0, 1)->source == PEN_FIGURE_ASSUMED); // a1 a2
    assert_true(pen_cluster_link_at(cluster, 0, 1001)->bandwidth == 2e9);          // a1 b2
    assert_true(pen_cluster_link_at(cluster, 1, 1001)->bandwidth == 1e9);          // a2 b2
    assert_true(pen_cluster_link_at(cluster, 1001, 0)->bandwidth == 1e9);          // b2 a1
    assert_true(pen_cluster_link_at(cluster, 1000, 1001)->latency == 1e-3);        // b1 b2
    assert_true(pen_cluster_link_at(cluster, 1001, 1000)->bandwidth == 1e9 / 8);   // b2 b1
    assert_true(isinf(pen_cluster_link_at(cluster, 1000, 1000)->bandwidth));       // b1 b1
    assert_true(pen_cluster_link_at(cluster, 6, 1008)->latency == 1e-3);           // a7 b9
    assert_true(pen_cluster_link_at(cluster, 6, 1008)->bandwidth == 1e9);          // as stated
    assert_true(pen_cluster_link_at(cluster, 5, 1008)->latency_source == PEN_FIGURE_ASSUMED);
    const pen_cluster_tables *tables = &cluster->tables;
    assert_true(tables->byte_seconds[1001] == 1 / 2e9 && tables->latency[1001] == 1e-3);
    assert_true(tables->byte_seconds[0] == 0 && tables->latency[0] == 0);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(every_key_is_read), cmocka_unit_test(ranges_become_devices),
              cmocka_unit_test(memory_and_cores_of_this_host_are_shared),
              cmocka_unit_test(a_spec_without_devices_has_one),
              cmocka_unit_test(assumed_links_follow_where_devices_are),
              cmocka_unit_test(later_links_win), cmocka_unit_test(ends_of_links_compute),
              cmocka_unit_test(rates_of_a_host_are_its_own), cmocka_unit_test(measured_figures_win),
              cmocka_unit_test(every_mistake_is_explained),
              cmocka_unit_test(equal_links_are_kept_once),
              cmocka_unit_test(the_examples_can_be_built))
