#include "sim/database/store.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace txinbox::sim {

void Table::reuse_numbers() noexcept {
  if (!definition_.number) return;
  last_number_ = 0;
  for (const auto& row : rows_) {
    if (row && row->committed) use_number((*row->committed)[*definition_.number].integer);
  }
}

std::string Table::place_of(std::size_t index, const Values& values) const {
  std::string place;
  for (const std::size_t column : definition_.indexes[index]) place += values[column].encoded();
  return place;
}

bool Table::has_place(const StoredRow& row, std::size_t index, const std::string& place) const {
  return (row.committed && place_of(index, *row.committed) == place) ||
         (row.writer != nullptr && row.pending && place_of(index, *row.pending) == place);
}

void Table::for_each_place(std::size_t index, const Values& prefix, const Bounds& bounds,
                           const std::function<void(const std::string& place, std::int64_t row)>& visit) const {
  std::string wanted;
  for (const Value& each : prefix) wanted += each.encoded();
  const std::string first = bounds.from ? wanted + bounds.from->encoded() : wanted;
  const std::string last = bounds.to ? wanted + bounds.to->encoded() : wanted;
  const auto& places = places_[index];
  for (auto at = places.lower_bound(first); at != places.end() && at->first.starts_with(wanted); ++at) {
    if (at->first > last && !at->first.starts_with(last)) break;
    visit(at->first, at->second);
  }
}

std::vector<std::int64_t> Table::find(std::size_t index, const Values& prefix, const Bounds& bounds) const {
  std::vector<std::int64_t> found;
  for_each_place(index, prefix, bounds, [&](const std::string&, std::int64_t row) { found.push_back(row); });
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());  // clang 14 has no std::ranges::unique
  return found;
}

std::vector<std::int64_t> Table::find_in_order(std::size_t index, const Values& prefix, const Bounds& bounds,
                                               const Transaction* transaction) const {
  std::vector<std::int64_t> found;
  for_each_place(index, prefix, bounds, [&](const std::string& place, std::int64_t number) {
    const StoredRow& stored = existing_row(number);
    const Version& version = stored.seen_by(transaction);
    const bool is_here = version && (stored.writer == nullptr || place_of(index, *version) == place);
    if (is_here) found.push_back(number);
  });
  return found;
}

std::int64_t Table::add() {
  rows_.push_back(std::make_unique<StoredRow>());
  return static_cast<std::int64_t>(rows_.size()) - 1;
}

StoredRow& Table::row_or_new(std::int64_t number) {
  auto& place = rows_[static_cast<std::size_t>(number)];
  if (!place) place = std::make_unique<StoredRow>();
  return *place;
}

void Table::put_in_indexes(std::int64_t row, const Values& values) {
  for (std::size_t index = 0; index < places_.size(); ++index) {
    const std::string place = place_of(index, values);
    const auto [begin, end] = places_[index].equal_range(place);
    const bool is_there = std::any_of(begin, end, [row](const auto& each) { return each.second == row; });
    if (!is_there) places_[index].emplace(place, row);
  }
}

void Table::clean(std::int64_t row, const Version& former) {
  const StoredRow& stored = existing_row(row);
  if (former) {
    for (std::size_t index = 0; index < places_.size(); ++index) {
      const std::string place = place_of(index, *former);
      if (has_place(stored, index, place)) continue;
      const auto [begin, end] = places_[index].equal_range(place);
      const auto at = std::find_if(begin, end, [row](const auto& each) { return each.second == row; });
      if (at != end) places_[index].erase(at);
    }
  }
  if (!stored.committed && stored.writer == nullptr) rows_[static_cast<std::size_t>(row)].reset();
}

Store::Store(const Personality& personality, const std::vector<TableDefinition>& tables) : personality_(personality) {
  for (const TableDefinition& each : tables) tables_.emplace(each.name, std::make_unique<Table>(each));
}

Table* Store::find_table(std::string_view name) noexcept {
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : found->second.get();
}

std::shared_ptr<Transaction> Store::begin(std::chrono::milliseconds lock_timeout) {
  auto transaction = std::make_shared<Transaction>(lock_timeout);
  while (personality_.has_one_writer && !open_.empty()) wait_for(*transaction, *open_.front());
  open_.push_back(transaction.get());
  return transaction;
}

std::uint64_t Store::commit(Transaction& transaction) {
  Committed committed{.number = ++last_commit_, .time = Threads::instance()->now()};
  for (const Transaction::Change& change : transaction.changes_) {
    StoredRow* const found = change.table->row(change.row);
    if (found == nullptr || found->writer != &transaction) continue;  // done with another one
    StoredRow& row = *found;
    Version former = std::exchange(row.committed, std::exchange(row.pending, std::nullopt));
    row.writer = nullptr;
    const std::uint64_t commit_before = std::exchange(row.commit, committed.number);
    change.table->clean(change.row, former);
    committed.rows.push_back(
        {.table = change.table, .row = change.row, .before = std::move(former), .commit_before = commit_before});
  }
  const bool has_changed = !committed.rows.empty();
  if (has_changed) commits_.push_back(std::move(committed));
  while (!commits_.empty() && commits_.front().time < Threads::instance()->now() - longest_loss) commits_.pop_front();
  transaction.changes_.clear();
  roll_back(transaction);
  return has_changed ? last_commit_ : 0;
}

const Version& Store::durable_version(const Table& table, std::int64_t row) const {
  const Version* version = &table.existing_row(row).committed;
  for (auto commit = commits_.rbegin(); commit != commits_.rend() && commit->number > durable_; ++commit) {
    for (auto each = commit->rows.rbegin(); each != commit->rows.rend(); ++each) {
      if (each->table == &table && each->row == row) version = &each->before;
    }
  }
  return *version;
}

std::vector<LostRow> Store::undo(const Committed& commit) {
  std::vector<LostRow> lost;
  for (auto each = commit.rows.rbegin(); each != commit.rows.rend(); ++each) {
    Table& table = *each->table;
    StoredRow& row = table.row_or_new(each->row);
    const Version former = std::exchange(row.committed, each->before);
    row.commit = each->commit_before;
    if (row.committed) table.put_in_indexes(each->row, *row.committed);
    table.clean(each->row, former);
    if (former) lost.push_back({&table, *former});
  }
  return lost;
}

std::vector<LostRow> Store::undo_commits(const std::function<bool(const Committed&)>& is_lost) {
  while (!open_.empty()) roll_back(*open_.front());
  ++server_number_;
  std::vector<LostRow> lost;
  while (!commits_.empty() && is_lost(commits_.back())) {
    std::ranges::move(undo(commits_.back()), std::back_inserter(lost));
    commits_.pop_back();
  }
  durable_ = last_commit_;
  return lost;
}

void Store::crash() noexcept {
  // The server also writes commits to the disk by itself, once in a second.
  const SimTime written = Threads::instance()->now() - std::chrono::seconds(1);
  (void)undo_commits([&](const Committed& each) { return each.number > durable_ && each.time > written; });
}

std::vector<LostRow> Store::fail_over(SimTime since) {
  std::vector<LostRow> lost = undo_commits([&](const Committed& each) { return each.time >= since; });
  for (const auto& [name, table] : tables_) table->reuse_numbers();
  return lost;
}

void Store::roll_back(Transaction& transaction) noexcept {
  undo_since(transaction, 0);
  transaction.savepoints_.clear();
  std::erase(open_, &transaction);
  for (Transaction* const each : open_) {
    if (each->waits_for_ == &transaction) each->waits_for_ = nullptr;
  }
  Threads::instance()->wake_all(&transaction);
}

void Store::set_savepoint(Transaction& transaction, const std::string& name) {
  transaction.savepoints_.emplace_back(name, transaction.changes_.size());
}

bool Store::release_savepoint(Transaction& transaction, const std::string& name) {
  auto& all = transaction.savepoints_;
  const auto found = std::ranges::find(all.rbegin(), all.rend(), name, &std::pair<std::string, std::size_t>::first);
  if (found == all.rend()) return false;
  all.erase(std::prev(found.base()), all.end());
  return true;
}

bool Store::roll_back_to_savepoint(Transaction& transaction, const std::string& name) {
  auto& all = transaction.savepoints_;
  const auto found = std::ranges::find(all.rbegin(), all.rend(), name, &std::pair<std::string, std::size_t>::first);
  if (found == all.rend()) return false;
  all.erase(found.base(), all.end());
  undo_since(transaction, all.back().second);
  transaction.is_aborted = false;
  return true;
}

void Store::undo_since(Transaction& transaction, std::size_t changes) noexcept {
  while (transaction.changes_.size() > changes) {
    Transaction::Change change = std::move(transaction.changes_.back());
    transaction.changes_.pop_back();
    StoredRow& row = change.table->existing_row(change.row);
    const Version former = std::exchange(row.pending, std::move(change.before));
    if (change.has_locked) {
      row.writer = nullptr;
      row.pending.reset();
    }
    change.table->clean(change.row, former);
  }
}

void Store::write(Transaction& transaction, Table& table, std::int64_t row, Version version) {
  StoredRow& stored = table.existing_row(row);
  const bool has_locked = stored.writer == nullptr;
  stored.writer = &transaction;
  transaction.changes_.push_back(
      {.table = &table, .row = row, .before = std::move(stored.pending), .has_locked = has_locked});
  const Version former = transaction.changes_.back().before;
  stored.pending = std::move(version);
  if (stored.pending) table.put_in_indexes(row, *stored.pending);
  table.clean(row, former);
}

bool Store::insert(Transaction& transaction, Table& table, Values values, OnDuplicate on_duplicate) {
  const TableDefinition& definition = table.definition();
  if (!transaction.has_used(&table)) transaction.tables_.push_back(&table);
  const bool has_new_number = definition.number && values[*definition.number].is_null();
  if (has_new_number) {
    values[*definition.number] = {.type = Value::Type::integer, .integer = table.next_number()};
  } else if (definition.number) {
    table.use_number(values[*definition.number].integer);
  }
  for (std::size_t index = 0; index < definition.unique_indexes; ++index) {
    Values key;
    for (const std::size_t column : definition.indexes[index]) key.push_back(values[column]);
    for (const std::int64_t row : table.find(index, key)) {
      const StoredRow& stored = table.existing_row(row);
      wait_for_writer(transaction, stored);
      if (!stored.seen_by(&transaction)) continue;
      // A sequence that is behind its rows has given the number of another row.
      const bool is_number = has_new_number && definition.indexes[index] == std::vector{*definition.number};
      if (is_number) throw ServerError(personality_.error.duplicate);
      if (on_duplicate == OnDuplicate::ignore) return false;
      if (on_duplicate == OnDuplicate::fail) throw ServerError(personality_.error.duplicate);
      write(transaction, table, row, std::move(values));
      return true;
    }
  }
  write(transaction, table, table.add(), std::move(values));
  return true;
}

void Store::update(Transaction& transaction, Table& table, std::int64_t row, Values values) {
  change(transaction, table, row, std::move(values));
}

void Store::remove(Transaction& transaction, Table& table, std::int64_t row) {
  change(transaction, table, row, std::nullopt);
}

void Store::change(Transaction& transaction, Table& table, std::int64_t row, Version version) {
  StoredRow* const found = table.row(row);
  if (found == nullptr) throw RowChanged();
  wait_for_writer(transaction, *found);
  if (!found->seen_by(&transaction)) throw RowChanged();
  write(transaction, table, row, std::move(version));
}

/// If another transaction has the lock of the row, waits for its end. The row may have changed then.
void Store::wait_for_writer(Transaction& transaction, const StoredRow& row) {
  if (row.writer == nullptr || row.writer == &transaction) return;
  wait_for(transaction, *row.writer);
  throw RowChanged();
}

void Store::wait_for(Transaction& transaction, const Transaction& other) {
  for (const Transaction* each = &other; each != nullptr; each = each->waits_for_) {
    if (each == &transaction) throw ServerError(personality_.error.deadlock);
  }
  transaction.waits_for_ = &other;
  auto& threads = *Threads::instance();
  const SimTime until = threads.now() + transaction.lock_timeout;
  const bool woken = threads.wait_for_condition(&other, &until);
  transaction.waits_for_ = nullptr;
  if (!woken) throw ServerError(personality_.error.lock_timeout);
}

namespace {

using Clock = std::chrono::sys_time<std::chrono::microseconds>;

Clock server_time(const Store& store) {
  const SimTime now = Threads::instance()->now();
  const auto ahead = std::chrono::duration_cast<SimTime>(store.drift * std::chrono::duration<double, std::nano>(now));
  return Clock(std::chrono::floor<std::chrono::microseconds>(epoch + now + ahead + store.clock_error));
}

}  // namespace

std::string Store::now_text(std::chrono::milliseconds later) const {
  const Clock time = server_time(*this) + later;
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::chrono::milliseconds Store::since(const std::string& text) const {
  const auto number = [&](std::size_t at, std::size_t size) {
    return at < text.size() ? std::stoi(text.substr(at, size)) : 0;
  };
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const Clock time = std::chrono::sys_days(date) + std::chrono::hours(number(11, 2)) +
                     std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
                     std::chrono::microseconds(number(20, 6));
  return std::chrono::floor<std::chrono::milliseconds>(server_time(*this) - time);
}

void Store::load(Table& table, Values values) {
  if (const auto number = table.definition().number) table.use_number(values[*number].integer);
  const std::int64_t row = table.add();
  table.put_in_indexes(row, values);
  table.existing_row(row).committed = std::move(values);
}

}  // namespace txinbox::sim
