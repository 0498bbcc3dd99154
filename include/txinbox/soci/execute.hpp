#pragma once

/// @file
/// Runs a statement of a handler in one line, and keeps it prepared. For handlers that take a `soci::session&`.
/// It includes SOCI's headers, so it is not part of txinbox.hpp.

#include <concepts>
#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>

#include <soci/soci.h>

#include <txinbox/delivery.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// @cond
namespace detail {

/// The type that SOCI binds for a parameter of type `T`.
template <class T>
constexpr auto bound_type() {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    return std::type_identity<std::string>();
  } else if constexpr (std::integral<T>) {
    using Wide =
        std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == sizeof(long long), unsigned long long, long long>;
    return std::type_identity<Wide>();
  } else if constexpr (std::floating_point<T>) {
    return std::type_identity<double>();
  } else {
    static_assert(std::same_as<T, std::tm>, "a parameter is a string, a number, a std::tm or a std::optional of these");
    return std::type_identity<std::tm>();
  }
}

/// Refuses a statement of which SQLite would run only a part. See `execute`.
void check_prepared(soci::session& sql, soci::details::statement_backend& statement, const std::string& text,
                    std::size_t parameters);

/// One parameter, at an address that does not change: SOCI keeps it.
template <class T>
struct BoundParameter {
  typename decltype(bound_type<T>())::type value{};
  soci::indicator indicator = soci::i_ok;

  void set(const T& parameter) { value = static_cast<decltype(value)>(parameter); }
};

template <class T>
struct BoundParameter<std::optional<T>> : BoundParameter<T> {
  void set(const std::optional<T>& parameter) {
    this->indicator = parameter ? soci::i_ok : soci::i_null;
    if (parameter) BoundParameter<T>::set(*parameter);
  }
};

struct KeptStatement {
  virtual ~KeptStatement() = default;
};

template <class... Parameters>
class PreparedStatement final : public KeptStatement {
 public:
  PreparedStatement(soci::session& sql, const std::string& text, soci::details::statement_type type) : statement_(sql) {
    std::apply([this](auto&... each) { (statement_.exchange(soci::use(each.value, each.indicator)), ...); }, bound_);
    statement_.alloc();
    statement_.prepare(text, type);
    check_prepared(sql, *statement_.get_backend(), text, sizeof...(Parameters));
    statement_.define_and_bind();
  }

  long long run(const Parameters&... parameters) {
    std::apply([&](auto&... each) { (each.set(parameters), ...); }, bound_);
    statement_.execute(true);
    return statement_.get_affected_rows();
  }

 private:
  std::tuple<BoundParameter<Parameters>...> bound_;
  soci::statement statement_;
};

/// The statements that handlers keep with one connection, by text.
class PreparedStatements {
 public:
  explicit PreparedStatements(soci::session& sql) : sql_(sql) {}

  template <class... Parameters>
  long long run(std::string_view text, const Parameters&... parameters) {
    const std::type_index type = typeid(PreparedStatement<Parameters...>);
    auto at = kept_.find(text);
    if (at == kept_.end() || at->second.type != type) {
      if (at == kept_.end() && kept_.size() == most) kept_.clear();
      const std::string key(text);
      kept_.erase(key);
      auto prepared = std::make_unique<PreparedStatement<Parameters...>>(sql_, key, soci::details::st_repeatable_query);
      at = kept_.emplace(key, Entry{type, std::move(prepared)}).first;
    }
    try {
      return static_cast<PreparedStatement<Parameters...>&>(*at->second.statement).run(parameters...);
    } catch (...) {
      kept_.erase(at);  // SOCI's statements are not usable after an error
      throw;
    }
  }

 private:
  struct Entry {
    std::type_index type;
    std::unique_ptr<KeptStatement> statement;
  };

  static constexpr std::size_t most = 100;

  soci::session& sql_;
  std::map<std::string, Entry, std::less<>> kept_;
};

/// A string literal and an array are strings.
template <class T>
using ParameterType =
    std::conditional_t<std::convertible_to<const T&, std::string_view>, std::string_view, std::remove_cvref_t<T>>;

}  // namespace detail
/// @endcond

/// Runs a statement that returns no rows on the session of a handler, and keeps it prepared with the connection
/// (`Delivery::per_connection`). So the next message does not prepare it again. On PostgreSQL and SQLite this is faster
/// than `sql << "..."`; on MariaDB and MySQL, SOCI sends the text each time. If `Delivery::keeps_statements` is false,
/// nothing stays prepared.
///
/// `statement` is one statement of SQL with SOCI's placeholders, such as `:no`. There is one parameter for each, in
/// their order: a string, a number, a `std::tm`, or a `std::optional` of these, whose empty value is NULL.
///
/// @limits  it keeps 100 different texts for each connection, and then begins again. So pass values as parameters, and
///          not in the text.
/// @errors  those of SOCI: `soci::soci_error`, also for a second statement in the text, and for a missing parameter. On
///          SQLite, this function finds both: SQLite itself would ignore the second statement, and write NULL for the
///          parameter. For a parameter too many, `soci::soci_error` on SQLite, `std::out_of_range` on the others.
/// @threads only the thread of the handler.
/// @return the number of rows that it has changed; -1 if the database does not say so.
template <class... Parameters>
long long execute(soci::session& sql, Delivery& delivery, std::string_view statement, const Parameters&... parameters) {
  if (!delivery.keeps_statements()) {
    detail::PreparedStatement<detail::ParameterType<Parameters>...> once(sql, std::string(statement),
                                                                         soci::details::st_one_time_query);
    return once.run(parameters...);
  }
  auto& kept = delivery.per_connection<detail::PreparedStatements>(sql);
  return kept.template run<detail::ParameterType<Parameters>...>(statement, parameters...);
}

TXINBOX_API_END
}  // namespace txinbox
