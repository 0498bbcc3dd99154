#include "soak/watch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "support/capabilities.hpp"
#include "support/mysql_sessions.hpp"

namespace txinbox::soak {
namespace {

double resident_memory() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)) / 1024 / 1024;
}

long connections(const Shared& shared) {
  if (!test::has_server()) return 0;
  if (test::on_mysql()) {
    return shared.db.number("select count(*) from " + test::processlist() + " where db = database()");
  }
  return shared.db.number("select count(*) from pg_stat_activity where backend_type = 'client backend'");
}

// PostgreSQL reports only the session that asks. MariaDB reports the whole server.
long statements(Shared& shared) {
  if (!test::has_server()) return 0;
  const auto connection = shared.pool.acquire();
  if (test::on_postgresql()) {
    long long count = 0;
    connection.session() << "select count(*) from pg_prepared_statements", soci::into(count);
    return count;
  }
  std::string name;
  std::string count;
  connection.session() << "show global status like 'Prepared_stmt_count'", soci::into(name), soci::into(count);
  return std::stol(count) / static_cast<long>(pool_size);
}

template <class Iterator>
double median_memory(Iterator begin, Iterator end) {
  std::vector<double> values;
  std::transform(begin, end, std::back_inserter(values), [](const Sample& sample) { return sample.memory; });
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

long open_descriptors() {
  using std::filesystem::directory_iterator;
  return std::distance(directory_iterator("/proc/self/fd"), directory_iterator()) - 1;  // not the iterator's own
}

Sample take_sample(Shared& shared) {
  return {.memory = resident_memory(),
          .descriptors = open_descriptors(),
          .connections = connections(shared),
          .statements = statements(shared)};
}

Sample Watch::greatest() const {
  Sample all;
  for (const Sample& sample : samples_) {
    all.memory = std::max(all.memory, sample.memory);
    all.descriptors = std::max(all.descriptors, sample.descriptors);
    all.connections = std::max(all.connections, sample.connections);
    all.statements = std::max(all.statements, sample.statements);
  }
  return all;
}

double Watch::memory_at_begin() const {
  return median_memory(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(samples_.size() / 4 + 1));
}

double Watch::memory_at_end() const {
  return median_memory(samples_.end() - static_cast<std::ptrdiff_t>(samples_.size() / 4 + 1), samples_.end());
}

double Watch::growth() const { return memory_at_end() - memory_at_begin(); }

}  // namespace txinbox::soak
