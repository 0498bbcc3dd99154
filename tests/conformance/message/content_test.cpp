// The content of a message. A delivery with the same key and another content is a conflict.

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// The two consumers of a test: one on a pool and one on a session. They have different names.
struct Consumers {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::unique_ptr<soci::session> sql = db.session();
  TxConsumer pooled{pool, "pooled"};
  TxConsumer own{*sql, "own"};

  template <class F>
  void each(F&& check) {
    for (TxConsumer* consumer : {&pooled, &own}) {
      CAPTURE(consumer == &pooled);
      db.run("delete from txinbox_consumed_message");
      db.run("delete from effect");
      check(*consumer);
    }
  }
};

Message with(const std::string& content) { return {.business_key = "order123", .content = content}; }

Outcome outcome_of(TxConsumer& consumer, const Message& message) {
  return consumer.consume(message, add_effect).outcome;
}

void must_not_run(soci::session&, Delivery&) { FAIL("a handler ran that must not run"); }

std::string hash_in(const TestDatabase& db) {
  return db.text("select lower(" + std::string(on_postgresql() ? "encode(content_hash, 'hex')" : "hex(content_hash)") +
                 ") from txinbox_consumed_message");
}

TEST_CASE("a delivery with the same content is a duplicate, and one with another content is a conflict, each time") {
  Consumers t;
  t.each([&](TxConsumer& consumer) {
    CHECK(outcome_of(consumer, with("100 EUR")) == consumed);
    for (int i = 0; i < 6; ++i) {
      CHECK(consumer.consume(with("100 EUR"), must_not_run).outcome == duplicate);
      const Result other = consumer.consume(with("999 EUR"), must_not_run);
      CHECK(other.outcome == conflict);
      CHECK(action_for(other) == Action::dead_letter);
    }
    CHECK(t.db.effects() == 1);
  });
}

TEST_CASE("the listener gets an event for a conflict") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::vector<EventType> heard;
  TxConsumer consumer(pool, "svc", {.listeners = {on_event([&](const Event& e) { heard.push_back(e.type); })}});
  (void)consumer.consume(with("1"), add_effect);
  (void)consumer.consume(with("2"), add_effect);
  CHECK(heard == std::vector<EventType>{EventType::consumed, EventType::conflict});
}

TEST_CASE("a row or a message without content is not compared") {
  Consumers t;
  t.each([&](TxConsumer& consumer) {
    CHECK(outcome_of(consumer, with("")) == consumed);
    CHECK(t.db.number("select count(*) from txinbox_consumed_message where content_hash is null") == 1);
    CHECK(outcome_of(consumer, with("100")) == duplicate);
    CHECK(outcome_of(consumer, with("999")) == duplicate);
    CHECK(t.db.number("select count(*) from txinbox_consumed_message where content_hash is null") == 1);

    t.db.run("delete from txinbox_consumed_message");
    CHECK(outcome_of(consumer, with("100")) == consumed);
    CHECK(outcome_of(consumer, with("")) == duplicate);
    CHECK(outcome_of(consumer, with("999")) == conflict);
  });
}

TEST_CASE("a conflict does not get the result that was stored for the other content") {
  Consumers t;
  t.each([&](TxConsumer& consumer) {
    (void)consumer.consume(with("100"), [](soci::session&, Delivery& d) { d.store("receipt"); });
    CHECK(consumer.consume(with("999"), add_effect).stored == std::nullopt);
    CHECK(consumer.consume(with("100"), add_effect).stored == "receipt");
    CHECK(consumer.consume(with(""), add_effect).stored == "receipt");
  });
}

TEST_CASE("a content that differs in one byte is a conflict") {
  Consumers t;
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const std::string with_nul("a\0b", 3);
  const std::string megabyte(1'000'000, 'x');
  const std::vector<std::pair<std::string, std::string>> pairs = {{with_nul, std::string("a\0c", 3)},
                                                                  {with_nul, "a"},
                                                                  {std::string(1, '\0'), std::string(2, '\0')},
                                                                  {every_byte, every_byte.substr(0, 255)},
                                                                  {"\xFF\xFE", "\xFF\xFD"},
                                                                  {"a", "A"},
                                                                  {"a", "a "},
                                                                  {megabyte, megabyte.substr(1) + "y"}};
  t.each([&](TxConsumer& consumer) {
    for (const auto& [content, other] : pairs) {
      const std::size_t size = content.size();
      CAPTURE(size);
      t.db.run("delete from txinbox_consumed_message");
      CHECK(outcome_of(consumer, with(content)) == consumed);
      CHECK(outcome_of(consumer, with(other)) == conflict);
      CHECK(outcome_of(consumer, with(content)) == duplicate);
    }
  });
}

TEST_CASE("the row has the SHA-256 of the content") {
  Consumers t;
  // The examples of FIPS 180-4, and the hash of a million "a".
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  t.each([&](TxConsumer& consumer) {
    for (const auto& [content, hash] : vectors) {
      t.db.run("delete from txinbox_consumed_message");
      CHECK(outcome_of(consumer, with(content)) == consumed);
      CHECK(hash_in(t.db) == hash);
      t.db.run("delete from txinbox_consumed_message");
      const Message message = with(content);
      CHECK(outcomes(consumer.consume_batch({&message, 1}, add_effect)) == std::vector<Outcome>{consumed});
      CHECK(hash_in(t.db) == hash);
    }
  });
}

TEST_CASE(
    "in any state of the row, another content is a conflict, and the same content gets the outcome of the state") {
  Consumers t;
  t.each([&](TxConsumer& consumer) {
    (void)consumer.consume(with("100"), add_effect);
    for (const std::string state : {"parked", "torn", "consuming"}) {
      CAPTURE(state);
      const Outcome outcome = state == "consuming" ? Outcome::in_progress : Outcome::parked;
      t.db.run("update txinbox_consumed_message set state = '" + state + "'");
      CHECK(outcome_of(consumer, with("100")) == outcome);
      CHECK(outcome_of(consumer, with("")) == outcome);
      CHECK(outcome_of(consumer, with("999")) == conflict);
    }
    CHECK(t.db.effects() == 1);
  });
}

TEST_CASE("a delivery that failed leaves no content in the table, so another content is no conflict") {
  Consumers t;
  t.each([&](TxConsumer& consumer) {
    CHECK_THROWS((void)consumer.consume(with("100"), [](soci::session&, Delivery&) { throw 1; }));
    CHECK(outcome_of(consumer, with("999")) == consumed);
    CHECK(outcome_of(consumer, with("100")) == conflict);
  });
}

TEST_CASE("two consumers may have the same key with different contents") {
  Consumers t;
  CHECK(outcome_of(t.pooled, with("100")) == consumed);
  CHECK(outcome_of(t.own, with("999")) == consumed);
}

TEST_CASE("Transaction::claim compares the content, too") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction first(*sql);
    CHECK(first.claim("svc", with("abc")) == Claim::claimed);
    first.commit();
  }
  CHECK(hash_in(db) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Transaction second(*sql);
  CHECK(second.claim("svc", with("abd")) == Claim::conflict);
  CHECK(second.claim("svc", with("abc")) == Claim::already_consumed);
  CHECK(second.claim("svc", with("")) == Claim::already_consumed);
  CHECK(second.claim("svc", {.business_key = "other", .content = "abd"}) == Claim::claimed);
  CHECK(second.claim("svc", {.business_key = "other", .content = "abc"}) == Claim::conflict);
}

}  // namespace
}  // namespace txinbox::test
