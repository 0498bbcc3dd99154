#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <soci/session.h>
#include <txinbox/pool.hpp>

#include "backend/registry.hpp"
#include "base/url.hpp"
#include "pool/pool_state.hpp"
#include "soci_adapter/pool_session_factory.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

/// A connection of a pool, with the SOCI session that it belongs to.
class PooledSession final : public backend::NativeConnection {
 public:
  PooledSession(const backend::Database& database, const backend::SociDatabase& in_soci,
                const std::string& connection_string, const detail::UrlParameters& parameters)
      : NativeConnection(database),
        in_soci_(in_soci),
        factory_(in_soci.factory()),
        session_(in_soci.open(factory_, connection_string, parameters)) {}

  void* handle() const noexcept override { return in_soci_.handle_of(*session_); }
  const void* identity() const noexcept override { return session_->get_backend(); }
  soci::session* soci() const noexcept override { return session_.get(); }
  void allow_reconnecting(bool allowed) const noexcept override { factory_.allow_connecting(allowed); }

 private:
  const backend::SociDatabase& in_soci_;
  mutable detail::PoolSessionFactory factory_;
  const std::unique_ptr<soci::session> session_;
};

/// Opens the connections of one pool.
class SociConnector final : public detail::Connector {
 public:
  SociConnector(const backend::Database& database, std::string connection_string, detail::UrlParameters parameters)
      : database_(database),
        in_soci_(backend::soci_database_named(database.name())),
        connection_string_(std::move(connection_string)),
        parameters_(std::move(parameters)) {}

  backend::ConnectionPtr connect() const override {
    return std::make_shared<PooledSession>(database_, in_soci_, connection_string_, parameters_);
  }

  std::optional<std::string> refusal(const std::string& code) const override {
    return in_soci_.refusal(code, connection_string_);
  }

 private:
  const backend::Database& database_;
  const backend::SociDatabase& in_soci_;
  const std::string connection_string_;     ///< It may contain a password: never write it into a text.
  const detail::UrlParameters parameters_;  ///< They may also contain a password.
};

}  // namespace

Pool open_pool(const std::string& text, PoolOptions options) {
  const backend::Database& database = backend::database_of_url(text);
  detail::check(options);
  detail::Url url = detail::parse_url(text, database.url_kind());
  if (url.scheme == "soci") url.path.erase(0, url.path.find("://") + 3);  // the name of the database
  std::string connection_string = backend::soci_database_named(database.name()).connection_string(url, options);
  auto connector = std::make_unique<SociConnector>(database, std::move(connection_string), std::move(url.parameters));
  return detail::PoolAccess::make(detail::PoolState::open(std::move(connector), std::move(options)));
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
