#include "page/layout.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> links{{{"/", "Consumers"},
                                                                              {"/failed", "Failed"},
                                                                              {"/message", "Message"},
                                                                              {"/conflicts", "Conflicts"},
                                                                              {"/leases", "Leases"},
                                                                              {"/outbox", "Outbox"},
                                                                              {"/audit", "Audit"},
                                                                              {"/doctor", "Doctor"}}};

}  // namespace

std::string frame(std::string_view current, std::string_view title, const std::string& main,
                  const PageContext& context) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(title) +
      " – txinbox</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<link rel=\"stylesheet\" href=\"" +
      escaped(context.path) + "/page.css\"><script type=\"module\" src=\"" + escaped(context.path) +
      "/page.js\"></script></head>\n<body data-path=\"" + escaped(context.path) +
      "\"><a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header><p class=\"name\">txinbox</p>"
      "<nav aria-label=\"Pages\"><ul>";
  for (const auto& [path, name] : links) {
    html += "<li><a href=\"" + escaped(context.path) + std::string(path) + "\"" +
            (path == current ? " aria-current=\"page\"" : "") + ">" + std::string(name) + "</a></li>";
  }
  html += "</ul></nav></header>\n<main id=\"main\" tabindex=\"-1\"><h1>" + escaped(title) + "</h1>\n" + main +
          "</main>\n<div class=\"status\"><p id=\"said\" role=\"status\"></p></div>\n<footer><p>";
  html += context.may_write ? "You are " + escaped(context.user) + ". Each change is recorded in the audit."
                            : std::string(context.is_error ? "" : "This page is read-only.");
  return html + " Times are in UTC.</p></footer></body></html>\n";
}

std::string button(std::string_view name, std::string_view action, const Json& body, std::string_view question,
                   std::string_view of) {
  const std::string json = body.dump(-1, ' ', true, Json::error_handler_t::replace);  // ASCII: it stays exact
  return "<button type=\"button\" class=\"change\" data-action=\"" + escaped(action) + "\" data-body=\"" +
         escaped(json) + "\" data-question=\"" + escaped(question) + "\" aria-label=\"" + escaped(name) + " " +
         escaped(of) + "\">" + escaped(name) + "</button>";
}

std::string text_in(const Json& row, std::string_view member) { return row.at(std::string(member)).get<std::string>(); }

std::string age_of(const Json& view, const std::string& name, std::string_view what) {
  std::string text;
  const Json& age = view.at(name + "_age_seconds");
  if (age.is_null()) {
    text = ": being counted.";
  } else if (age.get<long long>() > 1) {
    text = ": counted " + human_age(age.get<long long>()) + " ago.";
  }
  const std::string error = view.value(name + "_error", "");
  if (!error.empty()) text = (age.is_null() ? std::string(":") : text) + " Counting fails: " + error;
  return text.empty() ? std::string() : "<p>" + escaped(std::string(what) + text) + "</p>\n";
}

CellOf linked(const PageContext& context, CellOf further) {
  return [context, further = std::move(further)](const Json& row, std::string_view member) -> std::string {
    if (member == "business_key" && !text_in(row, member).empty() && !text_in(row, "consumer").empty()) {
      const std::string key = text_in(row, member);
      return anchor(link_to(context.path + "/message", {{"consumer", text_in(row, "consumer")}, {"key", key}}), key);
    }
    return further ? further(row, member) : std::string();
  };
}

std::string next_page(const Target& target, const Json& view, const PageContext& context) {
  const std::string next = text_in(view, "next");
  if (next.empty() && target["after"].empty()) return {};
  std::string link = context.path + target.path + "?";
  for (const auto& [name, value] : target.parameters) {
    if (name != "after") link += percent_encoded(name) + "=" + percent_encoded(value) + "&";
  }
  std::string html = "<p class=\"pages\">";
  if (!target["after"].empty()) html += "<a href=\"" + escaped(link.substr(0, link.size() - 1)) + "\">First page</a> ";
  if (!next.empty())
    html += "<a rel=\"next\" href=\"" + escaped(link + "after=" + percent_encoded(next)) + "\">Next page</a>";
  return html + "</p>\n";
}

std::string table_of(const Json& view, std::string_view member, std::string_view caption,
                     const std::vector<Column>& columns) {
  const Json& unreadable = view.at("unreadable");
  if (std::ranges::find(unreadable, Json(member)) == unreadable.end())
    return table(caption, columns, view.at(std::string(member)));
  return "<section><h2>" + escaped(caption) +
         "</h2>\n<p class=\"none\">The table is missing, or the page's user of the database may not read it.</p>"
         "</section>\n";
}

std::string filter_form(const Target& target, const PageContext& context, const std::vector<Field>& fields) {
  std::string html = "<form class=\"filter\" method=\"get\" action=\"" + escaped(context.path + target.path) + "\">";
  for (const Field& each : fields) {
    html += "<label>" + escaped(each.label) + " ";
    if (each.choices.empty()) {
      html += "<input name=\"" + escaped(each.name) + "\" value=\"" + attribute(target[each.name]) + "\">";
    } else {
      html += "<select name=\"" + escaped(each.name) + "\"><option value=\"\">any</option>";
      for (const auto choice : each.choices) {
        html +=
            "<option" + std::string(choice == target[each.name] ? " selected>" : ">") + escaped(choice) + "</option>";
      }
      html += "</select>";
    }
    html += "</label> ";
  }
  return html + "<button>Show</button></form>\n";
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
