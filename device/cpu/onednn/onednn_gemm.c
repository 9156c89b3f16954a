#include "device/cpu/onednn/onednn_gemm.h"

#include "device/cpu/onednn/onednn.h"

pen_status pen_onednn_sgemm(const pen_gemm *g) {
    return pen_onednn_status(dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n,
                                        g->k, g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c,
                                        g->ldc),
                             "multiplying matrices");
}
