#include "device/cpu/onednn/onednn_gemm.h"

#include "device/cpu/one_thread.h"
#include "device/cpu/onednn/onednn.h"

pen_status pen_onednn_sgemm(const pen_gemm *g) {
    const int team = pen_one_thread_begin();
    const dnnl_status_t status =
        dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, g->alpha, g->a,
                   g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
    pen_one_thread_end(team);
    return pen_onednn_status(status, "multiplying matrices");
}
