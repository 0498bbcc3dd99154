#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/outbox_relay.hpp>

#include "outbox/relay_machine.hpp"
#include "support/outbox_parts.hpp"

namespace txinbox::test {

/// An event for a relay.
enum class Twist {
  fails_before,  ///< The database or the publisher fails, and has done nothing.
  fails_after,   ///< The database or the publisher has done its work, and the answer is lost.
  refused,       ///< The publisher answers `failed` for the first message.
  rejected,      ///< It answers `rejected` for the first message.
  postponed,     ///< It answers `postponed` for all messages.
  not_durable,   ///< A crash of the server can undo what was read.
  lease_lost,    ///< Another relay takes the parts, and publishes and removes all rows.
  late_row,      ///< A transaction commits a row of key a whose number is smaller than those of all rows.
  new_row,       ///< A transaction commits a row of key a.
  row_gone,      ///< An operator removes the first row.
  number_again,  ///< After a failover, another message has the number of the first row.
  slow,          ///< So much time passes that the lease ends.
  stop,          ///< The relay is stopped, and then started again.
};

inline constexpr std::array all_twists = {Twist::fails_before, Twist::fails_after, Twist::refused,      Twist::rejected,
                                          Twist::postponed,    Twist::not_durable, Twist::lease_lost,   Twist::late_row,
                                          Twist::new_row,      Twist::row_gone,    Twist::number_again, Twist::slow,
                                          Twist::stop};

std::string_view to_string(Twist) noexcept;

/// A twist at one job of a relay. The jobs are counted from 0, without the waits.
struct RelayTwist {
  int job;
  Twist what;
};

/// Short times, so that a test sees what they do.
RelayOptions relay_test_options(std::size_t batch = 3);

/// A table, a publisher and a clock for a `RelayMachine`. It does what the machine says, and checks that the machine
/// says nothing wrong.
class RelayWorld {
 public:
  using Time = detail::RelayMachine::Time;

  explicit RelayWorld(RelayOptions options = relay_test_options());

  /// Commits a row with the next number. Returns its id.
  std::string add(const std::string& key);

  /// Commits a row whose number is smaller than those of all rows. Returns its id.
  std::string add_late(const std::string& key);

  /// Lets the next rows have greater numbers, as if this number of rows had been added and published.
  void skip_numbers(std::int64_t count) { next_seq_ += count; }

  /// Runs the relay until it waits and has nothing to publish, or until it has waited for an hour.
  void run(const std::vector<RelayTwist>& twists = {});

  /// Runs the relay for this time.
  void run_for(std::chrono::milliseconds time);

  /// Runs the relay until it ends, and starts another one. Returns how many jobs it did after its last call.
  int run_to_end();

  void stop() { machine_->stop(); }

  /// How many jobs the relay has done, without the waits.
  int jobs() const noexcept { return job_; }

  /// The defect that was found. Empty if there is none.
  const std::string& problem() const noexcept { return problem_; }

  std::optional<Time> wakes_at;  ///< When somebody wakes the relay.
  bool database_is_down = false;
  bool tells_writers = false;                ///< The database tells which transactions are open.
  std::set<std::string> open_writers;        ///< They can add rows with `add_late`.
  bool has_prepared_writer = false;          ///< One of them is prepared.
  std::int64_t server = 1;                   ///< The number of the running server.
  std::set<int> parts = all_outbox_parts();  ///< The parts that the relay gets when it takes parts. All by default.

  /// If it is set, it answers calls of the publisher. It may throw.
  Publisher publisher = {};

  struct Row {
    std::string id, key;
    int attempts = 0;
    bool parked = false;
  };

  const Row& row_of(const std::string& id) const;

  detail::Watermark watermark = {};             ///< Of the latest read.
  std::map<std::int64_t, Row> rows;             ///< The table.
  std::vector<std::vector<std::string>> calls;  ///< The ids of the messages of each call of the publisher.
  std::set<std::string> stored;                 ///< The ids of the messages that the broker has.
  std::vector<RelayEventType> events;
  Time now{std::chrono::hours(1)};

 private:
  struct Failed {};  ///< The database has failed.

  std::string new_row(std::int64_t seq, const std::string& key);
  void start();
  bool step(const std::vector<RelayTwist>& twists);
  void happen(Twist twist);

  void perform(const detail::relay_job::Refresh&);
  void perform(const detail::relay_job::Renew&);
  void perform(const detail::relay_job::List&);
  void perform(const detail::relay_job::ReadWriters&);
  void perform(const detail::relay_job::Read&);
  void perform(const detail::relay_job::Publish&);
  void perform(const detail::relay_job::Remove&);
  void perform(const detail::relay_job::Count&);
  void perform(const detail::relay_job::Wait&);
  void perform(const detail::relay_job::End&);

  template <class Effect>
  void in_database(const Effect& effect);
  std::vector<detail::OutboxRow> select(const detail::OutboxQuery& query);
  void check_order(const std::vector<std::string>& ids);
  void take_over();
  void wrong(std::string text);
  bool is_idle() const;

  RelayOptions options_;
  std::function<void(const RelayEvent&)> notify_;
  std::unique_ptr<detail::RelayMachine> machine_;
  std::optional<Twist> twist_;      ///< The event at the present job.
  bool late_row_can_come_ = false;  ///< Twist::late_row will happen.
  std::string problem_;
  std::int64_t next_seq_ = 100'000, least_seq_ = 100'000;
  int ids_ = 0, job_ = 0, called_at_ = 0;
  std::size_t taken_ = 0;   ///< How many parts the relay got last.
  bool has_parts_ = false;  ///< No other relay has taken the parts.
  Time expires_{};
  std::set<std::string> confirmed_;      ///< The messages that the publisher has confirmed to the relay.
  std::set<std::string> seen_;           ///< The rows that were in the table at the last read.
  std::set<std::string> expected_;       ///< All rows, without those that were removed by others.
  std::map<std::string, int> failures_;  ///< How often each message was not confirmed.
  std::set<std::string> volatile_;       ///< Rows that were read and are not durable.
};

}  // namespace txinbox::test
