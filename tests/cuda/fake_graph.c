// What is captured, and graphs, of the fake driver.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake_inside.h"

_Thread_local pen_cuda_stream *fake_capturing;

pen_cuda_result fake_refuse_capture(void) {
    if (fake_capturing == NULL) return fake_sticky;
    fake_capturing->is_capture_bad = true;
    return FAKE_CAPTURE_UNSUPPORTED;
}

// Memory grows by doubling: where the count is a power of two.
pen_cuda_result fake_capture(pen_cuda_stream *s, const fake_command *c) {
    pen_cuda_graph *graph = s->captured;
    if (s->is_capture_bad) return FAKE_CAPTURE_INVALIDATED;
    if ((graph->count & (graph->count - 1)) == 0) {
        const size_t room = graph->count == 0 ? 1 : 2 * graph->count;
        fake_command *commands = realloc(graph->commands, room * sizeof *commands);
        if (commands == NULL) return PEN_CUDA_OUT_OF_MEMORY;
        graph->commands = commands;
    }
    graph->commands[graph->count++] = *c;
    return 0;
}

static void fake_free_commands(pen_cuda_graph *graph) {
    free(graph->commands);
    *graph = (pen_cuda_graph){0};
}

pen_cuda_result cuStreamBeginCapture_v2(pen_cuda_stream *stream, unsigned mode) {
    if (fake_sticky != 0) return fake_sticky;
    if (stream == NULL || stream->captured != NULL || fake_capturing != NULL)
        return FAKE_NO_CAPTURE;
    if (mode != PEN_CUDA_CAPTURE_THREAD_LOCAL) return FAKE_INVALID; // as the device does it
    stream->captured = calloc(1, sizeof *stream->captured);
    if (stream->captured == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    fake_count(&fake_counted.blocks, 1);
    stream->is_capture_bad = false;
    fake_capturing = stream;
    return 0;
}

pen_cuda_result cuGraphDestroy(pen_cuda_graph *graph) {
    fake_free_commands(graph);
    free(graph);
    fake_count(&fake_counted.blocks, -1);
    return fake_sticky;
}

// A capture that went wrong gives none.
pen_cuda_result cuStreamEndCapture(pen_cuda_stream *stream, pen_cuda_graph **graph) {
    if (stream->captured == NULL || fake_capturing != stream) return FAKE_NO_CAPTURE;
    *graph = stream->captured;
    stream->captured = NULL;
    fake_capturing = NULL;
    if (!stream->is_capture_bad) return fake_sticky;
    (void)cuGraphDestroy(*graph);
    *graph = NULL;
    return FAKE_CAPTURE_INVALIDATED;
}

pen_cuda_result cuGraphInstantiateWithFlags(pen_cuda_graph_exec **exec, pen_cuda_graph *graph,
                                            unsigned long long flags) {
    if (fake_sticky != 0 || fake_capturing != NULL) return fake_refuse_capture();
    if (graph == NULL || flags != 0) return FAKE_INVALID;
    pen_cuda_graph_exec *made = calloc(1, sizeof *made);
    if (made != NULL) made->graph.commands = calloc(graph->count + 1, sizeof *graph->commands);
    if (made == NULL || made->graph.commands == NULL || fake_settings.is_graphless) {
        if (made != NULL) free(made->graph.commands);
        free(made);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    memcpy(made->graph.commands, graph->commands, graph->count * sizeof *graph->commands);
    made->graph.count = graph->count;
    fake_count(&fake_counted.blocks, 1);
    *exec = made;
    return 0;
}

pen_cuda_result cuGraphLaunch(pen_cuda_graph_exec *exec, pen_cuda_stream *stream) {
    if (exec == NULL || stream == NULL || stream->captured != NULL) return FAKE_INVALID;
    fake_count_launch(stream);
    pen_cuda_result result = fake_sticky;
    for (size_t i = 0; i < exec->graph.count && result == 0; i++)
        result = fake_push(stream, &exec->graph.commands[i]);
    return result;
}

pen_cuda_result cuGraphExecDestroy(pen_cuda_graph_exec *exec) {
    fake_free_commands(&exec->graph);
    free(exec);
    fake_count(&fake_counted.blocks, -1);
    return fake_sticky;
}
