// Which trace context of a delivery goes into the messages of its handler: W3C Trace Context and W3C Baggage.

#include "telemetry/trace_context.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace txinbox::test {
namespace {

using Headers = std::map<std::string, std::string>;

const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Headers copied(const std::vector<IncomingHeader>& from, Headers own = {}) {
  Incoming incoming;
  incoming.headers = from;
  detail::copy_trace_context(incoming, own);
  return own;
}

TEST_CASE("a traceparent is valid as W3C Trace Context says") {
  CHECK(detail::is_traceparent(parent));
  CHECK(detail::is_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"));
  CHECK(detail::is_traceparent("01" + parent.substr(2)));
  CHECK(detail::is_traceparent("cc" + parent.substr(2) + "-what-the-future-adds"));
  for (const std::string& wrong : std::vector<std::string>{
           "",
           "00",
           parent.substr(0, 54),
           parent + "-more",  // version 00 has four fields
           parent + "0",
           "01" + parent.substr(2) + "0",
           "ff" + parent.substr(2),
           "0G" + parent.substr(2),
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
       }) {
    CAPTURE(wrong);
    CHECK(!detail::is_traceparent(wrong));
  }
}

TEST_CASE("traceparent, tracestate and baggage are copied, and no other header") {
  const Headers all = copied({{"id", "7"}, {"traceparent", parent}, {"tracestate", "a=1"}, {"baggage", "user=5"}});
  CHECK(all == Headers{{"traceparent", parent}, {"tracestate", "a=1"}, {"baggage", "user=5"}});
  CHECK(copied({}) == Headers{});
  CHECK(copied({{"id", "7"}}) == Headers{});
}

TEST_CASE("lists in several headers become one, and a traceparent that is there twice is none") {
  CHECK(copied({{"traceparent", parent}, {"tracestate", "a=1"}, {"tracestate", ""}, {"tracestate", "b=2"}}) ==
        Headers{{"traceparent", parent}, {"tracestate", "a=1,b=2"}});
  CHECK(copied({{"baggage", "a=1"}, {"baggage", "b=2"}}) == Headers{{"baggage", "a=1,b=2"}});
  CHECK(copied({{"traceparent", parent}, {"traceparent", parent}, {"tracestate", "a=1"}}) == Headers{});
}

TEST_CASE("a tracestate goes only with its traceparent") {
  CHECK(copied({{"tracestate", "a=1"}}) == Headers{});
  CHECK(copied({{"traceparent", "no"}, {"tracestate", "a=1"}, {"baggage", "b=2"}}) == Headers{{"baggage", "b=2"}});
}

TEST_CASE("a header that the message has is never replaced, and keeps its partner away") {
  const std::vector<IncomingHeader> from = {{"traceparent", parent}, {"tracestate", "a=1"}, {"baggage", "b=2"}};
  CHECK(copied(from, {{"traceparent", "mine"}}) == Headers{{"traceparent", "mine"}, {"baggage", "b=2"}});
  CHECK(copied(from, {{"tracestate", "mine"}}) == Headers{{"tracestate", "mine"}, {"baggage", "b=2"}});
  CHECK(copied(from, {{"baggage", "mine"}})["baggage"] == "mine");
  CHECK(copied(from, {{"Traceparent", "mine"}, {"BAGGAGE", "mine"}}) ==
        Headers{{"Traceparent", "mine"}, {"BAGGAGE", "mine"}});
}

TEST_CASE("what no header can carry, or what is too long, is not copied") {
  const std::string zero("a=\0", 3);
  for (const std::string& bad : std::vector<std::string>{zero, "a=\x80", "a=\n", std::string(513, 'a')}) {
    CHECK(copied({{"traceparent", parent}, {"tracestate", bad}}) == Headers{{"traceparent", parent}});
  }
  CHECK(copied({{"baggage", std::string(4'097, 'a')}}) == Headers{});
  CHECK(copied({{"baggage", std::string(4'096, 'a')}}).size() == 1);
  CHECK(copied({{"traceparent", "01" + parent.substr(2) + "-" + std::string(500, 'a')}}) == Headers{});
}

}  // namespace
}  // namespace txinbox::test
