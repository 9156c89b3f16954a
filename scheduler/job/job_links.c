#include "scheduler/job/job_links.h"

pen_transport_tls pen_job_transport_tls(const pen_job *job) {
    const pen_job_tls *tls = &job->tls;
    return (pen_transport_tls){.ca = tls->ca,
                               .cert = tls->cert,
                               .key = tls->key,
                               .crl = tls->crl,
                               .coordinators = {tls->coordinators.items, tls->coordinators.count},
                               .workers = {tls->workers.items, tls->workers.count}};
}

bool pen_job_shares_memory(const pen_job *job) {
    return job->pipeline.transport == PEN_JOB_TRANSPORT_AUTO;
}
