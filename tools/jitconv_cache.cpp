// jitconv-cache: looks after the directory of compiled kernels. Everything it knows about files comes from
// cache::Store, so it touches only files that the cache itself would write.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "cache/printable.h"
#include "cache/store.h"
#include "jitconv/spec.h"
#include "tools/json.h"
#include "tools/options.h"
#include "tools/table.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

enum class Verb { list, explain, stats, verify, prune, clear };

constexpr const char* kOverview = "jitconv-cache: looks after the directory of compiled kernels\n\n";

constexpr const char* kCommands =
    "  list         one line per entry: key, target, size, last use, compiler, convolution\n"
    "  explain KEY  everything about one entry; the first digits of its key are enough\n"
    "  stats        where the cache is, how many entries, how many bytes\n"
    "  verify       reads every entry and names the damaged ones\n"
    "  prune        removes the least recently used entries beyond --max-size\n"
    "  clear        removes every entry\n";

constexpr const char* kMoreHelp =
    "\nENVIRONMENT:\n\n"
    "  JITCONV_CACHE_DIR      the directory; default $XDG_CACHE_HOME/jitconv, else ~/.cache/jitconv\n"
    "  JITCONV_CACHE          rw, ro or off for programs; prune and clear remove files also where it is ro\n"
    "  JITCONV_CACHE_MAXSIZE  size limit in bytes, or with K, M or G; default 1G\n"
    "\nEXIT STATUS:\n\n"
    "  0  done\n"
    "  1  an entry is damaged, no entry has the key, a file could not be removed, or the directory is not trusted\n"
    "  2  the command line cannot be read\n"
    "\nEXAMPLES:\n\n"
    "  jitconv-cache list\n"
    "  jitconv-cache explain 3fa9\n"
    "  jitconv-cache prune --max-size=256M\n"
    "  jitconv-cache list --json --dir=/opt/app/kernels\n";

Verb parse_verb(const std::string& name) {
  if (name == "list") return Verb::list;
  if (name == "explain") return Verb::explain;
  if (name == "stats") return Verb::stats;
  if (name == "verify") return Verb::verify;
  if (name == "prune") return Verb::prune;
  if (name == "clear") return Verb::clear;
  throw UsageError(fmt::format("'{}' is not list, explain, stats, verify, prune or clear", name));
}

/// The first digits of a key, in lower case.
std::string parse_key(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.empty() || text.size() > 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw UsageError(fmt::format("'{}' is not a key: it must be 1 to 64 hexadecimal digits", cache::printable(text)));
  }
  return text;
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

/// With the letters that JITCONV_CACHE_MAXSIZE takes.
std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  double size = static_cast<double>(bytes);
  const char* letter = "KMG";
  for (size /= 1024; size >= 1023.95 && letter[1] != 0; ++letter) size /= 1024;
  return fmt::format("{:.1f}{}", size, *letter);
}

std::string age_text(std::int64_t unix_s) {
  std::int64_t seconds = static_cast<std::int64_t>(std::time(nullptr)) - unix_s;
  if (seconds < -3600) return "in the future";
  seconds = std::max<std::int64_t>(seconds, 0);  // clocks of machines that share the directory differ a little
  if (seconds < 60) return fmt::format("{} s ago", seconds);
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

std::string kind_text(cache::EntryKind kind) {
  switch (kind) {
    case cache::EntryKind::cubin:
      return "cubin";
    case cache::EntryKind::ptx:
      return "PTX";
    case cache::EntryKind::host:
      return "shared object for the host";
    case cache::EntryKind::choice:
      return "choice of tuning";
  }
  return "unknown";
}

/// What the entry says of itself under that name.
std::string described(const cache::FileReport& file, std::string_view name) {
  if (file.entry) {
    for (const cache::Property& property : file.entry->description) {
      if (property.name == name) return cache::printable(property.value);
    }
  }
  return "-";
}

/// The convolution without the fields that have their default values.
std::string short_spec(const std::string& spec) {
  const auto fields = [](const std::string& text) {
    std::istringstream words(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(words), {});
  };
  const std::vector<std::string> defaults = fields(to_string(ConvSpec{}));
  std::vector<std::string> others = fields(spec);
  std::erase_if(others, [&](const std::string& field) {
    return std::find(defaults.begin(), defaults.end(), field) != defaults.end();
  });
  return fmt::format("{}", fmt::join(others, " "));
}

json::Object file_json(const cache::FileReport& file) {
  json::Object object{
      {"key", file.key}, {"path", file.path}, {"bytes", file.bytes}, {"modified", time_text(file.modified_unix_s)}};
  if (file.entry) {
    object["kind"] = kind_text(file.entry->kind);
    json::Object description;
    for (const auto& [name, value] : file.entry->description)
      description[cache::printable(name)] = cache::printable(value);
    object["description"] = description;
  }
  if (file.problem) object["problem"] = *file.problem;
  return object;
}

std::string files_json(const std::vector<cache::FileReport>& files) {
  json::Array array;
  for (const auto& file : files) array.push_back(file_json(file));
  return json::render(array);
}

/// One line per fact, the values below each other.
std::string explanation(const cache::FileReport& file, const std::string& root, const std::string& log) {
  std::vector<std::pair<std::string, std::string>> lines = {{"key", file.key},
                                                            {"file", cache::printable(root + "/" + file.path)}};
  if (file.entry) {
    lines.emplace_back("kind", kind_text(file.entry->kind));
    for (const auto& [name, value] : file.entry->description)
      lines.emplace_back(cache::printable(name), cache::printable(value));
  }
  std::string bytes = std::to_string(file.bytes);
  if (file.entry) {
    bytes += fmt::format(" ({} of them the image, {} the compiler's log)", file.entry->payload_bytes,
                         file.entry->metadata_bytes);
  }
  lines.emplace_back("bytes", bytes);
  lines.emplace_back("last use", fmt::format("{} ({}; renewed at most once a day)", time_text(file.modified_unix_s),
                                             age_text(file.modified_unix_s)));
  lines.emplace_back("verified", file.problem ? "no: " + *file.problem : "yes");

  std::size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{:<{}} {}\n", name + ":", width + 1, value);
  if (!log.empty()) text += "compiler's log:\n" + log + (log.back() == '\n' ? "" : "\n");
  return text;
}

struct Program {
  cache::Store store;
  bool as_json;
  std::optional<std::uint64_t> max_size;
  std::string key;  ///< of explain: the first digits

  int list() {
    const auto files = store.list();
    if (as_json) {
      write_output("-", files_json(files));
      return kOk;
    }
    constexpr std::size_t kDigits = 12;  // of a key; explain takes them
    Table table({"key", "target", "size", "last use", "compiler", "convolution"},
                {Align::left, Align::left, Align::right, Align::right, Align::left, Align::left});
    for (const auto& file : files) {
      table.add({file.key.substr(0, kDigits), described(file, "target"), size_text(file.bytes),
                 age_text(file.modified_unix_s), described(file, "compiler"),
                 file.problem ? "unusable: " + *file.problem : short_spec(described(file, "spec"))});
    }
    write_output("-", table.text());
    return kOk;
  }

  int explain() {
    const auto found = store.list(key);
    if (found.size() > 1) {
      throw ToolError(kUsage, fmt::format("{} keys begin with {}, among them {} and {}", found.size(), key,
                                          found[0].key, found[1].key));
    }
    const auto verified = found.empty() ? found : store.verify(found[0].key);
    if (verified.empty()) {
      throw ToolError(kCheckFailed, fmt::format("no key in {} begins with {}", store.config().root, key));
    }
    const cache::FileReport& file = verified[0];
    const auto entry = file.problem ? std::nullopt : store.load(file.entry->key);
    const std::string log = entry ? entry->metadata : "";
    if (as_json) {
      json::Object object = file_json(file);
      object["verified"] = !file.problem;
      object["log"] = log;
      write_output("-", json::render(object));
    } else {
      write_output("-", explanation(file, store.config().root, log));
    }
    return file.problem ? kCheckFailed : kOk;
  }

  int stats() {
    std::uint64_t bytes = 0;
    const auto files = store.list();
    for (const auto& file : files) bytes += file.bytes;
    const auto& config = store.config();
    if (as_json) {
      write_output("-", json::render(json::Object{{"directory", cache::printable(config.root)},
                                                  {"entries", files.size()},
                                                  {"bytes", bytes},
                                                  {"max_bytes", config.max_bytes}}));
    } else {
      write_output("-", fmt::format("directory: {}\nentries:   {}\nbytes:     {}\nlimit:     {}\n",
                                    cache::printable(config.root), files.size(), bytes, config.max_bytes));
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

  int removed(const cache::Removal& removal) {
    if (as_json) {
      json::Object object{{"removed_bytes", removal.bytes}, {"files_left", removal.left}};
      if (removal.problem) object["problem"] = cache::printable(*removal.problem);
      write_output("-", json::render(object));
    } else {
      write_output("-", fmt::format("removed {} bytes\n", removal.bytes));
    }
    if (removal.problem) {
      const std::string what = removal.left > 0 ? fmt::format("not removed: {} of the files", removal.left)
                                                : std::string("not everything was looked at");
      throw ToolError(kCheckFailed, fmt::format("{}; the first problem: {}", what, *removal.problem));
    }
    return kOk;
  }

  int run(Verb verb) {
    switch (verb) {
      case Verb::list:
        return list();
      case Verb::explain:
        return explain();
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

std::string absolute(const std::string& directory) {
  if (directory.empty()) throw UsageError("--dir is empty; it must name a directory");
  std::error_code error;
  const auto path = std::filesystem::absolute(directory, error);
  if (error) throw ToolError(kCheckFailed, fmt::format("--dir={}: {}", directory, error.message()));
  return path.string();
}

int run(int argc, char** argv) {
  cl::list<std::string> words(cl::Positional, cl::ZeroOrMore, cl::desc("COMMAND [KEY]"), cl::cat(tool_category()));
  cl::opt<bool> as_json("json", cl::desc("Print JSON"), cl::cat(tool_category()));
  cl::opt<std::string> directory("dir", cl::desc("Cache directory; default as the library: JITCONV_CACHE_DIR, ..."),
                                 cl::value_desc("path"), cl::cat(tool_category()));
  cl::opt<std::string> max_size("max-size", cl::desc("What prune leaves, e.g. 512M; default JITCONV_CACHE_MAXSIZE"),
                                cl::value_desc("bytes"), cl::cat(tool_category()));
  const cl::extrahelp more_help(kMoreHelp);
  parse_command_line(argc, argv, (std::string(kOverview) + kCommands).c_str());
  if (words.empty()) {
    write_error(std::string("usage: jitconv-cache COMMAND [options]\n\n") + kCommands);
    return kUsage;
  }
  const Verb verb = parse_verb(words[0]);
  const std::size_t expected = verb == Verb::explain ? 2 : 1;
  if (words.size() > expected) throw UsageError(fmt::format("'{}' is one word too many", words[expected]));
  if (words.size() < expected) throw UsageError("explain needs a key");
  if (max_size.getNumOccurrences() > 0 && verb != Verb::prune) throw UsageError("--max-size belongs to prune");

  const auto warn = [](const std::string& text) { write_error(fmt::format("jitconv-cache: {}\n", text)); };
  cache::StoreConfig config = cache::store_config_from_environment(warn);
  if (directory.getNumOccurrences() > 0) {
    config.root = absolute(directory);
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
  Program program{cache::Store(config, warn), as_json, limit, verb == Verb::explain ? parse_key(words[1]) : ""};
  const int code = program.run(verb);
  // What could not be looked at is neither empty nor sound.
  return code == kOk && program.store.statistics().errors > 0 ? kCheckFailed : code;
}

}  // namespace
}  // namespace jitconv::tools

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("jitconv-cache", [&] { return jitconv::tools::run(argc, argv); });
}
