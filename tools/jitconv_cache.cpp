// jitconv-cache: looks after the directory of compiled kernels. Everything it knows about files comes from
// cache::Store, so it touches only files that the cache itself would write.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "cache/store.h"
#include "tools/json.h"
#include "tools/options.h"
#include "tools/table.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

enum class Verb { list, stats, verify, prune, clear };

constexpr const char* kOverview =
    "jitconv-cache: the directory of compiled kernels\n\n"
    "  list    one line per entry: key, bytes, last use\n"
    "  stats   where the cache is, how many entries, how many bytes\n"
    "  verify  reads every entry and names the damaged ones (exit code 1)\n"
    "  prune   removes the least recently used entries beyond --max-size\n"
    "  clear   removes every entry\n";

Verb parse_verb(const std::string& name) {
  if (name == "list") return Verb::list;
  if (name == "stats") return Verb::stats;
  if (name == "verify") return Verb::verify;
  if (name == "prune") return Verb::prune;
  if (name == "clear") return Verb::clear;
  throw UsageError(fmt::format("'{}' is not list, stats, verify, prune or clear", name));
}

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = -1;
  if (suffix.empty()) shift = 0;
  if (suffix == "K") shift = 10;
  if (suffix == "M") shift = 20;
  if (suffix == "G") shift = 30;
  if (error != std::errc{} || shift < 0 || value > (std::uint64_t{1} << (62 - shift))) {
    throw UsageError(fmt::format("--max-size: '{}' is not bytes, or a number with K, M or G", text));
  }
  return value << shift;
}

std::string time_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

json::Object file_json(const cache::FileReport& file) {
  json::Object object{{"key", file.key},
                      {"path", file.path},
                      {"bytes", static_cast<std::int64_t>(file.bytes)},
                      {"modified", time_text(file.modified_unix_s)}};
  if (file.problem) object["problem"] = *file.problem;
  return object;
}

std::string files_json(const std::vector<cache::FileReport>& files) {
  json::Array array;
  for (const auto& file : files) array.push_back(file_json(file));
  return json::render(array);
}

struct Program {
  cache::Store store;
  bool as_json;
  std::optional<std::uint64_t> max_size;

  int list() {
    const auto files = store.list();
    if (as_json) {
      write_output("-", files_json(files));
      return kOk;
    }
    Table table({"key", "bytes", "last use (UTC)"}, {Align::left, Align::right, Align::left});
    for (const auto& file : files) {
      table.add({file.key, std::to_string(file.bytes), time_text(file.modified_unix_s)});
    }
    write_output("-", table.text());
    return kOk;
  }

  int stats() {
    std::uint64_t bytes = 0;
    const auto files = store.list();
    for (const auto& file : files) bytes += file.bytes;
    const auto& config = store.config();
    if (as_json) {
      write_output("-", json::render(json::Object{{"directory", config.root},
                                                  {"entries", static_cast<std::int64_t>(files.size())},
                                                  {"bytes", static_cast<std::int64_t>(bytes)},
                                                  {"max_bytes", static_cast<std::int64_t>(config.max_bytes)}}));
    } else {
      write_output("-", fmt::format("directory: {}\nentries:   {}\nbytes:     {}\nlimit:     {}\n", config.root,
                                    files.size(), bytes, config.max_bytes));
    }
    return kOk;
  }

  int verify() {
    const auto files = store.verify();
    int damaged = 0;
    std::string lines;
    for (const auto& file : files) {
      if (!file.problem) continue;
      ++damaged;
      lines += fmt::format("{}: {}\n", file.path, *file.problem);
    }
    write_output("-", as_json ? files_json(files)
                              : lines + fmt::format("{} of {} entries are damaged\n", damaged, files.size()));
    return damaged == 0 ? kOk : kCheckFailed;
  }

  int removed(std::uint64_t bytes) {
    write_output("-", as_json ? json::render(json::Object{{"removed_bytes", static_cast<std::int64_t>(bytes)}})
                              : fmt::format("removed {} bytes\n", bytes));
    return kOk;
  }

  int run(Verb verb) {
    switch (verb) {
      case Verb::list:
        return list();
      case Verb::stats:
        return stats();
      case Verb::verify:
        return verify();
      case Verb::prune:
        return removed(store.prune(max_size.value_or(store.config().max_bytes)));
      case Verb::clear:
        return removed(store.clear());
    }
    return kUsage;
  }
};

int run(int argc, char** argv) {
  cl::opt<std::string> verb_name(cl::Positional, cl::Required, cl::desc("list|stats|verify|prune|clear"),
                                 cl::cat(tool_category()));
  cl::opt<bool> as_json("json", cl::desc("Print JSON"), cl::cat(tool_category()));
  cl::opt<std::string> directory("dir", cl::desc("Cache directory; default as the library: JITCONV_CACHE_DIR, ..."),
                                 cl::value_desc("path"), cl::cat(tool_category()));
  cl::opt<std::string> max_size("max-size", cl::desc("What prune leaves, e.g. 512M; default JITCONV_CACHE_MAXSIZE"),
                                cl::value_desc("bytes"), cl::cat(tool_category()));
  parse_command_line(argc, argv, kOverview);
  const Verb verb = parse_verb(verb_name);
  if (max_size.getNumOccurrences() > 0 && verb != Verb::prune) throw UsageError("--max-size belongs to prune");

  const auto warn = [](const std::string& text) { fmt::print(stderr, "jitconv-cache: {}\n", text); };
  cache::StoreConfig config = cache::store_config_from_environment(warn);
  if (directory.getNumOccurrences() > 0) {
    config.root = std::filesystem::absolute(directory.getValue()).string();
    if (config.mode == cache::Mode::off) config.mode = cache::Mode::read_write;
  }
  if (config.root.empty() || config.mode == cache::Mode::off) {
    throw ToolError(kCheckFailed, "the cache is off (JITCONV_CACHE) or has no directory; name one with --dir");
  }
  // A tool that is asked to remove files does so whatever JITCONV_CACHE says of programs.
  const bool removes = verb == Verb::prune || verb == Verb::clear;
  config.mode = removes ? cache::Mode::read_write : cache::Mode::read_only;
  std::optional<std::uint64_t> limit;
  if (max_size.getNumOccurrences() > 0) limit = parse_size(max_size);
  Program program{cache::Store(config, warn), as_json, limit};
  const int code = program.run(verb);
  // What could not be looked at is neither empty nor sound.
  return code == kOk && program.store.statistics().errors > 0 ? kCheckFailed : code;
}

}  // namespace
}  // namespace jitconv::tools

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("jitconv-cache", [&] { return jitconv::tools::run(argc, argv); });
}
