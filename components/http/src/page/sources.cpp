#include "page/sources.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "shared/row_json.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

using namespace std::chrono_literals;
using component::RowJson;

bool Sources::Entry::is_silent(Clock::time_point now) const {
  return now - heard_at > std::max<Clock::duration>(1min, 3 * status_interval);
}

/// `run` reports each try that fails. After the wait, a try can take seconds.
bool Sources::Entry::is_unavailable(Clock::time_point now) const {
  constexpr auto longest_try = 10s;
  return unavailable && now < unavailable_until + longest_try;
}

void Sources::add(const RunEvent& event, Clock::time_point now) {
  Key key(event.source, event.consumer, std::this_thread::get_id());
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() == most) {
      entries_.erase(std::ranges::min_element(entries_, {}, [](const auto& each) { return each.second.heard_at; }));
    }
    found = entries_.emplace(std::move(key), Entry()).first;
  }
  change(found->second, event, now);
}

void Sources::change(Entry& entry, const RunEvent& event, Clock::time_point now) {
  const auto mark = [&] { return Mark{now, std::chrono::system_clock::now(), std::string(event.error_class)}; };
  entry.heard_at = now;
  switch (event.type) {
    case RunEventType::status:
      if (entry.status) entry.status_interval = std::max(entry.status_interval, now - entry.status_at);
      entry.status = *event.status;
      entry.status_at = now;
      entry.is_connected = event.status->connected;
      break;
    case RunEventType::source:
      if (event.source_event->type == SourceEventType::connected) entry.is_connected = true;
      if (event.source_event->type == SourceEventType::disconnected) entry.is_connected = false;
      break;
    case RunEventType::tripped:
      entry.tripped = mark();
      break;
    case RunEventType::resumed:
      entry.tripped.reset();
      break;
    case RunEventType::paused:
      entry.paused = mark();
      break;
    case RunEventType::unpaused:
      entry.paused.reset();
      break;
    case RunEventType::unavailable:
      if (!entry.is_unavailable(now)) entry.unavailable = mark();
      entry.unavailable->error_class = event.error_class;
      entry.unavailable_until = now + event.backoff;
      break;
    case RunEventType::acknowledged:  // messages that were done before the outage
      if (now >= entry.unavailable_until) entry.unavailable.reset();
      break;
    case RunEventType::held:
      ++entry.held;
      break;
    case RunEventType::retry:
    case RunEventType::dead_letter:
    case RunEventType::dead_letter_failed:
    case RunEventType::dropped:
      break;
  }
}

RowJson Sources::json_of(const Key& key, const Entry& entry, Clock::time_point now) {
  const auto seconds_since = [&](Clock::time_point time) {
    return std::chrono::floor<std::chrono::seconds>(now - time).count();
  };
  RowJson json{{"source", std::get<0>(key)},
               {"consumer", std::get<1>(key)},
               {"connected", nullptr},
               {"lag", nullptr},
               {"lanes", nullptr},
               {"reconnects", nullptr},
               {"state", "running"},
               {"error_class", ""},
               {"since", ""},
               {"held", entry.held},
               {"status_age_seconds", nullptr}};
  if (entry.is_connected) json["connected"] = *entry.is_connected;
  if (entry.status) {
    if (entry.status->lag) json["lag"] = *entry.status->lag;
    json["lanes"] = entry.status->lanes;
    json["reconnects"] = entry.status->reconnects;
    json["status_age_seconds"] = seconds_since(entry.status_at);
  }
  const auto set = [&](const char* state, const std::optional<Mark>& mark) {
    json["state"] = state;
    json["error_class"] = mark->error_class;
    json["since"] = component::time_text(std::chrono::floor<std::chrono::microseconds>(mark->since));
  };
  if (entry.is_silent(now)) {
    json["state"] = "silent";
  } else if (entry.is_unavailable(now)) {
    set("unavailable", entry.unavailable);
  } else if (entry.tripped) {
    set("tripped", entry.tripped);
  } else if (entry.paused) {
    set("paused", entry.paused);
  }
  return json;
}

void Sources::forget_replaced(Clock::time_point now) {
  std::set<std::pair<std::string_view, std::string_view>> live;
  const auto name_of = [](const Key& key) {
    return std::pair<std::string_view, std::string_view>(std::get<0>(key), std::get<1>(key));
  };
  for (const auto& [key, entry] : entries_) {
    if (!entry.is_silent(now)) live.insert(name_of(key));
  }
  std::erase_if(entries_, [&](const auto& each) {
    return each.second.is_silent(now) && now - each.second.heard_at > 1h && live.contains(name_of(each.first));
  });
}

RowJson Sources::read(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  forget_replaced(now);
  RowJson rows = RowJson::array();
  for (const auto& [key, entry] : entries_) rows.push_back(json_of(key, entry, now));
  return rows;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
