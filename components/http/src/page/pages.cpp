#include "page/pages.hpp"

#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "page/consumers_page.hpp"
#include "page/html.hpp"
#include "page/layout.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using Json = nlohmann::ordered_json;

/// The buttons of a failed message, or of a group of them.
std::string failed_changes(const Json& body, std::string_view state, std::string_view what) {
  const std::string of(what);
  std::string html;
  if (state == "parked" || state == "failing")
    html += button("Retry", "failed/retry", body, "Let run again: " + of + "?", of);
  if (state == "parked")
    html += button("Redrive", "failed/redrive", body, "Publish again from the stored payload: " + of + "?", of);
  if (state == "parked" || state == "failing" || state == "torn")
    html += button("Discard", "failed/discard", body, "Give up for good: " + of + "?", of);
  return html;
}

std::string changes_of_row(const Json& row) {
  return failed_changes({{"consumer", row.at("consumer")}, {"business_key", row.at("business_key")}},
                        text_in(row, "state"), text_in(row, "business_key") + " of " + text_in(row, "consumer"));
}

std::string failed(const Target& target, const Json& view, const PageContext& context) {
  std::string html = filter_form(target, context,
                                 {{"Consumer", "consumer"},
                                  {"Business key", "key"},
                                  {"State", "state", {"failing", "running", "parked", "torn", "discarded"}},
                                  {"Error class", "error_class"}});
  const auto of_group = [&](const Json& row, std::string_view member) -> std::string {
    const std::string error = text_in(row, "error_class");
    if (member == "error_class" && !error.empty()) {
      return anchor(
          link_to(context.path + "/failed",
                  {{"consumer", text_in(row, "consumer")}, {"state", text_in(row, "state")}, {"error_class", error}}),
          error);
    }
    const std::string until = text_in(row, "last_failed_at");
    if (member != "changes" || error.empty() || until.empty()) return {};
    const auto messages = row.at("messages").get<long long>();
    const std::string all = grouped(messages) + (messages == 1 ? " message" : " messages") + " of " +
                            text_in(row, "consumer") + ", " + text_in(row, "state") + ", " + error;
    return failed_changes({{"consumer", row.at("consumer")},
                           {"error_class", error},
                           {"state", row.at("state")},
                           {"expected", messages},
                           {"failed_until", until}},
                          text_in(row, "state"), all) +
           " ";
  };
  const auto of_row = [&](const Json& row, std::string_view member) -> std::string {
    return member == "changes" ? changes_of_row(row) + " " : std::string();
  };
  const auto with_changes = [&](std::vector<Column> columns) {
    if (context.may_write) columns.push_back({"Changes", "changes"});
    return columns;
  };
  if (target["key"].empty()) {  // the groups do not count one key
    html += age_of(view, "groups", "Groups");
    html += table("By error class",
                  with_changes({{"Consumer", "consumer"},
                                {"State", "state"},
                                {"Error class", "error_class"},
                                {"Messages", "messages", Shows::number},
                                {"First failure", "first_failed_at", Shows::time},
                                {"Last failure", "last_failed_at", Shows::time}}),
                  view.at("groups"), of_group);
  }
  html += table("Messages",
                with_changes({{"Consumer", "consumer"},
                              {"Business key", "business_key"},
                              {"State", "state"},
                              {"Attempts", "attempts", Shows::number},
                              {"Last error", "last_error"},
                              {"Age", "age_seconds", Shows::seconds}}),
                view.at("rows"), linked(context, of_row));
  return html + next_page(target, view, context);
}

std::string message(const Target& target, const Json& view, const PageContext& context) {
  std::string html = filter_form(target, context, {{"Consumer", "consumer"}, {"Business key", "key"}});
  const Json& row = view.at("row");
  if (target["consumer"].empty() || target["key"].empty()) return html + "<p>Name a consumer and a key.</p>\n";
  if (row.is_null() && view.at("failed").empty()) {
    html += "<p>Nothing is recorded for this key.</p>\n";
  }
  if (!row.is_null()) {
    html += "<section><h2>Record</h2><dl>";
    for (const auto& [name, value] : row.items()) {
      if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) continue;
      html += "<dt>" + escaped(name) + "</dt><dd>" +
              escaped(value.is_string() ? value.get<std::string>() : value.dump()) + "</dd>";
    }
    html += "</dl></section>\n";
  }
  const auto of_failed = [&](const Json& each, std::string_view member) -> std::string {
    return member == "changes" && context.may_write ? changes_of_row(each) + " " : std::string();
  };
  html += table("Failures",
                {{"State", "state"},
                 {"Attempts", "attempts", Shows::number},
                 {"Crashes", "crashes", Shows::number},
                 {"First error", "first_error"},
                 {"First failure", "first_failed_at", Shows::time},
                 {"Last error", "last_error"},
                 {"Last failure", "last_failed_at", Shows::time},
                 {"Error text", "error_text"},
                 {"Changes", "changes"}},
                view.at("failed"), of_failed);
  if (context.show_payloads) {
    for (const Json& each : view.at("failed")) {
      const auto payload = each.find(each.contains("payload") ? "payload" : "payload_base64");
      if (payload == each.end()) continue;
      html += "<section><h2>Payload</h2><pre>" + escaped(payload->get<std::string>()) + "</pre></section>\n";
    }
  }
  html += table("Conflicts",
                {{"Content", "content_hash", Shows::hash},
                 {"Message id", "message_id"},
                 {"Deliveries", "deliveries", Shows::number},
                 {"Last", "last_at", Shows::time},
                 {"Original", "original_hash", Shows::hash},
                 {"Original id", "original_message_id"}},
                view.at("conflicts"));
  html += table_of(view, "outbox", "In the outbox, with this key",
                   {{"Id", "id"}, {"Topic", "topic"}, {"State", "state"}, {"Age", "age_ms", Shows::milliseconds}});
  return html + table_of(view, "audit", "Audit",
                         {{"At", "at", Shows::time}, {"By", "by"}, {"Action", "action"}, {"Why", "reason"}});
}

std::string conflicts(const Target& target, const Json& view, const PageContext& context) {
  return filter_form(target, context, {{"Consumer", "consumer"}, {"Business key", "key"}}) +
         table("Messages that had a known key and other content",
               {{"Consumer", "consumer"},
                {"Business key", "business_key"},
                {"Message id", "message_id"},
                {"Content", "content_hash", Shows::hash},
                {"Deliveries", "deliveries", Shows::number},
                {"Last", "last_at", Shows::time},
                {"State", "state"},
                {"Original id", "original_message_id"},
                {"Original", "original_hash", Shows::hash}},
               view.at("rows"), linked(context)) +
         next_page(target, view, context);
}

std::string leases(const Target& target, const Json& view, const PageContext& context) {
  const auto cell = [](const Json& row, std::string_view member) -> std::string {
    const auto left = row.at("remaining_ms").get<long long>();
    return member == "remaining_ms" && left <= 0 ? "expired " + human_age(-left / 1000) + " ago" : std::string();
  };
  return filter_form(target, context, {{"Consumer", "consumer"}}) +
         table("Leases",
               {{"Consumer", "consumer"},
                {"Business key", "business_key"},
                {"Owner", "owner"},
                {"Attempt", "attempts", Shows::number},
                {"Since", "since", Shows::time},
                {"Held", "held_ms", Shows::milliseconds},
                {"Left", "remaining_ms", Shows::milliseconds}},
               view.at("rows"), linked(context, cell)) +
         next_page(target, view, context);
}

std::string outbox(const Target& target, const Json& view, const PageContext& context) {
  const Json& status = view.at("status");
  const auto count = [&](const char* name) { return grouped(status.at(name).get<long long>()); };
  std::string html = age_of(view, "status", "The whole outbox");
  if (!status.is_null()) {
    html += "<p>Waiting " + count("waiting") + ", failing " + count("failing") + ", parked " + count("parked");
    if (!text_in(status, "oldest").empty())
      html += ", the oldest since " + human_age(status.at("oldest_ms").get<long long>() / 1000);
    html += ". Parts without a relay: " + count("free_parts") + " of 64.</p>\n";
  }
  html += filter_form(
      target, context,
      {{"Topic", "topic"}, {"Key", "key"}, {"Id", "id"}, {"State", "state", {"waiting", "failing", "parked"}}});
  const auto cell = [&](const Json& row, std::string_view member) -> std::string {
    if (member != "changes" || !context.may_write) return {};
    const Json body{{"id", row.at("id")}};
    const std::string state = text_in(row, "state");
    const std::string id = text_in(row, "id");
    std::string buttons;
    if (state == "parked") buttons += button("Retry", "outbox/retry", body, "Let " + id + " be published again?", id);
    if (state != "waiting") buttons += button("Discard", "outbox/discard", body, "Remove " + id + " for good?", id);
    return buttons + " ";
  };
  html += table("Messages",
                {{"Id", "id"},
                 {"Topic", "topic"},
                 {"Key", "key"},
                 {"Type", "type"},
                 {"State", "state"},
                 {"Age", "age_ms", Shows::milliseconds},
                 {"Attempts", "attempts", Shows::number},
                 {"Last error", "last_error"},
                 {"Changes", "changes"}},
                view.at("rows"), cell);
  html += next_page(target, view, context);
  if (status.is_null()) return html;
  return html + table("Relays",
                      {{"Relay", "name"},
                       {"Started", "started_at", Shows::time},
                       {"Parts", "parts", Shows::number},
                       {"Lease", "remaining_ms", Shows::milliseconds}},
                      status.at("relays"));
}

std::string audit(const Target& target, const Json& view, const PageContext& context) {
  return filter_form(target, context,
                     {{"Consumer", "consumer"}, {"Business key", "key"}, {"By", "by"}, {"Action", "action"}}) +
         table("Changes",
               {{"At", "at", Shows::time},
                {"By", "by"},
                {"Action", "action"},
                {"Consumer", "consumer"},
                {"Business key", "business_key"},
                {"Messages", "messages", Shows::number},
                {"Why", "reason"}},
               view.at("rows"), linked(context)) +
         next_page(target, view, context);
}

std::string doctor(const Target&, const Json& view, const PageContext&) {
  const Json& rows = view.at("rows");
  if (rows.is_null()) return "<p>The database is being examined. This page shows the result.</p>\n";
  std::string html = "<p>Examined " + human_age(view.at("age_seconds").get<long long>()) + " ago.";
  if (!text_in(view, "error").empty()) html += " The latest try failed: " + escaped(text_in(view, "error"));
  html += "</p>\n";
  return html + table("Findings",
                      {{"Severity", "severity"}, {"Subject", "subject"}, {"Found", "found"}, {"Remedy", "remedy"}},
                      rows);
}

struct Page {
  std::string_view path;
  std::string_view title;
  std::string (*html)(const Target&, const Json&, const PageContext&);
};

constexpr std::array<Page, 8> pages{{{"/", "Consumers", consumers_page},
                                     {"/failed", "Failed messages", failed},
                                     {"/message", "Message", message},
                                     {"/conflicts", "Conflicts", conflicts},
                                     {"/leases", "Leases", leases},
                                     {"/outbox", "Outbox", outbox},
                                     {"/audit", "Audit", audit},
                                     {"/doctor", "Doctor", doctor}}};

}  // namespace

std::string html_of(const Target& target, const Json& view, const PageContext& context) {
  for (const Page& each : pages) {
    if (each.path == target.path) return frame(each.path, each.title, each.html(target, view, context), context);
  }
  return {};
}

std::string error_page(int status, std::string_view what, const PageContext& context) {
  return frame("", "Error " + std::to_string(status), "<p>" + escaped(what) + "</p>\n", context);
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
