#include "faults/exchange.hpp"

#include <atomic>
#include <csignal>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "faults/fault_table.hpp"
#include "support/child_process.hpp"

namespace txinbox::test {
namespace {

/// Each exchange has numbers of its own, so that no two cases share a key.
int next_thousands() {
  static std::atomic<int> thousands = 0;
  return 100'000 * ++thousands;
}

}  // namespace

Exchange::Exchange(const FaultDatabase& db, FaultProxy& proxy, const Subject& subject, From from,
                   std::chrono::milliseconds valid_for)
    : db_(db),
      proxy_(proxy),
      subject_(subject),
      from_(from),
      valid_for_(valid_for),
      number_(next_thousands()),
      replica_(subject, db.url()) {
  replica_.with_session([&](soci::session& sql) { settings_when_new_ = db.settings_of(sql); });
}

std::vector<Message> Exchange::next_messages() {
  std::vector<Message> messages = messages_for(subject_, number_++);
  for (Message& each : messages) each.valid_for = valid_for_;
  return messages;
}

/// A service with a pool stays after a fault. One that owns its session has lost it.
void Exchange::prepare_service() {
  if (!subject_.pooled || from_ == From::connecting) service_.reset();
  if (from_ == From::connecting) return;
  if (!service_) make_service();
  service_->warm_up(valid_for_);
}

void Exchange::make_service() { service_ = std::make_unique<Service>(subject_, proxy_.url()); }

std::vector<FaultPoint> Exchange::points(Grain grain) {
  prepare_service();
  proxy_.count();
  if (from_ == From::connecting) make_service();
  (void)service_->deliver(next_messages(), write_two_rows);

  std::vector<FaultPoint> all;
  for (const Passed& each : proxy_.passed()) {
    if (grain == Grain::turn && !each.opens_turn) continue;
    all.push_back({each.direction, each.packet, FaultPoint::Part::none});
    if (grain == Grain::half_packet) all.push_back({each.direction, each.packet, FaultPoint::Part::half});
  }
  return all;
}

void Exchange::try_fault(const std::string& kind, FaultPoint point, Fault fault,
                         const std::function<bool()>& at_fault) {
  CAPTURE(to_string(point));
  Broker broker(db_, subject_, next_messages());
  prepare_service();
  proxy_.arm(point, fault, at_fault);
  try {
    if (from_ == From::connecting) make_service();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nothing was delivered
  }
  if (service_) broker.deliver(*service_, write_two_rows);
  CHECK(proxy_.reached());

  // Alternately the service itself and the replica get the redeliveries.
  const bool itself = service_ && subject_.pooled && number_ % 2 == 0;
  broker.deliver_until_settled(itself ? *service_ : replica_);
  const bool doubled = broker.check_promise(replica_);
  if (service_ && subject_.pooled) check_clean(*service_);
  count_case(kind, subject_.name, doubled ? Mark::doubled : Mark::none);
}

void Exchange::try_one_delivery(const std::string& kind, FaultPoint point, Fault fault) {
  CAPTURE(to_string(point));
  const std::vector<Message> messages = next_messages();
  prepare_service();
  proxy_.arm(point, fault, {});
  const std::vector<Action> actions = service_->deliver(messages, write_two_rows);
  CHECK(proxy_.reached());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Rows rows = db_.rows_of(messages[i]);
    const Rows effect = FaultDatabase::effect_of(subject_);
    CHECK((rows == effect || (rows == Rows{0, 0} && actions[i] != Action::acknowledge)));
  }
  check_clean(*service_);
  count_case(kind, subject_.name, Mark::none);
}

/// A pool may lend an idle connection that is already lost. The next one is new.
void Exchange::check_clean(Service& service) {
  const auto check = [&](soci::session& sql) { db_.check_clean(sql, settings_when_new_); };
  try {
    service.with_session(check);
  } catch (const soci::soci_error&) {
    REQUIRE(is_transient(std::current_exception()));
    service.with_session(check);
  }
}

void Exchange::try_kill(const std::string& kind, FaultPoint point) {
  CAPTURE(to_string(point));
  Broker broker(db_, subject_, next_messages());
  const ChildEnding end = run_in_child([&] {
    FaultProxy proxy(db_.url(), on_mysql());
    if (from_ == From::connecting) proxy.arm(point, Fault::kill_process);
    Service service(subject_, proxy.url());
    if (from_ == From::delivering) {
      service.warm_up();
      proxy.arm(point, Fault::kill_process);
    }
    (void)service.deliver(broker.messages(), write_two_rows);
  });
  CHECK(end.signal == SIGKILL);
  broker.deliver_until_settled(replica_);
  const bool doubled = broker.check_promise(replica_);
  count_case(kind, subject_.name, doubled ? Mark::doubled : Mark::none);
}

std::string to_string(const FaultPoint& point) {
  return fmt::format("{} packet {} to the {}", point.part == FaultPoint::Part::none ? "before" : "in", point.packet,
                     point.direction == Direction::to_server ? "server" : "client");
}

}  // namespace txinbox::test
