// The rule of publishers for webhooks.

#include <chrono>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>

#include "raw_server.hpp"
#include "support/publisher_rule.hpp"
#include "webhook_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A webhook. Only the case with silence needs a publisher with a short time-out.
template <int TimeoutSeconds>
class Webhook {
 public:
  Publisher publisher() const { return publisher_for({.url = server_.url(), .timeout = timeout}); }
  static Publisher publisher_to_nowhere() { return publisher_for({.url = "http://127.0.0.1:1/", .timeout = timeout}); }
  static OutgoingMessage message(const std::string& id) { return {.topic = "stock", .payload = "{}", .id = id}; }
  static OutgoingMessage refused(const std::string& id) { return {.topic = "stock", .payload = "refused", .id = id}; }

  std::set<std::string> held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  void fall_silent_after(std::size_t answers) { misbehave_after(answers, true); }
  void close_after(std::size_t answers) { misbehave_after(answers, false); }
  void recover() { misbehave_after(any_number, false); }

 private:
  static constexpr std::chrono::seconds timeout{TimeoutSeconds};
  static constexpr std::size_t any_number = ~std::size_t{0};

  enum class Next { take, refuse, close, wait };

  void misbehave_after(std::size_t answers, bool is_silent) {
    const std::lock_guard lock(mutex_);
    answers_ = answers;
    is_silent_ = is_silent;
  }

  Next next_for(const std::string& request) {
    const std::lock_guard lock(mutex_);
    if (answers_ == 0) return is_silent_ ? Next::wait : Next::close;
    if (answers_ != any_number) --answers_;
    if (request.ends_with("refused")) return Next::refuse;
    const std::string name = "Idempotency-Key: ";
    const std::size_t from = request.find(name) + name.size();
    const std::string field = request.substr(from, request.find("\r\n", from) - from);
    held_.insert(field.substr(field.find('"') + 1, field.rfind('"') - field.find('"') - 1));
    return Next::take;
  }

  void serve(int socket) {
    for (std::string request = read_request(socket); !request.empty(); request = read_request(socket)) {
      const Next next = next_for(request);
      if (next == Next::close) return;
      if (next == Next::wait) {
        while (!has_closed(socket, 10'000)) {
        }
        return;
      }
      const std::string status = next == Next::take ? "200 OK" : "422 Unprocessable Content";
      if (!send_all(socket, "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n")) return;
    }
  }

  mutable std::mutex mutex_;
  std::set<std::string> held_;
  std::size_t answers_ = any_number;  ///< How many requests it still answers.
  bool is_silent_ = false;            ///< Whether it waits then. Otherwise, it closes the connection.
  RawServer server_{[this](int socket) { serve(socket); }};
};

using PatientWebhook = Webhook<3600>;
using HastyWebhook = Webhook<4>;

TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, PatientWebhook);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_the_refused, PatientWebhook);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_close, PatientWebhook);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_nobody_alone, PatientWebhook);
TEST_SUITE_BEGIN("timed");
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_silence, HastyWebhook);
TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
