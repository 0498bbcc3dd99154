#include "sim/database/database.hpp"

#include <stdexcept>
#include <utility>

#include "backend/connection_access.hpp"
#include "backend/registry.hpp"
#include "sim/database/dialect.hpp"
#include "sim/database/session.hpp"

namespace txinbox::sim {

using namespace backend;

namespace {

/// The tables are always right.
class SimCatalog final : public Catalog {
 public:
  explicit SimCatalog(ConnectionPtr connection) : connection_(std::move(connection)) {}

  std::string find_schema(std::string_view) override { return "main"; }
  std::vector<Problem> check_tables(const std::string&) override { return {}; }
  std::vector<Finding> check_server() override { return {}; }
  std::string server_version() override { return "simulated"; }
  std::vector<Row> read(const std::string& sql, std::size_t columns) override {
    return query(*connection_, sql, columns);
  }
  std::int64_t table_bytes(const std::string&) override { return 0; }
  void begin_migrations() override { refuse(); }
  void apply(std::string_view) override { refuse(); }
  void end_migrations() override { refuse(); }
  void abandon_migrations() noexcept override {}

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("the simulator does not migrate"); }
  const ConnectionPtr connection_;
};

class SimConnector final : public detail::Connector {
 public:
  explicit SimConnector(const SimDatabase& database) : database_(database) {}

  ConnectionPtr connect() const override { return database_.connect(); }
  std::optional<std::string> refusal(const std::string&) const override { return std::nullopt; }

 private:
  const SimDatabase& database_;
};

}  // namespace

SimDatabase::SimDatabase(Server& server) : server_(server), sqlite3_(database_named("sqlite3")) {}

Pool SimDatabase::open_pool(PoolOptions options) const {
  detail::check(options);
  return detail::PoolAccess::make(detail::PoolState::open(std::make_unique<SimConnector>(*this), std::move(options)));
}

ConnectionPtr SimDatabase::connect() const {
  auto& threads = *Threads::instance();
  threads.kill_point();
  threads.sleep_for(std::chrono::milliseconds(1));
  if (!server_.is_up()) {
    throw SimulatedError(server_.personality(), server_.personality().error.cannot_connect, "server that is away");
  }
  return std::make_shared<SimConnection>(*this,
                                         std::make_unique<ServerSession>(server_, threads.current_process_ptr()));
}

ConnectionRef SimDatabase::connect_caller() const { return detail::ConnectionAccess::make(connect()); }

std::unique_ptr<Session> SimDatabase::attach(ConnectionPtr connection, Ownership) const {
  return make_sim_session(server_.personality(), std::move(connection));
}

std::unique_ptr<Catalog> SimDatabase::catalog(ConnectionPtr connection) const {
  return std::make_unique<SimCatalog>(std::move(connection));
}

std::vector<Row> SimDatabase::query(const NativeConnection& connection, const std::string& sql, std::size_t) const {
  ServerSession& session = session_of(connection);
  std::vector<Values> rows;
  session.call([&] { (void)session.run(sql, {}, &rows); });
  return as_rows(rows);
}

std::size_t SimDatabase::run(const NativeConnection& connection, const std::string& sql) const {
  session_of(connection).execute(sql);
  return 0;
}

std::unique_ptr<Dialect> SimDatabase::dialect(const std::string&) const {
  return make_sim_dialect(server_.personality());
}

}  // namespace txinbox::sim
