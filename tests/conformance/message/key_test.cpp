#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"

namespace txinbox::test {
namespace {

ErrorCode code_of(TxConsumer& consumer, const Message& message) {
  try {
    (void)consumer.consume(message, add_effect);
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find(message.business_key) == std::string::npos);  // the text has no values
    return e.code();
  }
  FAIL("nothing was thrown");
  return {};
}

TEST_CASE("keys are distinct even if they are equal in some collation, encoding or column type") {
  EffectDatabase db;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"key", "KEY"},                                          // case
      {"resume", "résumé"},                                    // accents
      {"a", "a "},                                             // trailing spaces
      {"a ", "a  "},        {" a", "a"},        {"007", "7"},  // a numeric column type
      {"1e2", "100"},       {"ss", "ß"},                       // expansions
      {"ﬁ", "fi"},          {"é", "e\u0301"},                  // composed and decomposed
      {"鍵", "鑰"},                                            // both "?" in latin1
      {"😀", "😁"},                                              // outside the basic multilingual plane
      {"a\x01", "a"},                                          // an ignorable character
      {"x\u200b", "x"},     {"a\\", "a\\\\"},                  // quoting
      {"a'b", "a''b"},      {"a\"b", "a`b"},    {"%", "_"},
      {":a", ":b"},         {"a\nb", "a\r\nb"}, {std::string(254, 'k') + "1", std::string(254, 'k') + "2"},
  };
  Pool pool = db.pool(1);
  TxConsumer pooled(pool, "pooled");
  const auto sql = db.session();
  TxConsumer on_session(*sql, "session");
  for (TxConsumer* consumer : {&pooled, &on_session}) {
    for (const auto& pair : pairs) {
      const std::string& one = pair.first;  // no structured binding, because CAPTURE makes a lambda
      const std::string& other = pair.second;
      CAPTURE(one);
      CAPTURE(other);
      for (const std::string& key : {one, other}) (void)consumer->consume({.business_key = key}, add_effect);
      CHECK(consumer->consume({.business_key = one}, add_effect).outcome == Outcome::already_consumed);
      CHECK(consumer->consume({.business_key = other}, add_effect).outcome == Outcome::already_consumed);
    }
  }
  std::vector<std::string> unique;
  for (const auto& [one, other] : pairs) {
    for (const std::string& key : {one, other}) {
      if (std::find(unique.begin(), unique.end(), key) == unique.end()) unique.push_back(key);
    }
  }
  CHECK(db.effects() == static_cast<long long>(2 * unique.size()));
  CHECK(db.claims() == static_cast<long long>(2 * unique.size()));
}

TEST_CASE("consumer names are distinct if they differ in one byte") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  for (const std::string name : {"svc", "SVC", "svc ", "sv\u00e7", "鍵", "鑰"}) {
    TxConsumer consumer(pool, name);
    CHECK(consumer.consume({.business_key = "k"}, add_effect).outcome == Outcome::consumed);
  }
  CHECK(db.effects() == 6);
}

TEST_CASE("a key outside the limits is refused, not truncated, before a statement is sent") {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  sql->close();  // if a statement were sent, the error would be another one

  CHECK(code_of(consumer, {.business_key = std::string(256, 'k')}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = std::string(254, 'k') + "é"}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = std::string("a\0b", 3)}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = "\xff\xfe"}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = "\xc0\xaf"}) == ErrorCode::invalid_key);      // overlong
  CHECK(code_of(consumer, {.business_key = "\xed\xa0\x80"}) == ErrorCode::invalid_key);  // surrogate
  CHECK(code_of(consumer, {.business_key = "\xf4\x90\x80\x80"}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = "caf\xc3"}) == ErrorCode::invalid_key);  // an incomplete character
  CHECK(code_of(consumer, {.business_key = "k", .message_id = std::string(256, 'm')}) == ErrorCode::invalid_key);
  CHECK(code_of(consumer, {.business_key = "k", .message_id = "\xff"}) == ErrorCode::invalid_key);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = ""}, add_effect), Error);

  Pool pool = db.pool(1);
  CHECK_THROWS_AS(TxConsumer(pool, ""), Error);
  CHECK_THROWS_AS(TxConsumer(pool, std::string(65, 'c')), Error);
  CHECK_THROWS_AS(TxConsumer(pool, "\xff"), Error);
  CHECK(db.effects() == 0);
}

TEST_CASE("a key, a consumer name and a message id of the greatest length are accepted") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const std::string key = std::string(251, 'k') + "😀";
  TxConsumer consumer(pool, std::string(64, 'c'));
  const Message message{.business_key = key, .message_id = std::string(255, 'm')};
  CHECK(consumer.consume(message, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume(message, add_effect).outcome == Outcome::already_consumed);
  auto connection = pool.acquire();
  const auto row = find_message(connection, std::string(64, 'c'), key);
  REQUIRE(row.has_value());
  CHECK(row->business_key == key);
  CHECK(row->message_id == std::string(255, 'm'));
}

TEST_CASE("session settings cannot change the bytes of a key" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set character_set_client = latin1, character_set_connection = latin1";
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume({.business_key = "鍵"}, [](soci::session&, Delivery&) {}).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = "鑰"}, [](soci::session&, Delivery&) {}).outcome == Outcome::consumed);
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key = x'e98db5'") == 1);
}

}  // namespace
}  // namespace txinbox::test
