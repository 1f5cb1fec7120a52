#include "probe/job_place.h"

#include <stdlib.h>
#include <string.h>

#include "format/checksum.h"
#include "probe/file_name.h"
#include "probe/text.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

/// Names of environment variables; null where a launcher has no such.
struct Names {
  JobLauncher launcher;
  const char *rank, *world_size, *local_rank, *local_world_size, *node, *restarts, *job, *step;
};
// The first one that says both rank and size is the innermost: a torchrun inside a Slurm task.
const Names kLaunchers[] = {
    {kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
     "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID", nullptr},
    {kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr, "PMIX_NAMESPACE", nullptr},
    {kPmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr, nullptr,
     nullptr},
    {kSlurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_NODEID",
     "SLURM_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID"},
};

/// A number below a billion, + 1; 0 for anything else.
uint32_t number_plus_one(const char* name) {
  const char* text = name ? getenv(name) : nullptr;
  const size_t digits = text ? strspn(text, "0123456789") : 0;
  if (digits == 0 || digits > 9 || text[digits] != 0) return 0;
  return static_cast<uint32_t>(strtoul(text, nullptr, 10)) + 1;
}
uint32_t number(const char* name) {
  const uint32_t plus_one = number_plus_one(name);
  return plus_one ? plus_one - 1 : 0;
}

/// torchrun calls a job without a name "none"; the port of its store then tells jobs on a machine
/// apart.
void read_job(const Names& names, char* out, size_t size) {
  const char* job = names.job ? getenv(names.job) : nullptr;
  const char* step = names.step ? getenv(names.step) : nullptr;
  Text text(out, size - 1);
  if (job && job[0] && strcmp(job, "none") != 0) {
    text.add(job);
    if (step) text.add("."), text.add(step);
  } else if (const char* port = names.launcher == kTorchrun ? getenv("MASTER_PORT") : nullptr) {
    text.add("port "), text.add(port);
  }
  if (!text.ok()) memset(out, 0, size);
}

}  // namespace

uint32_t read_job_place(JobPlace* place) {
  for (const Names& names : kLaunchers) {
    const uint32_t rank_plus_one = number_plus_one(names.rank), size = number(names.world_size);
    if (rank_plus_one == 0 || size < rank_plus_one) continue;
    if (names.launcher != kTorchrun && size < 2) continue;  // a program of one task is no job
    place->launcher = names.launcher, place->world_size = size;
    place->local_world_size = number(names.local_world_size);
    place->local_rank_plus_one = number_plus_one(names.local_rank);
    place->node_plus_one = number_plus_one(names.node);
    place->restarts = number(names.restarts);
    read_job(names, place->job, sizeof(place->job));
    return rank_plus_one;
  }
  return number_plus_one("RANK");
}

void seal_job_place(uint64_t recording_id, JobPlace* place) {
  place->time_namespace = time_namespace();
  place->crc32c = job_crc(recording_id, *place);
}

}  // namespace gpumemprof::probe
