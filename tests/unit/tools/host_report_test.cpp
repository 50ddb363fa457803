// What is printed of made-up runs on the host: every kind of trouble has to show.
#include "tools/host_report.h"

#include <gtest/gtest.h>

#include "support/json_reader.h"
#include "unit/tools/cli_process.h"

namespace jitconv::tools {
namespace {

OutputCheck right_check() {
  OutputCheck check;
  check.comparison.compared = check.comparison.with_terms = 10;
  check.every_output = true;
  return check;
}

HostRun right_run(check::DataKind data, host::Landing landing) {
  HostRun run;
  run.kind = {data, landing};
  run.check = right_check();
  run.reports.resize(1);
  run.ms = 9;
  run.cpu_ms = 2;
  return run;
}

/// 2 x 1,000,000 multiply-adds in 4 ms of a core.
HostMeasurement right_row(const std::string& name) {
  HostMeasurement row;
  row.named = {name, parse_spec("input=8,10,1000,100 weight=10,10,1,1")};
  Reduction reduction;
  reduction.plan.spec = parse_spec("input=1,10,100,100 weight=10,10,1,1");
  reduction.plan.kernels = {{codegen::lower(reduction.plan.spec), codegen::DirectTiling{}, {}}};
  reduction.reduced = true;
  reduction.tiles = {1, 2, 3};
  row.reduction = reduction;
  row.compile_ms = 123.4;
  row.runs = {right_run(check::DataKind::exact, host::Landing::early),
              right_run(check::DataKind::random, host::Landing::late)};
  row.runs[1].check.comparison.worst_error = 1e-6;
  row.runs[1].check.comparison.worst_ratio = 0.125;
  return row;
}

host::Finding race() {
  host::Finding finding;
  finding.rule = host::Rule::race;
  finding.kernel = "some_kernel";
  finding.line = 42;
  finding.block = {7, 0, 0};
  finding.thread = 33;
  finding.address = "shared + 0x40 (4 bytes)";
  finding.text = "written by thread 1 at line 40";
  return finding;
}

DeviceProperties some_cpu() {
  DeviceProperties device;
  device.name = "Some CPU";
  device.driver = "g++ 12.2.0";
  device.target = parse_target("sm_80");
  return device;
}

HostOptions some_options() {
  HostOptions options;
  options.limits = host_work_limits(true, false, 400'000'000);
  return options;
}

std::string table_of(const std::vector<HostMeasurement>& rows) {
  std::vector<NamedSpec> chosen;
  for (const HostMeasurement& row : rows) chosen.push_back(row.named);
  const RowFormat table = host_table(chosen, some_options());
  std::string text = host_heading(some_cpu(), some_options()) + table.heading();
  for (const HostMeasurement& row : rows) text += table.line(host_cells(row));
  return text + host_closing(rows, some_options(), 61'400);
}

/// The words of the table's row that starts with `name`.
std::vector<std::string> row_of(const std::string& text, const std::string& name) {
  std::vector<std::string> words;
  for (const std::string& line : test::lines_of(text)) {
    if (line.rfind(name + " ", 0) != 0) continue;
    for (std::size_t begin = 0; (begin = line.find_first_not_of(' ', begin)) != std::string::npos;) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      words.push_back(line.substr(begin, end - begin));
      begin = end;
    }
    return words;
  }
  return words;
}

TEST(HostReport, ARowHasTheReducedShapeBothResultsAndTheRate) {
  const std::string text = table_of({right_row("X")});
  EXPECT_EQ(row_of(text, "X"), (std::vector<std::string>{"X", "1,100,100", "8,1000,100", "direct", "1x2x3", "ok", "ok",
                                                         "1.00e-06", "0.125", "0", "500", "123"}));
  EXPECT_NE(text.find("host: Some CPU, compiled by g++ 12.2.0; the code for sm_80\n"), std::string::npos) << text;
  EXPECT_NE(text.find("exact data while copies land early, random data while they land late"), std::string::npos);
  EXPECT_NE(text.find("at most 400 M multiply-adds"), std::string::npos);
  EXPECT_NE(text.find("1 of 1 ran on the host and are right, 0 findings; 61 s\n"), std::string::npos) << text;
}

TEST(HostReport, WrongResultsFindingsAndFailuresShow) {
  HostMeasurement wrong = right_row("W");
  wrong.runs[0].check.comparison.wrong = 3;
  wrong.outcome = Outcome::wrong;
  wrong.note = "3 of 10 outputs wrong";
  HostMeasurement racy = right_row("R");
  racy.runs[1].reports[0].findings = {race(), race()};
  racy.outcome = Outcome::wrong;
  HostMeasurement failed;
  failed.named.name = "F";
  failed.outcome = Outcome::failed;
  failed.note = "no compiler";
  const std::string text = table_of({right_row("X"), wrong, racy, failed});
  EXPECT_EQ(row_of(text, "W")[5], "WRONG");
  EXPECT_EQ(row_of(text, "W")[6], "ok");
  EXPECT_NE(text.find("W: 3 of 10 outputs wrong\n"), std::string::npos) << text;
  EXPECT_EQ(row_of(text, "R")[9], "2");
  EXPECT_NE(text.find("R (random, late): " + host::to_string(race()) + "\n"), std::string::npos) << text;
  EXPECT_EQ(row_of(text, "F"),
            (std::vector<std::string>{"F", "-", "-", "-", "-", "failed", "failed", "-", "-", "-", "-", "-"}));
  EXPECT_NE(text.find("F: no compiler\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 4 ran on the host and are right, 2 findings"), std::string::npos) << text;
}

TEST(HostReport, ARunWithAFindingHasNotPassedWhateverItWrote) {
  HostRun run = right_run(check::DataKind::exact, host::Landing::late);
  EXPECT_TRUE(run.passed());
  run.reports[0].findings = {race()};
  EXPECT_FALSE(run.passed());
  run.reports[0].findings.clear();
  run.check.unwritten = 1;
  EXPECT_FALSE(run.passed());
}

TEST(HostReport, NotesThatRowsShareAreSaidOnce) {
  HostMeasurement a = right_row("A"), b = right_row("B"), c = right_row("C");
  a.reduction->note = b.reduction->note = "1 of 2 tiles along N";
  c.reduction->note = "another";
  const std::string text = table_of({a, b, c});
  EXPECT_NE(text.find("A, B: 1 of 2 tiles along N\nC: another\n"), std::string::npos) << text;
}

TEST(HostReport, CountersAreThoseOfTheLastRunPerKernel) {
  HostMeasurement row = right_row("X");
  host::Report& report = row.runs[1].reports[0];
  report.counters.global_loads = {100, 400, 12800};
  report.counters.global_stores = {10, 80, 1280};
  report.counters.shared_loads = {7, 20, 12, 896};
  report.counters.fmas = 999;
  std::vector<std::string> words = row_of(host_counters_text({row}), "X");
  EXPECT_EQ(words, (std::vector<std::string>{"X", "100", "4.00", "100.0", "10", "8.00", "50.0", "7", "20", "8", "0",
                                             "0", "0", "999", "12800", "1280"}));
  row.runs[1].reports.resize(2);
  EXPECT_EQ(row_of(host_counters_text({row}), "X")[1], "[0]") << "several kernels are told apart";
}

TEST(HostReport, JsonHasEveryFieldOfARun) {
  HostMeasurement racy = right_row("R");
  racy.outcome = Outcome::wrong;
  racy.runs[0].reports[0].findings = {race()};
  HostOptions options = some_options();
  options.counters = true;
  options.seed = 77;
  const test::Json json = test::JsonReader::read(json::render(host_head(some_cpu(), options)));
  EXPECT_EQ(json.at("device").string("name"), "host");
  EXPECT_EQ(json.at("device").string("cpu"), "Some CPU");
  EXPECT_EQ(json.integer("seed"), 77);
  const test::Json row = test::JsonReader::read(json::render(host_row_json(racy, options)));
  EXPECT_EQ(row.string("outcome"), "WRONG");
  EXPECT_EQ(parse_spec(row.string("spec")).input.n, 8);
  EXPECT_EQ(parse_spec(row.string("run_spec")).input.n, 1);
  const test::Json& run = row.at("runs").elements.at(0);
  EXPECT_EQ(run.string("data"), "exact");
  EXPECT_EQ(run.string("landing"), "early");
  EXPECT_EQ(run.integer("multiply_adds"), 1'000'000);
  EXPECT_EQ(run.at("counters").elements.at(0).integer("fmas"), 0);
  const test::Json& finding = run.at("findings").elements.at(0);
  EXPECT_EQ(finding.string("rule"), host::to_string(host::Rule::race));
  EXPECT_EQ(finding.integer("line"), 42);
  EXPECT_EQ(finding.integer("thread"), 33);
  EXPECT_EQ(row.at("runs").elements.at(1).at("findings").elements.size(), 0u);
}

}  // namespace
}  // namespace jitconv::tools
