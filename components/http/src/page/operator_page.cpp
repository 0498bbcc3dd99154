#include <txinbox/operator_page.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/result.hpp>

#include "digest.hpp"
#include "page/access.hpp"
#include "page/actions.hpp"
#include "page/assets.hpp"
#include "page/consumer_list.hpp"
#include "page/pages.hpp"
#include "page/rates.hpp"
#include "page/slow_view.hpp"
#include "page/sources.hpp"
#include "page/target.hpp"
#include "page/views.hpp"
#include "shared/row_json.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using component::RowJson;
using namespace std::chrono_literals;

constexpr std::string_view html_type = "text/html; charset=utf-8";
constexpr std::string_view json_type = "application/json";

constexpr std::array group_filters{"consumer", "state", "error_class"};

/// The page loads only its own files, no other page can show it in a frame, and no proxy keeps it.
Response answer(int status, std::string_view type, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", std::string(type)},
                      {"Content-Security-Policy",
                       "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                       "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cache-Control", "no-store"}},
          .body = std::move(body)};
}

int status_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    switch (e.code()) {
      case ErrorCode::invalid_argument:
      case ErrorCode::invalid_key:
      case ErrorCode::invalid_message:
        return 400;
      default:
        return 503;
    }
  } catch (...) {
    return 503;
  }
}

/// Whether the target is this path, or one below it.
bool is_below(std::string_view target, std::string_view path) {
  if (!target.starts_with(path)) return false;
  target.remove_prefix(path.size());
  return target.empty() || target.starts_with('/') || target.starts_with('?');
}

bool is_read(const std::string& method) { return method == "GET" || method == "HEAD"; }

RowJson whole_counts(Connection& connection) {
  RowJson counts = RowJson::object();
  for (const ConsumerStatus& each : inbox_status(connection).consumers) counts[each.consumer] = each.consumed;
  return counts;
}

RowJson failed_groups(Connection& connection) {
  FailedFilter all;  // of at most 1,000 groups
  RowJson groups = component::json_of(group_failed(connection, all));
  all.state = FailedState::discarded;
  for (const FailedGroup& each : group_failed(connection, all)) groups.push_back(component::json_of(each));
  return groups;
}

RowJson relays_and_backlog(Connection& connection) { return component::json_of(outbox_status(connection)); }

RowJson findings(Connection& connection) { return component::json_of(diagnose(connection)); }

/// Adds the latest result, its age, and why a later reading has failed. The result is null if there is none yet.
void add(RowJson& view, const std::string& name, SlowView& slow) {
  const SlowView::Result result = slow.get();
  view[name] = result.value;
  view[name + "_age_seconds"] = result.value.is_null() ? RowJson() : RowJson(result.age.count());
  view[name + "_error"] = result.error;
}

}  // namespace

class OperatorPage::Impl {
 public:
  Impl(Pool& pool, OperatorPageOptions options)
      : pool_(pool),
        options_(std::move(options)),
        access_(options_),
        status_(pool, {.first_wait = 10s}, [this](Connection& connection) { return status(connection); }),
        counts_(pool, {.least_pause = 5s}, whole_counts),
        groups_(pool, {}, failed_groups),
        outbox_(pool, {}, relays_and_backlog),
        doctor_(pool, {.least_pause = 5s}, findings) {}

  Response handle(const Request& request) {
    Response response = respond(request);
    if (request.method != "HEAD") return response;
    if (response.status != 304) response.headers.push_back({"Content-Length", std::to_string(response.body.size())});
    response.body.clear();
    return response;
  }

  std::shared_ptr<Listener> listener() const { return sources_; }

 private:
  Response respond(const Request& request) {
    const bool wants_json = is_below(request.target, options_.path + "/api");
    try {
      if (const auto refused = access_.refuses_host(request)) return refuse(*refused, wants_json);
      Target target = read_target(request.target);
      if (!is_below(request.target, options_.path)) return refuse({404, "there is no such page"}, wants_json);
      target.path.erase(0, options_.path.size());
      if (target.path.empty()) target.path = "/";
      if (wants_json) {
        target.path.erase(0, std::string_view("/api").size());
        if (target.path.empty() || target.path == "/consumers") target.path = "/";
      }
      if (const auto refused = access_.refuses_read(request)) return refuse(*refused, wants_json);
      std::string user;
      if (options_.sign_in) {
        auto name = options_.sign_in(request);
        if (!name) return ask_to_sign_in(wants_json);
        user = std::move(*name);
      }
      if (is_read(request.method)) return read(request, target, wants_json, user);
      if (request.method != "POST" || !wants_json) return refuse({405, "this method is not allowed"}, wants_json);
      return change(request, target, user);
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      const std::string text = describe_error(error);
      return refuse({status_of(error), text}, wants_json);
    }
  }

  Response read(const Request& request, const Target& target, bool wants_json, const std::string& user) {
    if (target.path == "/page.css")
      return with_tag(request, answer(200, "text/css; charset=utf-8", std::string(page_css())));
    if (target.path == "/page.js")
      return with_tag(request, answer(200, "text/javascript; charset=utf-8", std::string(page_js())));
    const std::optional<RowJson> view = view_of(target);
    if (!view) return refuse({404, "there is no such page"}, wants_json);
    if (wants_json) return with_tag(request, answer(200, json_type, component::text_of(*view) + '\n'));
    return with_tag(request, answer(200, html_type, html_of(target, *view, context(user))));
  }

  std::optional<RowJson> view_of(const Target& target) {
    if (target.path == "/") return consumers(target);
    if (target.path == "/doctor") return examined();
    auto view = list_of(target);
    if (target.path == "/failed") add_groups(*view, target);
    if (target.path == "/outbox") add(*view, "status", outbox_);
    return view;
  }

  /// It keeps no connection: a reading in the background needs one.
  std::optional<RowJson> list_of(const Target& target) {
    Connection connection = pool_.acquire();
    return read_view(connection, target, {.show_payloads = options_.show_payloads});
  }

  RowJson status(Connection& connection) {
    RowJson view = read_consumers(connection);
    rates_.add(view["consumers"], Rates::Clock::now());
    return view;
  }

  RowJson consumers(const Target& target) {
    const SlowView::Result result = status_.get();
    if (!result.error.empty()) throw std::runtime_error(result.error);
    if (result.value.is_null()) throw std::runtime_error("the consumers are being counted for the first time");
    RowJson view = result.value;
    view["status_age_seconds"] = result.age.count();
    add_counts(view);
    view["sources"] = sources_->read(Sources::Clock::now());
    choose_consumers(view, target);
    return view;
  }

  RowJson examined() {
    const SlowView::Result result = doctor_.get();
    if (!result.error.empty() && result.value.is_null()) throw std::runtime_error(result.error);
    return {{"rows", result.value}, {"age_seconds", result.age.count()}, {"error", result.error}};
  }

  /// The groups that the filter of the list selects. Those of one key are not counted.
  void add_groups(RowJson& view, const Target& target) {
    add(view, "groups", groups_);
    const auto selects = [&](const RowJson& group) {
      if (target["state"].empty() && group["state"] == to_string(FailedState::discarded)) return false;
      return std::ranges::all_of(
          group_filters, [&](const char* member) { return target[member].empty() || group[member] == target[member]; });
    };
    RowJson selected = RowJson::array();
    for (RowJson& group : view["groups"]) {
      if (target["key"].empty() && selects(group)) selected.push_back(std::move(group));
    }
    view["groups"] = std::move(selected);
  }

  /// The numbers of all consumed messages, as old as they are.
  void add_counts(RowJson& view) {
    add(view, "consumed", counts_);
    std::map<std::string, std::int64_t> consumed;
    if (!view["consumed"].is_null()) view["consumed"].get_to(consumed);
    view.erase("consumed");
    for (RowJson& consumer : view["consumers"]) {
      const auto found = consumed.find(consumer["consumer"].get<std::string>());
      consumer["consumed"] = found == consumed.end() ? RowJson() : RowJson(found->second);
    }
  }

  Response change(const Request& request, const Target& target, const std::string& user) {
    if (const auto refused = access_.refuses_change(request)) return refuse(*refused, true);
    const auto type = find_header(request.headers, "Content-Type").value_or("");
    if (type.substr(0, type.find(';')) != json_type) return refuse({415, "a change is JSON"}, true);
    Connection connection = pool_.acquire();
    std::optional<ActionResult> done;
    try {
      done = run_action(connection, std::string_view(target.path).substr(1), request.body, user);
    } catch (...) {
      expire();  // a part of the change may be there
      throw;
    }
    expire();
    if (!done) return refuse({404, "there is no such change"}, true);
    return answer(done->status, json_type, done->text + '\n');
  }

  /// The figures in the background are read again. They are also if somebody else has changed something: the operator
  /// has seen another number.
  void expire() {
    status_.expire();
    groups_.expire();
    outbox_.expire();
  }

  /// The same content again needs no body: a browser that polls keeps what it has.
  static Response with_tag(const Request& request, Response response) {
    const std::string tag = '"' + sha256_hex(response.body).substr(0, 32) + '"';
    response.headers.push_back({"ETag", tag});
    if (find_header(request.headers, "If-None-Match") == tag) {
      response.status = 304;
      response.body.clear();
    }
    return response;
  }

  Response ask_to_sign_in(bool wants_json) const {
    Response response = refuse({401, "sign in"}, wants_json);
    if (!options_.challenge.empty()) response.headers.push_back({"WWW-Authenticate", options_.challenge});
    return response;
  }

  Response refuse(const Refused& refused, bool wants_json) const {
    if (wants_json) return answer(refused.status, json_type, component::text_of({{"error", refused.why}}) + '\n');
    PageContext of_error = context("");
    of_error.is_error = true;
    return answer(refused.status, html_type, error_page(refused.status, refused.why, of_error));
  }

  PageContext context(const std::string& user) const {
    return {.path = options_.path,
            .may_write = options_.may_write && !user.empty(),
            .user = user,
            .show_payloads = options_.show_payloads,
            .chart = [this](const std::string& consumer) { return rates_.chart(consumer); }};
  }

  Pool& pool_;
  const OperatorPageOptions options_;
  const Access access_;
  Rates rates_;
  const std::shared_ptr<Sources> sources_ = std::make_shared<Sources>();
  SlowView status_;
  SlowView counts_;
  SlowView groups_;
  SlowView outbox_;
  SlowView doctor_;
};

OperatorPage::OperatorPage(Pool& pool, OperatorPageOptions options)
    : impl_(std::make_unique<Impl>(pool, std::move(options))) {}
OperatorPage::OperatorPage(OperatorPage&&) noexcept = default;
OperatorPage& OperatorPage::operator=(OperatorPage&&) noexcept = default;
OperatorPage::~OperatorPage() = default;

Response OperatorPage::handle(const Request& request) { return impl_->handle(request); }
std::shared_ptr<Listener> OperatorPage::listener() const { return impl_->listener(); }

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
