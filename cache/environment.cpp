// Where the cache lives and what it may do, from the environment. Reads variables and nothing else: whether the
// directory can be used is found out by the store, when it needs it.
#include <sys/auxv.h>

#include <cstdlib>
#include <limits>
#include <string_view>

#include "cache/store.h"

namespace jitconv::cache {

namespace {

constexpr char kDirectoryVariable[] = "JITCONV_CACHE_DIR";
constexpr char kModeVariable[] = "JITCONV_CACHE";
constexpr char kSizeVariable[] = "JITCONV_CACHE_MAXSIZE";

/// Empty if unset, empty, or not to be trusted.
std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

bool is_absolute(std::string_view path) { return !path.empty() && path.front() == '/'; }

std::string unreadable(const char* name, const std::string& value, const char* rule) {
  return std::string("disk cache is off: ") + name + " is '" + value + "'; " + rule;
}

std::optional<Mode> parse_mode(std::string_view text) {
  if (text.empty() || text == "rw") return Mode::read_write;
  if (text == "ro") return Mode::read_only;
  if (text == "off") return Mode::off;
  return std::nullopt;
}

/// Decimal digits, then at most one of K, M, G (powers of 1024).
std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  unsigned shift = 0;
  if (!text.empty()) {
    shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : text.back() == 'G' ? 30 : 0;
    if (shift != 0) text.remove_suffix(1);
  }
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  for (const char character : text) {
    const auto digit = static_cast<std::uint64_t>(character - '0');
    if (number > (kLargest - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  if (number == 0 || number > (kLargest >> shift)) return std::nullopt;
  return number << shift;
}

std::string default_root() {
  // The XDG base directory specification says to ignore a relative path.
  if (const std::string base = variable("XDG_CACHE_HOME"); is_absolute(base)) return base + "/jitconv";
  if (const std::string home = variable("HOME"); is_absolute(home)) return home + "/.cache/jitconv";
  return {};
}

}  // namespace

StoreConfig store_config_from_environment(const std::function<void(const std::string&)>& warn) {
  StoreConfig off;
  off.mode = Mode::off;
  const auto turn_off = [&](const std::string& reason) {
    if (warn) warn(reason);
    return off;
  };
  // Nobody asked a privileged program for a cache, so there is nothing to warn of.
  if (getauxval(AT_SECURE) != 0) return off;

  StoreConfig config;
  const std::string mode_text = variable(kModeVariable);
  const auto mode = parse_mode(mode_text);
  if (!mode) return turn_off(unreadable(kModeVariable, mode_text, "it must be rw, ro or off"));
  if (*mode == Mode::off) return off;
  config.mode = *mode;

  if (const std::string size_text = variable(kSizeVariable); !size_text.empty()) {
    const auto size = parse_size(size_text);
    if (!size) {
      return turn_off(
          unreadable(kSizeVariable, size_text, "it must be a positive number of bytes, or one followed by K, M or G"));
    }
    config.max_bytes = *size;
  }

  config.root = variable(kDirectoryVariable);
  if (config.root.empty()) config.root = default_root();
  if (config.root.empty()) {
    return turn_off(std::string("disk cache is off: neither ") + kDirectoryVariable +
                    " nor XDG_CACHE_HOME nor HOME names a directory");
  }
  if (!is_absolute(config.root)) {
    return turn_off(unreadable(kDirectoryVariable, config.root, "it must be an absolute path"));
  }
  return config;
}

}  // namespace jitconv::cache
