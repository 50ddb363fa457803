"""Mutants of the runtime: what goes into a key, what is checked before a launch, what happens when things fail."""
from mutants.mutant import File

compile_file = File("runtime/compile.cpp", "compile")
state = File("runtime/kernel_state.cpp", "kernel_state")
rules = File("runtime/launch_rules.cpp", "launch_rules")
registry = File("runtime/registry.cpp", "registry")
cuda = File("runtime/cuda_backend.cpp", "cuda_backend")
identity = File("runtime/library_identity.cpp", "library_identity")

KEY = "cache::make_key({std::string(backend.format().key_prefix) + target.arch(), compiler.version, compiler.build_id,"
FINGERPRINT = "std::string(codegen::generator_fingerprint()) + std::string(backend.fingerprint()),"

MUTANTS = [
    # The key: every field left out once.
    compile_file("key_without_execution", "std::string(backend.format().key_prefix) + target.arch(), compiler",
                 "target.arch(), compiler", "a GPU is given code for this machine's CPU"),
    compile_file("key_without_target", KEY, KEY.replace(" + target.arch()", ""), "a kernel of another GPU is loaded"),
    compile_file("key_without_compiler_version", KEY, KEY.replace("compiler.version", '""'),
                 "an upgrade of the compiler changes nothing"),
    compile_file("key_without_compiler_identity", KEY, KEY.replace("compiler.build_id", '""'),
                 "a rebuilt compiler of the same version changes nothing"),
    compile_file("key_without_wanted_options",
                 "backend.options(source, options),\n                          std::string(codegen",
                 "source.options,\n                          std::string(codegen",
                 "kernels compiled with and without line information are taken for each other"),
    compile_file("key_without_generator", FINGERPRINT, "std::string(backend.fingerprint()),",
                 "a kernel of an older generator is loaded"),
    compile_file("key_without_models", FINGERPRINT, "std::string(codegen::generator_fingerprint()),",
                 "code for the CPU made with older models is loaded"),
    compile_file("key_of_name", "                          source.text});",
                 "                          source.entries.front().name});",
                 "convolutions that differ in padding alone load each other's kernel"),
    # compile().
    compile_file("never_loads", "if (auto entry = disk_cache().load(key)) {",
                 "if (auto entry = std::optional<cache::Entry>{}) {", "every process compiles everything again"),
    compile_file("never_saves", "    disk_cache().save({key, backend.format().kind, binary.log, binary.image});\n", "",
                 "every process compiles everything again"),
    compile_file("log_and_image_swapped", "binary.log, binary.image});", "binary.image, binary.log});",
                 "the second process loads a log as a kernel"),
    compile_file("forgets_where_from", "std::move(entry->metadata), /*from_cache=*/true}",
                 "std::move(entry->metadata), /*from_cache=*/false}",
                 "a cached image the driver refuses fails the launch instead of costing a compilation"),
    compile_file("kernels_not_shared", "return canonical == asked ? build() :", "return true ? build() :",
                 "specs that need the same kernel compile it again"),
    compile_file("compiles_when_forbidden", "  if (compilation_forbidden()) {", "  if (false) {",
                 "JITCONV_NO_COMPILE is ignored"),
    compile_file("not_validated", "  validate(spec);\n  runtime::forbid", "  runtime::forbid",
                 "an invalid spec forbids fork() before it is refused"),
    # Launching.
    state("y_is_an_input", "return role == codegen::ArgumentRole::y || role == codegen::ArgumentRole::workspace;",
          "return role == codegen::ArgumentRole::workspace;", "host execution refuses every store"),
    state("everything_is_writable", "return role == codegen::ArgumentRole::y || role == codegen::ArgumentRole::workspace;",
          "return role != codegen::ArgumentRole::x || true;", "host execution accepts stores to inputs"),
    state("pointers_unchecked", "  rules_.check(pointers);\n", "", "a null pointer ends the context"),
    state("device_unchecked", "  backend.require_fitting_device(plan.target, device);\n", "",
          "a kernel for another GPU fails with a number instead of a sentence"),
    state("loads_in_a_capture", "if (backend.is_capturing(stream)) {", "if (false) {",
          "a first launch during a capture invalidates the graph"),
    state("loads_twice", "  if (ready_on(device)) return;\n", "", "threads that start together load a kernel several times"),
    state("never_ready", "if (device < 64) ready_devices_.fetch_or", "if (device > 64) ready_devices_.fetch_or",
          "every launch takes a lock"),
    state("parameters_in_fixed_order", "&pointers[step.roles[i]]", "&pointers[i]",
          "bias and residual are passed in place of y"),
    state("refused_image_is_fatal", "if (!backend.refuses_image(error) || !binary().from_cache) throw;", "throw;",
          "a cached image the driver refuses fails every launch until the cache is cleared"),
    state("recompiles_for_any_error", "if (!backend.refuses_image(error) || !binary().from_cache) throw;", "",
          "running out of memory compiles the kernel again"),
    rules("alignment_unchecked", "    wrong |= (at & alignment_mask_[role]) != 0;\n", "",
          "a misaligned tensor ends the context"),
    rules("null_unchecked", "    wrong |= (at != 0) != (bytes_[role] != 0);\n", "", "a null pointer ends the context"),
    rules("overlap_unchecked", "    wrong |= !is_y && overlap(at, bytes_[role], y, bytes_[kY]);\n", "",
          "an output over its own input is garbage"),
    rules("neighbours_overlap", "return a < b + b_bytes && b < a + a_bytes &&", "return a <= b + b_bytes && b <= a + a_bytes &&",
          "tensors that follow each other in memory are refused"),
    rules("residual_may_not_be_y", "const bool is_y = role == kY || (role == kResidual && at == y);",
          "const bool is_y = role == kY;", "adding in place is refused"),
    rules("bias_of_input_channels", "spec.epilogue.bias ? static_cast<std::uint64_t>(spec.filter.k * element) : 0",
          "spec.epilogue.bias ? static_cast<std::uint64_t>(spec.filter.c * element) : 0",
          "a bias is taken for shorter than it is"),
    registry("failure_remembered", "  } catch (...) {\n    {\n      const std::unique_lock lock(state_->mutex);\n"
             "      state_->under_way.erase(key);\n    }\n", "  } catch (...) {\n",
             "a compilation that failed once fails for ever"),
    registry("no_single_flight", "    if (!mine) {", "    if (false) {",
             "threads that ask at once all compile"),
    registry("waiters_not_told", "    promise.set_exception(std::current_exception());\n", "",
             "threads that wait for a failed compilation get an error about promises"),
    cuda("line_info_ignored", 'if (wanted.line_info) all.push_back("-lineinfo");', "", "profilers show no lines"),
    cuda("any_minor_version", ": compiled_for.minor <= device.minor;", ": true;",
         "a kernel for a later GPU fails with a number instead of a sentence"),
    cuda("every_error_refuses_image", "return from_driver != nullptr && Driver::refuses_image(from_driver->result());",
         "return from_driver != nullptr;", "running out of memory compiles the kernel again"),
    identity("other_notes", "note.n_type == NT_GNU_BUILD_ID && ", "", "libraries with other notes first share an identity"),
    identity("note_past_end", "    if (end > notes.size()) break;\n", "", "a damaged library is read past its end"),
]
