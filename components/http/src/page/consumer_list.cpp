#include "page/consumer_list.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using Json = nlohmann::ordered_json;

bool is_above_zero(const Json& count) { return !count.is_null() && count.get<std::int64_t>() > 0; }

bool has_problems(const Json& row) {
  for (const char* count : {"failed", "parked", "conflicts", "expired_leases"}) {
    if (is_above_zero(row.at(count))) return true;
  }
  return row.at("paused").get<bool>();
}

bool wants_problems(const Target& target) {
  const std::string& state = target["state"];
  if (state.empty()) return false;
  if (state != "problems") throw Error(ErrorCode::invalid_argument, "the parameter state can only be problems");
  return true;
}

const std::string& name_of(const Json& row) { return row.at("consumer").get_ref<const std::string&>(); }

/// The rows whose consumer has this text in its name.
Json named(Json& rows, const std::string& text) {
  Json chosen = Json::array();
  for (Json& row : rows) {
    if (name_of(row).find(text) != std::string::npos) chosen.push_back(std::move(row));
  }
  return chosen;
}

Json counts_of(const Json& rows) {
  std::int64_t failed = 0, parked = 0, problems = 0;
  for (const Json& row : rows) {
    failed += is_above_zero(row.at("failed")) ? 1 : 0;
    parked += is_above_zero(row.at("parked")) ? 1 : 0;
    problems += has_problems(row) ? 1 : 0;
  }
  return {{"consumers", rows.size()}, {"with_failed", failed}, {"with_parked", parked}, {"with_problems", problems}};
}

}  // namespace

void choose_consumers(Json& view, const Target& target) {
  const std::size_t limit = limit_of(target);
  const bool only_problems = wants_problems(target);
  const std::string& after = target["after"];
  view["counts"] = counts_of(view.at("consumers"));
  for (const char* list : {"consumers", "pauses", "sources"}) view[list] = named(view.at(list), target["consumer"]);
  Json chosen = Json::array();
  view["next"] = "";
  for (Json& row : view.at("consumers")) {  // sorted by name
    if (name_of(row) <= after || (only_problems && !has_problems(row))) continue;
    if (chosen.size() == limit) {
      view["next"] = chosen.back().at("consumer");
      break;
    }
    chosen.push_back(std::move(row));
  }
  view["consumers"] = std::move(chosen);
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
