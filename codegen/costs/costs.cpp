// Which tables serve which target.
//
// There is one set of tables, fitted to an H200 (sm_90a), and every target gets it: of other GPUs the model knows what
// Target says (SMs, shared memory, registers, size of the L2 cache), but no clock, bandwidth or latency. Its order of
// candidates is therefore that of a GPU like the H200, and modelled times for another GPU are not its times.
//
// A second set needs
// - the times of candidates on that GPU (jitconv-run --tune --json), to which bench/fit_costs.py fits the tables,
// - a file of their values beside h200.h, with their origin; fit_costs.py must learn to write there,
// - a case here, by the target's architecture, or by its limits where GPUs of one architecture differ.
#include "codegen/costs/costs.h"

#include "codegen/costs/h200.h"

namespace jitconv::codegen {

const Costs& costs_of(const Target& /*target*/) { return kH200Costs; }

}  // namespace jitconv::codegen
