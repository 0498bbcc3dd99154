#include "page/views.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "shared/row_json.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using component::json_of;
using component::RowJson;

/// The enumerator of this name, from the first one to `last`. None for an empty text.
template <class Enum>
std::optional<Enum> named(std::string_view text, Enum last) {
  if (text.empty()) return std::nullopt;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such state");
}

/// One page of a list: its rows, and the cursor of the next page. Empty: there is none.
template <class Filter, class List>
RowJson page_of(Connection& connection, const Target& target, Filter filter, const List& list) {
  const std::size_t limit = limit_of(target);
  filter.limit = limit + 1;
  filter.after = target["after"];
  auto rows = list(ConnectionRef(connection), filter);
  std::string next;
  if (rows.size() > limit) {
    rows.pop_back();
    next = rows.back().cursor;
  }
  return {{"rows", json_of(rows)}, {"next", next}};
}

/// Whether the error says that a table is missing, or that this user may not read it.
bool is_refused(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::schema_missing;
  } catch (...) {
    // 1142 and 1143: no privilege on a table, on a column. 1146 and 42P01: the table is gone since the look for it.
    constexpr std::array<std::string_view, 5> codes{"mysql 1142", "mysql 1143", "mysql 1146", "postgresql 42501",
                                                    "postgresql 42P01"};
    return std::ranges::find(codes, error_class(error)) != codes.end();
  }
}

/// Adds the rows as a member. If a table is missing, or this user may not read it, there are no rows, and `unreadable`
/// names the member.
template <class Read>
void add_if_allowed(RowJson& json, const char* member, const Read& read) {
  json[member] = RowJson::array();
  try {
    json[member] = json_of(read());
  } catch (...) {
    if (!is_refused(std::current_exception())) throw;
    json["unreadable"].push_back(member);
  }
}

/// Empties a text that can have what a message contains.
void hide(RowJson& rows, const char* member) {
  for (RowJson& row : rows) row[member] = "";
}

FailedFilter failed_filter(const Target& target) {
  return {.consumer = target["consumer"],
          .business_key = target["key"],
          .state = named(target["state"], FailedState::discarded),
          .error_class = target["error_class"]};
}

RowJson failed(Connection& connection, const Target& target, const ViewOptions& options) {
  RowJson json = page_of(connection, target, failed_filter(target),
                         [](const auto& on, const auto& with) { return list_failed(on, with); });
  if (!options.show_payloads) hide(json["rows"], "error_text");
  return json;
}

RowJson message(Connection& connection, const Target& target, const ViewOptions& options) {
  const std::string& consumer = target["consumer"];
  const std::string& key = target["key"];
  RowJson json{{"consumer", consumer}, {"business_key", key}, {"row", nullptr}};
  for (const char* list : {"failed", "conflicts", "outbox", "audit", "unreadable"}) json[list] = RowJson::array();
  if (consumer.empty() || key.empty()) return json;
  if (const auto row = find_message(connection, consumer, key)) json["row"] = json_of(*row);
  const FailedFilter one{.consumer = consumer, .business_key = key, .payloads = options.show_payloads};
  for (const std::optional<FailedState> state : {std::optional<FailedState>(), std::optional(FailedState::discarded)}) {
    FailedFilter filter = one;
    filter.state = state;
    for (const FailedMessage& each : list_failed(connection, filter)) {
      RowJson row = json_of(each);
      if (each.payload) component::add_payload(row, *each.payload);
      if (!options.show_payloads) row["error_text"] = "";
      json["failed"].push_back(std::move(row));
    }
  }
  if (!options.show_payloads && !json["row"].is_null()) {
    json["row"].erase("stored_hex");
    json["row"]["stored"] = nullptr;
  }
  json["conflicts"] = json_of(list_conflicts(connection, {.consumer = consumer, .business_key = key}));
  add_if_allowed(json, "outbox", [&] { return list_outbox(connection, {.key = key, .limit = default_limit}); });
  if (!options.show_payloads) hide(json["outbox"], "last_error");
  add_if_allowed(json, "audit", [&] {
    return list_audit(connection, {.consumer = consumer, .business_key = key, .limit = default_limit});
  });
  return json;
}

RowJson conflicts(Connection& connection, const Target& target, const ViewOptions&) {
  return page_of(connection, target, ConflictFilter{.consumer = target["consumer"], .business_key = target["key"]},
                 [](const auto& on, const auto& filter) { return list_conflicts(on, filter); });
}

RowJson leases(Connection& connection, const Target& target, const ViewOptions&) {
  return page_of(connection, target, LeaseFilter{.consumer = target["consumer"]},
                 [](const auto& on, const auto& filter) { return list_leases(on, filter); });
}

RowJson outbox(Connection& connection, const Target& target, const ViewOptions& options) {
  const OutboxFilter filter{.id = target["id"],
                            .topic = target["topic"],
                            .key = target["key"],
                            .state = named(target["state"], OutboxState::parked)};
  RowJson json =
      page_of(connection, target, filter, [](const auto& on, const auto& with) { return list_outbox(on, with); });
  if (!options.show_payloads) hide(json["rows"], "last_error");
  return json;
}

RowJson audit(Connection& connection, const Target& target, const ViewOptions&) {
  const AuditFilter filter{
      .consumer = target["consumer"], .business_key = target["key"], .actor = target["by"], .action = target["action"]};
  return page_of(connection, target, filter, [](const auto& on, const auto& with) { return list_audit(on, with); });
}

using View = RowJson (*)(Connection&, const Target&, const ViewOptions&);

constexpr std::array<std::pair<std::string_view, View>, 6> views{{{"/failed", failed},
                                                                  {"/message", message},
                                                                  {"/conflicts", conflicts},
                                                                  {"/leases", leases},
                                                                  {"/outbox", outbox},
                                                                  {"/audit", audit}}};

}  // namespace

RowJson read_consumers(Connection& connection) {
  RowJson json = json_of(quick_status(connection));
  json["unreadable"] = RowJson::array();
  add_if_allowed(json, "pauses", [&] { return list_pauses(connection); });
  return json;
}

std::optional<RowJson> read_view(Connection& connection, const Target& target, const ViewOptions& options) {
  const auto* const view = std::ranges::find(views, target.path, &std::pair<std::string_view, View>::first);
  if (view == views.end()) return std::nullopt;
  return view->second(connection, target, options);
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
