#include "page/consumers_page.hpp"

#include <string_view>

#include <nlohmann/json.hpp>

#include "page/html.hpp"
#include "page/layout.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using Json = nlohmann::ordered_json;

std::string sources(const Json& rows) {
  const auto cell = [](const Json& row, std::string_view member) -> std::string {
    if (member == "connected" && !row.at("connected").is_null())
      return row.at("connected").get<bool>() ? "yes" : "<strong>no</strong>";
    const std::string state = text_in(row, "state");
    if (member != "state" || state == "running") return {};
    std::string html = "<strong>" + escaped(state == "unavailable" ? "database unavailable" : state) + "</strong>";
    if (!text_in(row, "error_class").empty()) html += ": " + escaped(text_in(row, "error_class"));
    const std::string since = text_in(row, "since");
    if (!since.empty()) html += ", since " + escaped(since.substr(0, since.find('.')));
    return html;
  };
  return table("Sources of this process",
               {{"Source", "source"},
                {"Consumer", "consumer"},
                {"Connected", "connected"},
                {"Waiting", "lag", Shows::number},
                {"Lanes", "lanes", Shows::number},
                {"Reconnects", "reconnects", Shows::number},
                {"State", "state"},
                {"Held so far", "held", Shows::number},
                {"Status age", "status_age_seconds", Shows::seconds}},
               rows, cell);
}

/// How many consumers need a look. The table can show them on a later page.
std::string summary(const Json& counts, const PageContext& context) {
  const auto count = [&](const char* name) { return counts.at(name).get<long long>(); };
  const auto all = count("consumers");
  std::string html = "<p>" + grouped(all) + (all == 1 ? " consumer" : " consumers");
  if (count("with_problems") == 0) return html + ", none with problems.</p>\n";
  html += ", " + anchor(context.path + "/?state=problems", grouped(count("with_problems")) + " with problems");
  html += ": " + grouped(count("with_failed")) + " with failed messages, " + grouped(count("with_parked")) +
          " with parked messages.";
  if (count("with_failed") + count("with_parked") > 0)
    html += " " + anchor(context.path + "/failed", "Show these messages");
  return html + "</p>\n";
}

}  // namespace

std::string consumers_page(const Target& target, const Json& view, const PageContext& context) {
  const auto cell = [&](const Json& row, std::string_view member) -> std::string {
    const std::string consumer = text_in(row, "consumer");
    if (member == "chart") return context.chart ? context.chart(consumer) : std::string();
    if ((member == "failed" || member == "parked") && row.at(std::string(member)) != 0) {
      const std::string_view state = member == "parked" ? "parked" : "";
      return anchor(link_to(context.path + "/failed", {{"consumer", consumer}, {"state", state}}),
                    grouped(row.at(std::string(member)).get<long long>()));
    }
    if (member == "conflicts" && row.at("conflicts") != 0) {
      return anchor(link_to(context.path + "/conflicts", {{"consumer", consumer}}),
                    grouped(row.at("conflicts").get<long long>()));
    }
    if (member != "paused") return {};
    const Json body{{"consumer", consumer}};
    if (!row.at("paused").get<bool>()) {
      const std::string change =
          context.may_write ? button("Pause", "pause", body, "Pause " + consumer + "?", consumer) : "";
      return "no " + change;
    }
    return "<strong>yes</strong> " +
           (context.may_write ? button("Resume", "resume", body, "Let " + consumer + " run again?", consumer) : "");
  };
  std::string html = "<p>" + escaped(text_in(view, "database")) + " " + escaped(text_in(view, "server_version")) +
                     ", schema version " + std::to_string(view.at("schema_version").get<int>());
  if (!view.at("estimated_rows").is_null())
    html += ", about " + grouped(view.at("estimated_rows").get<long long>()) + " rows";
  if (!view.at("consumed_age_seconds").is_null())
    html += "; consumed messages counted " + human_age(view.at("consumed_age_seconds").get<long long>()) + " ago";
  if (!text_in(view, "consumed_error").empty()) html += "; counting fails: " + escaped(text_in(view, "consumed_error"));
  html += "</p>\n" + age_of(view, "status", "These figures") + summary(view.at("counts"), context);
  html += filter_form(target, context, {{"Consumer", "consumer"}, {"State", "state", {"problems"}}});
  html += table("Consumers",
                {{"Consumer", "consumer"},
                 {"Consumed", "consumed", Shows::number},
                 {"A second", "per_second", Shows::number},
                 {"Last 10 minutes", "chart"},
                 {"Failed", "failed", Shows::number},
                 {"Parked", "parked", Shows::number},
                 {"Conflicts", "conflicts", Shows::number},
                 {"Leases", "leases_held", Shows::number},
                 {"Expired", "expired_leases", Shows::number},
                 {"Duplicates", "duplicates", Shows::number},
                 {"Paused", "paused"}},
                view.at("consumers"), cell);
  html += next_page(target, view, context);
  if (!view.at("pauses").empty() || !view.at("unreadable").empty()) {
    html += table_of(view, "pauses", "Pauses",
                     {{"Consumer", "consumer"},
                      {"Since", "paused_at", Shows::time},
                      {"Until", "resumes_at", Shows::time},
                      {"By", "by"},
                      {"Why", "reason"}});
  }
  if (!view.at("sources").empty()) html += sources(view.at("sources"));
  return html;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
