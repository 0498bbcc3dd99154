// Metrics as a listener of real consumers.

#include <memory>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/prometheus_text.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("metrics count each delivery of consume and consume_batch once") {
  EffectDatabase db;
  Pool pool = db.pool(2);
  const auto metrics = std::make_shared<Metrics>();
  TxConsumer consumer(pool, "svc", {.listeners = {metrics}});
  const auto bad = [](soci::session&, Delivery&) { throw std::invalid_argument("no"); };
  (void)consumer.consume({.business_key = "a", .content = "1"}, add_effect);
  (void)consumer.consume({.business_key = "a", .content = "1"}, add_effect);
  (void)consumer.consume({.business_key = "a", .content = "2"}, add_effect);
  CHECK_THROWS((void)consumer.consume({.business_key = "b"}, bad));
  (void)consumer.consume_batch(messages_of({"c", "d", "c", std::string(300, 'x'), "e"}), add_effect);

  const PrometheusText text(metrics->text());
  const auto count = [&](const std::string& outcome) {
    return text.value("txinbox_messages_total", {{"consumer", "svc"}, {"outcome", outcome}});
  };
  CHECK(count("consumed") == 3);
  CHECK(count("already_consumed") == 2);
  CHECK(count("conflict") == 1);
  CHECK(count("failed") == 2);  // the batch has not run the message after it
  const auto failures = [&](const std::string& error_class) {
    return text.value("txinbox_failures_total", {{"consumer", "svc"}, {"class", error_class}});
  };
  CHECK(failures("std::invalid_argument") == 1);
  CHECK(failures("invalid_key") == 1);
  CHECK(text.value("txinbox_duplicate_age_seconds_count", {{"consumer", "svc"}}) == 1);
  CHECK(text.value("txinbox_duration_seconds_count", {{"consumer", "svc"}, {"outcome", "consumed"}}) == 3);
}

TEST_CASE("a delivery whose failure parks its message counts once, as parked, and its error is counted") {
  EffectDatabase db;
  Pool pool = db.pool(2);
  const auto metrics = std::make_shared<Metrics>();
  TxConsumer consumer(pool, "svc", {.listeners = {metrics}, .max_attempts = 1});
  const auto bad = [](soci::session&, Delivery&) { throw std::invalid_argument("no"); };
  CHECK(consumer.consume({.business_key = "a"}, bad).outcome == parked);
  CHECK(consumer.consume({.business_key = "a"}, bad).outcome == parked);
  const PrometheusText text(metrics->text());
  CHECK(text.value("txinbox_messages_total", {{"consumer", "svc"}, {"outcome", "failed"}}) == 0);
  CHECK(text.value("txinbox_messages_total", {{"consumer", "svc"}, {"outcome", "parked"}}) == 2);
  CHECK(text.value("txinbox_failures_total", {{"consumer", "svc"}, {"class", "std::invalid_argument"}}) == 1);
}

TEST_CASE("a claim that a handler committed itself is counted as torn") {
  EffectDatabase db;
  const auto session = db.session();  // in a pool, SQLite refuses the handler's COMMIT
  const auto metrics = std::make_shared<Metrics>();
  TxConsumer consumer(*session, "svc", {.listeners = {metrics}});
  const auto commits = [](soci::session& sql, Delivery&) { sql << "commit"; };
  CHECK_THROWS((void)consumer.consume({.business_key = "k"}, commits));
  const PrometheusText text(metrics->text());
  CHECK(text.value("txinbox_torn_total", {{"consumer", "svc"}}) == 1);
  CHECK(text.value("txinbox_messages_total", {{"consumer", "svc"}, {"outcome", "failed"}}) == 1);
}

}  // namespace
}  // namespace txinbox::test
