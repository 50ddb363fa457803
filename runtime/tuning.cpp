// How choices are kept: an entry of kind `choice` whose payload is the plan as text, under a key of spec, target and
// generator.
#include "runtime/tuning.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>

#include "cache/key.h"
#include "cache/store.h"
#include "codegen/source.h"
#include "runtime/compile.h"
#include "runtime/env.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

cache::Key key_of(const ConvSpec& canonical, const Target& target) {
  return cache::make_key(
      {"choice " + to_string(target), "", "", {}, std::string(codegen::generator_fingerprint()), to_string(canonical)});
}

/// Choices of this process by key: the disk cache may be off, or not writable.
class Choices {
 public:
  std::optional<std::string> find(const cache::Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key.digest);
    return found == plans_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const cache::Key& key, std::string plan) {
    const std::lock_guard lock(mutex_);
    plans_.insert_or_assign(key.digest, std::move(plan));
  }

 private:
  std::mutex mutex_;
  std::map<cache::Sha256, std::string> plans_;
};

Choices& choices() {
  static Choices* const all = new Choices;  // never destroyed, as the registry
  return *all;
}

std::optional<std::string> chosen_text(const cache::Key& key) {
  if (std::optional<std::string> kept = choices().find(key)) return kept;
  std::optional<cache::Entry> entry = disk_cache().load(key);
  if (!entry || entry->kind != cache::EntryKind::choice) return std::nullopt;
  choices().keep(key, entry->payload);
  return std::move(entry->payload);
}

}  // namespace

TuningMode tuning_mode() {
  const std::string value = tuning_from_environment();
  if (value.empty() || value == "0") return TuningMode::off;
  if (value == "saved") return TuningMode::saved;
  if (value == "1") return TuningMode::measure;
  log(LogLevel::warn, fmt::format("JITCONV_TUNE is {}, must be 1, saved or 0: not tuning", value));
  return TuningMode::off;
}

std::optional<codegen::ConvPlan> remembered_choice(const ConvSpec& spec, const Target& target) {
  const std::optional<std::string> text = chosen_text(key_of(codegen::canonical(spec), target));
  if (!text) return std::nullopt;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX)) {
    if (codegen::to_string(plan) != *text) continue;
    plan.notes.push_back({"tuning", "the fastest candidate that was measured"});
    return std::move(plan);
  }
  return std::nullopt;
}

void remember_choice(const codegen::ConvPlan& plan) {
  const cache::Key key = key_of(plan.spec, plan.target);
  const std::string text = codegen::to_string(plan);
  choices().keep(key, text);
  disk_cache().save({key,
                     cache::EntryKind::choice,
                     {},
                     text,
                     {{"target", plan.target.arch()},
                      {"spec", to_string(plan.spec)},
                      {"family", std::string(codegen::to_string(plan.family()))}}});
}

}  // namespace jitconv::runtime
