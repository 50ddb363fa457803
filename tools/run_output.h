// What jitconv-run shows while it works: rows on stdout as they come, a progress line, and all rows as JSON at the end.
// A run that is interrupted, or that fails on the way, keeps its rows. Knows nothing of what a row says.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "tools/json.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace jitconv::tools {

/// While it lives, SIGINT, SIGTERM and SIGHUP first print what end() would have printed and write the JSON; then they
/// end the process as ever. One at a time.
class RunOutput {
 public:
  struct Settings {
    std::string program;           ///< for messages
    bool text = true;              ///< print rows; false: only JSON goes to stdout
    OutputFile* json = nullptr;    ///< where the JSON goes, if anywhere; must outlive the RunOutput
    json::Object head;             ///< what the JSON says of the run as a whole
    std::string rows = "results";  ///< the name of the JSON's array of rows
    std::size_t total = 0;         ///< rows to come
    bool quiet = false;            ///< no progress line
  };

  explicit RunOutput(Settings settings);
  /// As an interruption, less the end of the process, unless end() was called.
  ~RunOutput();
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  /// Prints what stands before the rows. Throws ToolError, as all that print do.
  void print(const std::string& text);
  /// For the progress line: what is being worked on.
  void begin(const std::string& what);
  /// Prints `row` and keeps `json`. `closing` replaces what would be printed after the last row.
  void add(const std::string& row, const json::Value& json, std::string closing = {});
  /// All rows are there: prints the closing text, writes the JSON.
  void end();

 private:
  void watch();
  void stop_watching();
  void close(bool interrupted);
  void keep_rows(const std::string& why);

  Settings settings_;
  Progress progress_;
  json::Array json_rows_;
  std::string closing_;
  bool ended_ = false;
  std::mutex mutex_;  ///< guards all of the above once the thread runs
  std::array<int, 2> pipe_{-1, -1};
  std::thread watcher_;
};

}  // namespace jitconv::tools
