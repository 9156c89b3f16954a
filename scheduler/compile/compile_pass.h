// The contract of this folder: what a pass of the compiler is, and what it works on.
//
// A pass takes the model's graph a step further: it changes the graph, makes a new one of it, or
// refuses it. compile.c lists the passes in the order in which they run. What a pass does is
// defined in graph/passes/ or, where it needs the request, in a compile_*.c of this folder.
//
// Lifetime: a compilation lives while pen_compile runs; what it makes lives in the model's arena.
// Threads:  one.
#ifndef PEN_SCHEDULER_COMPILE_COMPILE_PASS_H
#define PEN_SCHEDULER_COMPILE_COMPILE_PASS_H

#include "graph/passes/gradient/build_gradients.h"
#include "scheduler/compile/compile_request.h"

#define PEN_COMPILE_WARNINGS_LIMIT 8

// A model on its way to a program.
typedef struct pen_compilation {
    const pen_compile_request *request;
    pen_model *model; // owns the arena; NULL before it is read
    pen_weight_file *weights;
    pen_arena *arena;
    pen_graph *graph;         // as it is now
    pen_program program;      // its values are of `graph`, its order comes last
    pen_gradients *gradients; // between build_gradients and build_updates
    pen_value_id *kept;       // that of the program, to be written; likewise the next three
    pen_value_id *inputs;
    pen_value_id *outputs;
    pen_value_id *cached;
    pen_program_loss *losses;
    const char *warnings[PEN_COMPILE_WARNINGS_LIMIT];
} pen_compilation;

// Makes a new graph, in the same arena: `map` gives the new id of each old value. A map of NULL
// says that the graph is the old one.
typedef pen_status (*pen_rewrite_fn)(const pen_graph *graph, uint32_t kept_count,
                                     const pen_value_id *kept, pen_graph **out_graph,
                                     const pen_value_id **out_map);

struct pen_compile_pass {                             // declared in compile.h
    const char *name;                                 // unique in the list
    const char *summary;                              // one line
    unsigned modes;                                   // in which it runs: bits of PEN_COMPILE_IN
    bool (*runs)(const pen_compile_request *request); // and whether it then does; NULL: always
    pen_compile_part blamed;                          // what in the job its errors are about
    // one of these three
    pen_status (*run)(pen_compilation *compilation);
    pen_status (*change)(pen_graph *graph);
    pen_rewrite_fn rewrite;
};

// [pen_compile_pass_count], in the order in which they run.
extern const pen_compile_pass pen_compile_passes[];
extern const uint32_t pen_compile_pass_count;
// Whether it is part of what the request asks for.
bool pen_compile_pass_runs(const pen_compile_pass *pass, const pen_compile_request *request);

#define PEN_COMPILE_IN(mode) (1u << (mode))

// Goes on with the graph that a rewrite made: the program's values become those of the new one.
void pen_compilation_follow(pen_compilation *compilation, pen_graph *graph,
                            const pen_value_id *map);
// Tells the user something; what is too much is not told.
void pen_compilation_warn(pen_compilation *compilation, const char *warning);

// Gives an error of a pass the position of another part of the job than its own.
PEN_NODISCARD pen_status pen_compilation_blame(const pen_compilation *compilation,
                                               pen_compile_part part, pen_status status);
// The position of one of the losses, of one of what is sharded, and of a group.
PEN_NODISCARD pen_status pen_compilation_blame_loss(const pen_compilation *compilation,
                                                    uint32_t index, pen_status status);
PEN_NODISCARD pen_status pen_compilation_blame_shard(const pen_compilation *compilation,
                                                     uint32_t index, pen_status status);
PEN_NODISCARD pen_status pen_compilation_blame_group(const pen_compilation *compilation,
                                                     uint32_t index, pen_status status);

// The passes of this folder, as compile.c lists them. compile_model.c:
PEN_NODISCARD pen_status pen_compile_import(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_load_weights(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_check_types(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_freeze(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_group(pen_compilation *compilation);
// compile_shapes.c:
PEN_NODISCARD pen_status pen_compile_check_input_names(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_infer_shapes(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_check_examples(pen_compilation *compilation);
// compile_loss.c:
PEN_NODISCARD pen_status pen_compile_keep_loss_values(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_attach_loss(pen_compilation *compilation);
// compile_metrics.c:
pen_metric_loss pen_compile_metric_loss(const pen_compilation *compilation,
                                        const pen_loss_spec *spec, pen_value_id output);
PEN_NODISCARD pen_status pen_compile_see(pen_compilation *compilation,
                                         const pen_loss_place *places); // [loss_count]
// Whether metrics of steps are told of a loss there, and whether one is asked for that counts the
// best classes. Then what of a loss that is attached is told: compilation->losses[index].
bool pen_compile_tells(const pen_compilation *compilation, const pen_loss_spec *spec,
                       const pen_loss_place *place, pen_metric_source source);
bool pen_compile_tells_top(const pen_compilation *compilation, pen_metric metric);
PEN_NODISCARD pen_status pen_compile_tell(pen_compilation *compilation, uint32_t index,
                                          const pen_loss_place *place,
                                          const pen_attached_loss *attached);
// compile_decode.c:
PEN_NODISCARD pen_status pen_compile_keep_positions(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_decode_position(pen_compilation *compilation);
// compile_shard.c:
PEN_NODISCARD pen_status pen_compile_shard_nodes(pen_compilation *compilation);
// compile_adapt.c:
PEN_NODISCARD pen_status pen_compile_adapt(pen_compilation *compilation);
// compile_training.c:
PEN_NODISCARD pen_status pen_compile_build_gradients(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_build_updates(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_check_lost(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_check_statistics(pen_compilation *compilation);
// compile_results.c:
PEN_NODISCARD pen_status pen_compile_keep_results(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_remove_dead(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_fuse_rows(pen_compilation *compilation);
bool pen_compile_has_layouts(const pen_compile_request *request);
PEN_NODISCARD pen_status pen_compile_assign_layouts(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_collect_outputs(pen_compilation *compilation);
PEN_NODISCARD pen_status pen_compile_order(pen_compilation *compilation);

#endif // PEN_SCHEDULER_COMPILE_COMPILE_PASS_H
