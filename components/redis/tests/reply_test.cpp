// The meaning of the server's error codes. A test cannot make the server send each of them.

#include <string>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "connection.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

std::string meaning_of(std::string text) {
  redisReply reply{};
  reply.type = REDIS_REPLY_ERROR;
  reply.str = text.data();
  reply.len = text.size();
  return thrown_by([&] { redis::throw_if_error(reply); });
}

TEST_CASE("the code of an error decides its meaning, and its text is not in the exception") {
  for (const char* code : {"LOADING", "BUSY", "READONLY", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN", "CLUSTERDOWN"}) {
    CAPTURE(code);
    CHECK(meaning_of(code + std::string(" not now")) == "transient");
  }
  for (const char* code : {"NOAUTH", "WRONGPASS", "NOPERM", "DENIED"}) {
    CAPTURE(code);
    CHECK(meaning_of(code + std::string(" no")) == "access_refused");
  }
  for (const char* code : {"MOVED", "ASK", "CROSSSLOT"}) {
    CAPTURE(code);
    CHECK(meaning_of(code + std::string(" 1 127.0.0.1:6379")) == "unsupported_database");
  }
  CHECK(meaning_of("WRONGTYPE of a key") == "unknown_state");
  for (const char* text : {"OOM", "MISCONF no disk", "ERR unknown command", ""}) {
    CAPTURE(text);
    CHECK(meaning_of(text) == "other");
  }
  try {
    redisReply reply{};
    reply.type = REDIS_REPLY_ERROR;
    std::string text = "ERR order123";
    reply.str = text.data();
    reply.len = text.size();
    redis::throw_if_error(reply);
    FAIL("nothing was thrown");
  } catch (const LeaseStoreError& error) {
    CHECK(std::string(error.what()).find("order123") == std::string::npos);
    CHECK(error.code() == "redis ERR");
    CHECK(error_class(std::current_exception()) == "redis ERR");
  }
}

}  // namespace
}  // namespace txinbox::test
