// Which backend runs a target's code.
#include "runtime/backend.h"

#include "host/backend.h"
#include "runtime/cuda_backend.h"

namespace jitconv::runtime {

const Backend& backend_for(const Target& target) {
  switch (target.execution) {
    case Execution::gpu:
      return cuda_backend();
    case Execution::host:
      return host::backend();
  }
  throw SpecError(ErrorCode::unsupported, "execution",
                  "execution is " + std::to_string(static_cast<int>(target.execution)) + ", must be gpu or host");
}

}  // namespace jitconv::runtime
