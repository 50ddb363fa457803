// See share.h.
#include "host/suite/share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <queue>
#include <string>
#include <string_view>

#include "codegen/source.h"

namespace jitconv::test {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The text with # for each number, also within names, so that unrolled taps and channels are alike; one blank for any
/// white space; and without the pieces of a list that equal the one before.
std::string form_of(std::string_view text) {
  std::string form;
  std::size_t piece = 0, last_piece = 0;  // where this piece of a list begins, and the one before
  const auto end_piece = [&] {
    const std::string_view mine = std::string_view(form).substr(piece);
    if (piece > 0 && mine == std::string_view(form).substr(last_piece, piece - last_piece)) {
      form.resize(piece);
    } else {
      last_piece = piece;
      piece = form.size();
    }
  };
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    const char next = is_digit(c) ? '#' : blank ? ' ' : c;
    if ((next == '#' || next == ' ') && (form.empty() ? blank : form.back() == next)) continue;
    form += next;
    if (form.ends_with(", ")) end_piece();
  }
  return form;
}

/// The text without its comments.
std::string without_comments(std::string_view text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    code += line.substr(0, line.find("//"));
    code += '\n';
    at = end + 1;
  }
  return code;
}

/// Calls `use` with each part of the text that ends with one of `ends`, without that.
template <class Use>
void each_part(std::string_view text, std::string_view ends, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(ends, at), text.size());
    use(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

std::set<std::uint64_t> features_of(const Case& wanted) {
  const codegen::ConvPlan& plan = *wanted.plan;
  const ConvSpec& spec = plan.spec;
  std::set<std::uint64_t> features;
  const auto add = [&features](const std::string& feature) { features.insert(std::hash<std::string>()(feature)); };
  each_part(without_comments(codegen::generate(plan).text), ";{}", [&](std::string_view statement) {
    // A kernel's name says all of its spec.
    if (statement.find("__global__") == std::string_view::npos) add(form_of(statement));
  });
  const std::string_view type = to_string(spec.dtype), family = codegen::to_string(plan.family());
  each_part(codegen::to_string(plan), "\n",
            [&](std::string_view line) { add(fmt::format("{} {}", type, form_of(line))); });
  const Epilogue& epilogue = spec.epilogue;
  add(fmt::format("{} {} {}", family, plan.target.arch(), type));
  add(fmt::format("{} {} {} {}", family, type, to_string(spec.input_layout), to_string(spec.output_layout)));
  add(fmt::format("{} {} {} {}", family, epilogue.bias, epilogue.residual, to_string(epilogue.activation)));
  add(fmt::format("{} {} alignment {}", family, type, spec.alignment));
  add(fmt::format("{} {} {} {}", family, to_string(spec.operation), type, to_string(output_type(spec))));
  return features;
}

std::vector<std::set<std::uint64_t>> features_of(const HostList& list) {
  std::vector<std::set<std::uint64_t>> features;
  features.reserve(list.cases.size());
  for (const Case& one : list.cases) {
    features.push_back(features_of(one));
    if (list.has_documented) features.back().insert(std::hash<std::string>()(documented_name(one)));
  }
  return features;
}

Parts split(const std::vector<std::set<std::uint64_t>>& features, std::size_t every) {
  const std::size_t count = features.size();
  std::vector<std::set<std::uint64_t>> missing = features;  // of each case, what the share does not have yet
  std::set<std::uint64_t> covered;
  std::vector<bool> chosen(count);
  const auto choose = [&](std::size_t index) {
    chosen[index] = true;
    covered.merge(missing[index]);
  };
  // Counts in the queue are upper bounds: what is missing only shrinks. Of equals the first of the list.
  std::priority_queue<std::pair<std::size_t, std::size_t>> queue;
  for (std::size_t i = 0; i < count; ++i) queue.push({missing[i].size(), count - i});
  while (!queue.empty()) {
    const auto [expected, place] = queue.top();
    queue.pop();
    const std::size_t index = count - place;
    std::erase_if(missing[index], [&covered](std::uint64_t feature) { return covered.count(feature) != 0; });
    if (missing[index].empty()) continue;
    if (missing[index].size() < expected) {
      queue.push({missing[index].size(), place});
    } else {
      choose(index);
    }
  }
  Parts parts;
  std::size_t since = 0;  // cases since the last one of the share
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_share = chosen[i] || ++since >= every;
    if (in_share) since = 0;
    (in_share ? parts.share : parts.rest).push_back(i);
  }
  return parts;
}

}  // namespace jitconv::test
